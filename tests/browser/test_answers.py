"""The page's figures are Python's, byte for byte."""

from typing import Any
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page

from calculator.options import Option
from calculator.plan import Plan
from tests.browser.visits import Visitor, open_calculator, settled
from tests.calculator.plans import ask

pytestmark = [pytest.mark.browser, pytest.mark.one_python]

SMALL = "model=bert-base"
MODEL_NAMES = ("gpt2-s", "t5-small", "bert-base", "HuggingFaceTB/SmolLM2-135M")
CARDS = ("t4", "a100-80", "rtx-4090")
# What an option needs that means nothing alone.
COMPANIONS = {
    "checkpoint_every": {"checkpointing": "full"},
    "gradient_scaler": {"format": "fp16"},
    "paged_optimizer": {"optimizer_bits": "8"},
    "labels": {"task": "sequence"},
    "mini_batch_size": {"task": "embedding"},
    "quantization": {"lora": "8"},
    **{f"lora_{part}": {"lora": "8"} for part in ("targets", "dropout", "bias", "modules")},
    **{name: {"gpus": "2"} for name in ("data_parallel", "tensor_parallel")},
    "cpu_offload": {"gpus": "2", "data_parallel": "fsdp"},
    "sequence_parallel": {"gpus": "2", "tensor_parallel": "2"},
    "pipeline_parallel": {"gpus": "2", "accumulation": "4"},
}


def state_of(place: int, option: Option) -> dict[str, str]:
    """A state in which an option isn't its default, on one of the models and cards in turn."""
    value = {
        "choice": option.choices[-1][0] if option.choices else "",
        "flag": str(option.field != "tied_embeddings").lower(),
        "number": "0.1",
        "integer": "2",
        "names": "all-linear",
    }[option.kind]
    subject = {"model": MODEL_NAMES[place % 4], "gpu": CARDS[place % 3], "sequence_length": "128"}
    return {**subject, **COMPANIONS.get(option.field, {}), option.field: value}


STATES = [state_of(*one) for one in enumerate(Plan.options().values())]
STATES[::9] = [{**one, "gpu": "", "gpu_memory": "7.5"} for one in STATES[::9]]

# Put a state into the form as hands would: each control gets its value and says so.
FILL_IN = """(state) => {
  const form = document.querySelector("#calculator-form");
  const say = (control) => control.dispatchEvent(new Event("input", {bubbles: true}));
  const set = (name, value) => {
    const control = form.querySelector(`[data-for="${name}"]`) ?? form.elements.namedItem(name);
    if (control.type === "checkbox") control.checked = value === "true";
    else control.value = value;
    say(control);
  };
  form.reset();
  form.querySelector(".family[data-model='gpt2-l']").click(); // a state without a preset
  form.querySelector(`#model-list [data-value="${state.model}"]`).click();
  if ("gpu_memory" in state) set("gpu", "");
  for (const [name, value] of Object.entries(state)) if (name !== "model") set(name, value);
}"""

SHOWN = """() => ({
  texts: [...document.querySelectorAll("[data-text]")].map((e) => [e.dataset.text, e.textContent]),
  lengths: [...document.querySelectorAll("[data-lengths]")].flatMap((element) =>
    element.dataset.lengths.split(" ").map((pair) => {
      const [name, path] = pair.split(":");
      return [path, element.style.getPropertyValue("--" + name)];
    })),
  savings: [...document.querySelectorAll("#calculator-savings [data-part=gpu]")]
    .map((element) => element.textContent),
  notes: [...document.querySelectorAll("#calculator-notes li")].map((item) => item.textContent),
  command: document.querySelector("#calculator-command").textContent,
  refused: document.querySelector("#calculator-refused").textContent,
  errors: [...document.querySelectorAll(".field__error:not(:empty)")]
    .map((place) => [place.id.replace("-error", ""), place.textContent]),
})"""

# One movement of a slider, and the texts that come first, each with whether it is still to come.
MOVE = """() => new Promise((resolve) => {
  const answer = document.querySelector("#calculator-answer");
  const texts = () => [...document.querySelectorAll("[data-text]")]
    .map((e) => [e.dataset.text, e.textContent, "late" in e.dataset]);
  new MutationObserver(() => resolve(texts()))
    .observe(answer, {attributeFilter: ["data-figures-id"]});
  const slider = document.querySelector("input[type=range][name=batch_size]");
  slider.value = "4";
  slider.dispatchEvent(new Event("input", {bubbles: true}));
})"""


def look_up(value: Any, path: str) -> Any:
    """The value at a dotted path of an answer."""
    for name in path.split("."):
        value = value[int(name)] if isinstance(value, list) else value[name]
    return value


def said_of(error: dict[str, str]) -> tuple[str, str]:
    """A field, and what the page says of its error: the option's label instead of its name."""
    label = Plan.options()[error["field"]].label
    return error["field"], f"{label} {error['value']}: {error['rule']}."


def assert_same(page: Page, state: dict[str, str]) -> None:
    """The page shows what CPython answers to `state`."""
    answer = ask("answer", **state)
    if answer["kind"] == "result":  # the address follows a series of edits
        query = answer["value"]["query"]
        page.wait_for_function("(query) => location.search.slice(1) === query", arg=query)
    shown = page.evaluate(SHOWN)
    if answer["kind"] == "error":
        field, words = said_of(answer["error"])
        beside = shown["errors"] == [[field, words]]
        assert beside or (shown["errors"] == [] and words in shown["refused"]), state
        return
    value = answer["value"]
    assert shown["errors"] == [], state
    assert len(shown["texts"]) > 40
    for path, text in shown["texts"]:
        assert text == value["figures"][path], (state, path)
    for path, length in shown["lengths"]:
        assert int(length) == look_up(value, path), (state, path)
    savings = [value["figures"][f"savings.{i}.gpu"] for i in range(len(value["savings"]))]
    assert shown["savings"] == savings, state
    assert shown["notes"] == value["notes"], state
    assert shown["command"] == value["command"], state


def is_allowed(state: dict[str, str]) -> bool:
    """True if CPython counts the state."""
    return bool(ask("answer", **state)["kind"] == "result")


def together(states: list[dict[str, str]]) -> list[dict[str, str]]:
    """Few states with the options of all, each with those of its model that it allows together."""
    found: list[dict[str, str]] = []
    for state in states:
        added = {name: state[name] for name in state if name in Plan.options()}
        for other in found:
            both = {**added, **other}
            fits = both["model"] == state["model"] and both.items() >= added.items()
            if fits and is_allowed(both):
                other.update(both)
                break
        else:
            found.append({**state})
    return found


def test_figures_of_each_option_equal_cpythons(visit: Visitor) -> None:
    visitor = visit()
    page = open_calculator(visitor, SMALL)
    allowed = [one for one in STATES if is_allowed(one)]
    assert len(allowed) > len(STATES) / 2  # the others' errors are the same
    few = together(allowed)
    for state in [*few, *(one for one in STATES if one not in allowed)]:
        page.evaluate(FILL_IN, state)
        settled(page)
        assert_same(page, state)
    for state in few[:3]:
        assert_same(open_calculator(visitor, urlencode(state)), state)
    assert visitor.errors == []


def test_figures_follow_a_slider_before_the_allocator_is_simulated(visit: Visitor) -> None:
    page = open_calculator(visit(), "model=gpt2-s")
    early = page.evaluate(MOVE)
    state = {"model": "gpt2-s", "batch_size": page.input_value("#batch_size")}
    glance, whole = (ask(each, **state)["value"] for each in ("glance", "answer"))
    open_yet = {"verdict.words": "Computing …", "verdict.sum": "", "verdict.text": "Computing …"}
    first = {**open_yet, **glance["figures"]}
    assert sum(late for *_, late in early) > 8
    for path, text, late in early:
        assert late or text == first[path], path
    settled(page)
    assert page.locator("[data-late]").count() == 0
    for path, text in page.evaluate(SHOWN)["texts"]:
        assert text == whole["figures"][path], path
