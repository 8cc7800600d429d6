"""'Where the memory goes' says what the calculator counts, for each model and GPU it offers."""

import json
import re
from functools import cache
from html import unescape
from pathlib import Path
from urllib.parse import parse_qsl

import pytest

from calculator.curve import curve
from calculator.errors import InputError
from calculator.page.states import read_state
from calculator.peaks.curve import Kind
from calculator.report import Part, Phase, Report
from calculator.units import format_bytes
from templates.pages.calculator.context import ask
from templates.pages.numbers.choices import Choice, choices
from templates.pages.numbers.context import write_assets
from templates.pages.numbers.figures import PLACES, all_figures
from templates.pages.numbers.one_layer import kept_by_one_layer, purpose_of
from templates.pages.numbers.savings import TECHNIQUES, plain_state, techniques
from templates.pieces.counted import count
from tests.pages.rendered import render_page

CHOICES = {choice.name: choice for choice in choices()}
# The Turing card and one of the others, whose kernels are the same.
KERNELS = [name for name in CHOICES if name.endswith((".t4", ".rtx-4090"))]
DEFAULT = next(iter(CHOICES))
told = cache(all_figures)


def text_of(html: str) -> str:
    """The words that a reader sees."""
    return unescape(" ".join(re.sub(r"<[^>]+>", " ", html).split()))


def report_of(choice: Choice, **options: str) -> Report:
    return count(**(choice.state | options)).report


def forward_activations(report: Report) -> int:
    return report.phases[Phase.FORWARD].activations


def test_the_page_has_the_figures_of_its_first_choice() -> None:
    page = render_page("numbers")
    assert set(re.findall(r'data-figures="(\w+)"', page)) == set(PLACES)
    for figures in told()[DEFAULT].values():
        assert figures in page


def test_every_choice_has_a_file_that_the_script_names(tmp_path: Path) -> None:
    write_assets(tmp_path)
    lists = re.findall(r"<select.*?</select>", render_page("numbers"))
    models, cards = (re.findall(r'value="([^"]+)"', one) for one in lists)
    names = {f"{model.split('/')[-1]}.{card}" for model in models for card in cards}
    files = {path.stem: path for path in (tmp_path / "numbers").iterdir()}
    assert names == set(CHOICES) == set(files)
    for name, path in files.items():
        assert json.loads(path.read_text("utf-8")) == told()[name]


@pytest.mark.parametrize("name", CHOICES)
def test_the_figures_are_the_calculators(name: str) -> None:
    figures = told()[name]
    answer = ask("answer", **CHOICES[name].state)
    value, verdict = answer["figures"], answer["verdict"]["state"]
    peak, phase = value["report.gpu.peak"], value["report.gpu.phase"]
    assert text_of(figures["peak"]) == f"{peak} , {verdict}"
    assert f"the step holds {peak}." in figures["parts"]
    assert f"Here that is in the {phase} phase" in figures["phases"]
    for part in Part:
        size = value[f"report.gpu.parts.{part.key}"]
        assert f"<strong>{size}</strong>" in figures["parts"], part
        assert figures["curve"].count(f'<path class="part-{part.key}"') == 1
        assert figures["changes"].count(f'<path class="part-{part.key}"') == 3
    forward, loss = (report_of(CHOICES[name]).phases[x].total for x in (Phase.FORWARD, Phase.LOSS))
    assert loss - forward > 0
    assert f"another {format_bytes(loss - forward)}." in figures["phases"]
    needed, low, high = (value[f"monitor.report.{x}"] for x in ("needed", "low", "high"))
    assert f"it needs {needed}" in text_of(figures["phases"])
    assert f"{value['gpu.memory']}: it {verdict}." in figures["phases"]
    assert f"That makes {needed}." in figures["overhead"]
    assert "its own rules" in figures["overhead"]
    assert report_of(CHOICES[name]).overhead.is_simulated
    assert f"a range: {low} to {high}." in figures["overhead"]


@pytest.mark.parametrize("name", CHOICES)
def test_links_lead_to_the_choice(name: str) -> None:
    choice, places = CHOICES[name], ("plan", "curve", "changes", "savings")
    links = [
        dict(parse_qsl(unescape(query)))
        for place in places
        for query in re.findall(r"calculator/\?([^\"]*)", told()[name][place])
    ]
    assert len(links) >= 1 + 1 + 3 + 4
    for link in links:
        model, plan, gpu = read_state(link)
        assert (model.name, gpu.name) == (choice.model.name, choice.card.name)
        assert plan.optimizer is read_state(choice.state)[1].optimizer


@pytest.mark.parametrize("name", CHOICES)
def test_what_is_said_of_the_peak_is_so(name: str) -> None:
    figures, report = told()[name], report_of(CHOICES[name])
    update, gpu = report.phases[Phase.UPDATE], report.gpu
    said = text_of(figures["parts"])
    if "no gradients yet" in said:
        assert gpu.gradients == 0
    elif "hardly any gradients yet" in said:
        assert report.peak_phase is Phase.BACKWARD
        assert gpu.gradients < 0.001 * gpu.total
    else:
        assert "Hardly any activations" in said
        assert gpu.activations < 0.001 * gpu.total
    said = text_of(figures["phases"])
    assert "activations are gone, but all gradients are there" in said
    assert update.activations < 0.001 * update.total
    assert update.gradients >= 4 * report.trainable_parameters  # in 32 bits
    if report.peak_phase is Phase.UPDATE:
        assert f"another {format_bytes(update.temporaries)} for its own" in said
    elif "almost as high" in said:
        assert 0.97 < update.total / gpu.total < 1
    else:
        assert update.total <= 0.97 * gpu.total
        assert f"The update reaches {format_bytes(update.total)}" in said


@pytest.mark.parametrize("name", KERNELS)
def test_what_is_said_of_the_changes_is_so(name: str) -> None:
    choice, said = CHOICES[name], text_of(told()[name]["changes"])
    plain, changed = report_of(choice), report_of(choice, checkpointing="full")
    assert "Checkpointing removes most of the activations" in said
    assert forward_activations(changed) < 0.5 * forward_activations(plain)
    falls = 1 - changed.gpu.total / plain.gpu.total
    if "does not move" in said or "barely moves" in said:
        assert falls < (0.001 if "does not move" in said else 0.03)
    else:
        assert falls >= 0.03
        peaks = (format_bytes(one.gpu.total) for one in (plain, changed))
        assert "from {} to {}.".format(*peaks) in said
    if "in the update, which has no activations" in said:
        assert changed.peak_phase is Phase.UPDATE
    else:
        still = "still" if changed.peak_phase is plain.peak_phase else "now"
        assert f"{still} in the {changed.peak_phase.label.lower()} phase" in said
    eight_bit = report_of(choice, optimizer_bits="8")
    assert "about a quarter" in said
    assert eight_bit.gpu.optimizer / plain.gpu.optimizer == pytest.approx(1 / 4, rel=0.05)
    assert eight_bit.gpu.total < plain.gpu.total
    if choice.is_of_the_run:
        reversible = report_of(choice, reversible="true")
        assert "hardly any activations are kept" in said
        assert forward_activations(reversible) < 0.02 * forward_activations(plain)
    else:
        lora = report_of(choice, lora="16", lora_targets="all-linear")
        assert lora.gpu.optimizer < 0.03 * plain.gpu.optimizer
        assert forward_activations(lora) > 0.8 * forward_activations(plain)


@pytest.mark.parametrize("name", [*KERNELS[::4], *KERNELS[3::4]])  # each model on one card
def test_a_layer_keeps_what_the_forward_pass_grows_by(name: str) -> None:
    choice = CHOICES[name]
    architecture, plan, _ = read_state(choice.state)
    layer = kept_by_one_layer(choice)
    totals: dict[str, int] = {}
    for point in curve(architecture, plan, named=1).points:
        if point.phase is Phase.FORWARD:
            totals.setdefault(point.layer, point.memory.total)
    stack = f"{layer.stack} layer".strip()
    numbers = [int(words.split()[-3]) for words in totals if words.startswith(f"{stack} ")]
    middle = len(numbers) // 2 + 1
    before, after = (totals[f"{stack} {x} of {len(numbers)}"] for x in (middle, middle + 1))
    assert layer.bytes == after - before
    assert all(one.bytes > 0 for one in layer.kept)


@pytest.mark.parametrize(
    ("name", "tensors", "words"),
    [
        # by hand: bytes of an element, for each tensor of tokens by feed-forward size
        ("gpt2-l.t4", [4, 4, 4, 2, 2], "three results inside GELU in 32 bits"),
        ("bert-large.t4", [2, 2], "GELU's input, as it is one fused operation"),
        ("t5-large.t4", [2, 2], "ReLU's result"),
        ("Llama-3.2-1B.t4", [2, 2, 2, 2], "SiLU's input, the two factors of the gate"),
        ("ModernBERT-base.t4", [2, 2, 2, 2], "GELU's input, the two factors of the gate"),
        ("dalle-together.t4", [2, 2, 2, 2], "GELU's input, the two factors of the gate"),
    ],
)
def test_the_feed_forward_part_keeps_the_tensors_that_are_named(
    name: str, tensors: list[int], words: str
) -> None:
    choice = CHOICES[name]
    tokens = report_of(choice).plan.sequence_length
    assert tokens
    kept = next(x for x in kept_by_one_layer(choice).kept if x.label == "The feed-forward part")
    assert kept.bytes == sum(tensors) * tokens * choice.model.feed_forward_size
    assert words in kept.words


def test_a_tensor_without_a_purpose_is_refused() -> None:
    with pytest.raises(InputError, match="purpose"):
        purpose_of(Kind("unknown", "hidden", 4))


@pytest.mark.parametrize("name", [name for name in CHOICES if name.endswith(".t4")])
def test_each_technique_is_the_only_one_in_its_address(name: str) -> None:
    plain = plain_state(CHOICES[name])
    for technique, (label, _, added) in zip(techniques(CHOICES[name]), TECHNIQUES, strict=True):
        row = text_of(told()[name]["savings"].partition(f">{label}<")[2].partition("</tr>")[0])
        saving = technique.saving
        if saving is None:
            assert label in {"LoRA", "Sharing", "Reversible layers"}
            assert "does not apply to this model" in row
            continue
        peak = ask("answer", **(plain | added))["figures"]["report.gpu.peak"]
        assert saving.peak == peak
        assert f"{peak} saves" in row
        assert 0 < saving.part < 100
        for field, value in added.items():
            assert f"{field}={value}" in saving.query
