import importlib
import json
import shlex
from dataclasses import asdict
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calculator.__main__ import build_parser
from calculator.catalog import GPUS, MODELS
from calculator.commandline import plan_from
from calculator.estimate import estimate
from calculator.protocol import DEFAULT_GPU, DEFAULT_MODEL, answer, handle
from calculator.techniques import OPTIONS, resolve, without_techniques
from calculator.units import GiB, format_bytes
from tests.calculator.plans import Case, cases, examples


def ask(method: str, params: dict[str, Any] | None = None, question: object = 7) -> dict[str, Any]:
    text = json.dumps({"id": question, "method": method, "params": params or {}})
    return json.loads(handle(text))  # type: ignore[no-any-return]


def params(case: Case) -> dict[str, Any]:
    """The form's state as the page sends it: texts."""
    texts = {name: str(value) for name, value in case.plan.changed().items()}
    return {"model": case.architecture.name, **texts}


@pytest.mark.parametrize("question", [0, 41, "seven", None, 2**53])
@pytest.mark.parametrize("method", ["answer", "nothing"])
def test_an_answer_and_an_error_carry_the_questions_id(question: object, method: str) -> None:
    assert ask(method, question=question)["id"] == question


@given(cases(catalog_only=True))
@examples(8)
def test_the_page_gets_what_the_command_line_gets(case: Case) -> None:
    expected = estimate(case.architecture, case.plan)
    assert ask("answer", params(case))["value"]["report"] == expected.as_json()
    assert ask("estimate", params(case))["value"] == expected.as_json()


@given(cases(catalog_only=True))
@examples(8)
def test_the_address_of_a_state_gives_the_same_answer(case: Case) -> None:
    value = answer(params(case))
    assert answer(dict(parse_qsl(value["query"]))) == value


@given(cases(catalog_only=True))
@examples(8)
def test_the_command_shown_gives_the_same_report(case: Case) -> None:
    value = answer(params(case))
    arguments = build_parser().parse_args(shlex.split(value["command"])[3:])
    report = estimate(MODELS[arguments.model], plan_from(arguments))
    assert {**report.as_json(), "gpu": None} == {**value["report"], "gpu": None}
    assert report.gpu.total == value["report"]["gpu"]["peak"]


@given(cases(catalog_only=True))
@examples(8)
def test_the_baseline_is_the_same_step_without_techniques(case: Case) -> None:
    value = answer(params(case))
    plain = estimate(case.architecture, without_techniques(case.architecture, case.plan))
    assert value["baseline"]["gpu"]["peak"] == plain.gpu.total
    assert value["baseline"]["plan"]["batch_size"] == case.plan.batch_size


@given(cases(catalog_only=True))
@examples(8)
def test_a_saving_is_the_peak_without_one_technique_minus_that_with_it(case: Case) -> None:
    value = answer(params(case))
    used = {saving["option"] for saving in value["savings"]}
    resolved = resolve(case.architecture, case.plan)
    assert ("reversible" in used) == resolved.reversible
    assert ("offload" in used) == (resolved.offload == "optimizer")
    assert ("checkpointing" in used) == (resolved.checkpointing != "none")
    assert ("optimizer_bits" in used) == (resolved.optimizer_bits == 8)
    for saving in value["savings"]:
        assert type(saving["gpu"]) is int
        if saving["option"] == "offload":
            without = case.but(offload="none").report
            assert saving["gpu"] == without.gpu.total - case.report.gpu.total
            assert saving["ram"] == -case.report.ram.total


@given(cases(catalog_only=True))
@examples(5)
def test_figures_are_the_sizes_as_people_read_them(case: Case) -> None:
    value = answer(params(case))
    figures = value["figures"]
    assert figures["report.parameters"] == f"{value['report']['parameters']:,}"
    for side in ("report", "baseline"):
        gpu = value[side]["gpu"]
        assert figures[f"{side}.gpu.peak"] == format_bytes(gpu["peak"])
        assert figures[f"exact.{side}.gpu.peak"] == f"{gpu['peak']:,} B"
        for part, size in gpu["parts"].items():
            assert figures[f"{side}.gpu.parts.{part}"] == format_bytes(size)
    for number, moment in enumerate(value["report"]["moments"]):
        assert figures[f"report.moments.{number}.gpu"] == format_bytes(moment["gpu"])
    for number, saving in enumerate(value["savings"]):
        assert figures[f"savings.{number}.gpu"] == format_bytes(saving["gpu"])


class Slots(HTMLParser):
    """The figures that the page's fragment asks for."""

    def __init__(self) -> None:
        super().__init__()
        self.paths: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "data-text" and value:
                self.paths.add(value)


def test_every_figure_that_the_page_shows_is_in_every_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("jinja2", reason="the page is rendered with the extra 'site'")
    rendering = importlib.import_module("templates.render")
    monkeypatch.setattr(rendering, "PAGES", {"calculator": rendering.PAGES["calculator"]})
    rendering.render(tmp_path)
    slots = Slots()
    slots.feed((tmp_path / "calculator.md").read_text(encoding="utf-8"))
    assert len(slots.paths) > 20
    for model in MODELS:
        assert slots.paths <= answer({"model": model})["figures"].keys()


@given(cases(catalog_only=True), st.sampled_from(list(GPUS.values())))
@examples(8)
def test_the_verdict_is_what_the_card_has_less_what_the_step_needs(case: Case, gpu: Any) -> None:
    value = answer({**params(case), "gpu": gpu.name})
    needed = value["report"]["gpu"]["peak"] + value["report"]["gpu"]["overhead"]
    assert value["verdict"]["margin"] == gpu.memory - needed
    assert value["verdict"]["fits"] is (gpu.memory >= needed)
    assert gpu.title in value["verdict"]["text"]
    assert value["verdict"]["text"].startswith("Fits" if gpu.memory >= needed else "Does not fit")


def test_a_card_can_be_given_by_its_memory() -> None:
    value = answer({"gpu_memory": "12.5", "gpu": "t4"})
    assert value["gpu"]["memory"] == 12.5 * GiB
    assert dict(parse_qsl(value["query"])) == {"gpu_memory": "12.5"}


def test_the_default_state_has_an_empty_address() -> None:
    value = answer({})
    assert value["query"] == ""
    assert (value["report"]["model"], value["gpu"]["key"]) == (DEFAULT_MODEL, DEFAULT_GPU)


@given(cases(catalog_only=True))
@examples(4)
def test_what_is_called_available_is_taken(case: Case) -> None:
    available = answer(params(case))["available"]
    for field, values in available.items():
        for value in values:
            assert ask("answer", {**params(case), field: value})["kind"] == "result"


BAD = [
    ({"model": "gpt2l"}, "model", "gpt2-l"),
    ({"gpu": "rtx3090"}, "gpu", "rtx-3090"),
    ({"gpu_memory": "0"}, "gpu_memory", "above 0"),
    ({"gpu_memory": "-4"}, "gpu_memory", "above 0"),
    ({"gpu_memory": "nan"}, "gpu_memory", "above 0"),
    ({"gpu_memory": "inf"}, "gpu_memory", "above 0"),
    ({"gpu_memory": "much"}, "gpu_memory", "above 0"),
    ({"batch_size": "0"}, "batch_size", "from 1"),
    ({"batch_size": "nan"}, "batch_size", "whole number"),
    ({"batch_size": 1.5}, "batch_size", "whole number"),
    ({"sequence_length": "1e9"}, "sequence_length", "whole number"),
    ({"dropout": "inf"}, "dropout", "below 1"),
    ({"reversible": "maybe"}, "reversible", "true or false"),
    ({"sharing_groups": "99"}, "sharing_groups", "36 layers"),
    ({"target_length": "5"}, "target_length", "only T5"),
    ({"precision": "fp32", "attention": "flash"}, "attention", "has code for"),
    ({"optimizer": "adafactor", "optimizer_bits": "8"}, "optimizer_bits", "32 or 16"),
    ({"batchsize": "2"}, "option", "batch_size"),
]


@pytest.mark.parametrize("method", ["answer", "estimate"])
@pytest.mark.parametrize(("given", "field", "rule"), BAD)
def test_a_bad_value_gets_an_error_of_field_value_and_rule(
    method: str, given: dict[str, Any], field: str, rule: str
) -> None:
    if method == "estimate" and field.startswith("gpu"):
        field = rule = "option"
    found = ask(method, given)
    assert found.keys() == {"id", "kind", "error"}
    assert (found["id"], found["kind"]) == (7, "error")
    assert found["error"].keys() == {"type", "field", "message"}
    assert (found["error"]["type"], found["error"]["field"]) == ("InputError", field)
    assert rule in found["error"]["message"]


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "null", "3", "[]", '"answer"', "{}", '{"id": 1}', '{"id": 1, "method": null}',
        '{"id": 1, "method": ["answer"]}', '{"id": 1, "method": {"a": 1}}',
        '{"id": 1, "method": "answer", "params": 3}',
        '{"id": 1, "method": "answer", "params": [1]}',
        '{"id": 1, "method": "answer", "params": "model"}',
        '{"id": 1, "method": "answer", "params": {"model": ["gpt2-l"]}}',
        '{"id": 1, "method": "answer", "params": {"batch_size": [1]}}',
        '{"id": 1, "method": "answer", "params": {"batch_size": {"a": 1}}}',
        '{"id": 1, "method": "answer", "params": {"gpu": {}, "gpu_memory": []}}',
        '{"id": 1, "method": "handle"}',
    ],
)  # fmt: skip
def test_a_question_that_makes_no_sense_gets_an_error_and_no_trace(text: str) -> None:
    found = json.loads(handle(text))
    assert found["kind"] == "error"
    assert "Traceback" not in found["error"]["message"]
    assert found["error"]["message"]


@given(st.text(max_size=30), st.dictionaries(st.sampled_from(list(OPTIONS)), st.text(max_size=6)))
@examples(20)
def test_any_texts_get_a_result_or_an_error(model: str, texts: dict[str, str]) -> None:
    for chosen in (model, "gpt2-s"):
        assert ask("estimate", {"model": chosen, **texts})["kind"] in ("result", "error")


def test_the_table_has_a_row_for_each_model() -> None:
    rows = ask("models")["value"]
    assert [row["name"] for row in rows] == list(MODELS)
    for row in rows:
        report = estimate(MODELS[row["name"]])
        assert row["parameters"] == f"{report.parameters:,}"
        assert row["peak"] == format_bytes(report.gpu.total)


def test_the_choices_are_those_of_options_and_catalog() -> None:
    value = ask("describe")["value"]
    assert [option["field"] for option in value["options"]] == list(OPTIONS)
    assert value["options"][0] == json.loads(json.dumps(asdict(OPTIONS["batch_size"])))
    assert value["models"] == list(MODELS)
    assert [gpu["name"] for gpu in value["gpus"]] == list(GPUS)
