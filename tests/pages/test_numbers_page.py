"""The page on how the numbers are made says what the calculator counts, in words and pictures."""

import re

import pytest

from calculator.catalog import find_model
from calculator.curve import curve
from calculator.errors import InputError
from calculator.report import Part, Phase
from calculator.units import MiB, format_bytes
from templates.pages.calculator.context import ask
from templates.pages.numbers.context import context
from templates.pages.numbers.curves import MODEL, Picture, pictures
from templates.pages.numbers.one_layer import PURPOSES, kept_by_one_layer
from templates.pages.numbers.savings import TECHNIQUES, plain_models, techniques
from templates.pieces.accuracy import accuracy
from tests.pages.rendered import render_page


@pytest.fixture(scope="module")
def page() -> str:
    return render_page("numbers")


@pytest.fixture(scope="module")
def drawn() -> list[Picture]:
    return pictures()


def phases_of(picture: Picture) -> dict[Phase, int]:
    """The highest total of each phase."""
    report = picture.counted.report
    return {phase: memory.total for phase, memory in report.phases.items()}


def test_a_layer_keeps_what_the_forward_pass_grows_by() -> None:
    model = find_model(MODEL)
    firsts = [
        next(
            point
            for point in curve(model).points
            if point.phase is Phase.FORWARD and point.layer == f"layer {layer} of {model.layers}"
        )
        for layer in (10, 11)
    ]
    before, after = (point.memory.total for point in firsts)
    assert sum(kept.bytes for kept in kept_by_one_layer(model)) == after - before


def test_every_purpose_has_tensors() -> None:
    kept = kept_by_one_layer(find_model(MODEL))
    assert {one.purpose for one in kept} == set(PURPOSES)
    assert all(one.bytes > 0 for one in kept)


def test_the_copies_of_the_weights_are_two_bytes_for_each() -> None:
    model = find_model(MODEL)
    width = model.hidden_size
    weights = 12 * width * width  # Radford et al., 2019: 4 of attention's, 8 of the feed-forward's
    copies = next(one for one in kept_by_one_layer(model) if "copies" in one.purpose.label)
    assert 2 * weights <= copies.bytes < 2 * weights + MiB // 8  # and their biases


def test_a_tensor_without_a_purpose_is_refused() -> None:
    with pytest.raises(InputError, match="purpose"):
        kept_by_one_layer(find_model("Qwen/Qwen3-8B"))


def test_what_is_said_of_the_peaks_is_so(drawn: list[Picture]) -> None:
    plain, checkpointing, eight_bit, lora = drawn
    assert plain.counted.report.peak_phase is Phase.LOSS
    assert phases_of(plain)[Phase.UPDATE] > 0.99 * plain.counted.peak
    assert checkpointing.counted.report.peak_phase is Phase.UPDATE
    assert checkpointing.counted.peak > 0.99 * plain.counted.peak
    plain_states, few_states = (one.counted.report.gpu.optimizer for one in (plain, eight_bit))
    assert few_states / plain_states == pytest.approx(1 / 4, rel=0.05)
    assert lora.counted.report.gpu.optimizer < 0.01 * plain_states
    assert lora.counted.report.gpu.activations > 0.8 * plain.counted.report.gpu.activations


def test_all_curves_have_the_same_scale(drawn: list[Picture]) -> None:
    lines = [picture.drawn["lines"] for picture in drawn]
    assert all(one == lines[0] for one in lines)
    for picture in drawn:
        top = max(point["tops"][-1] for point in picture.drawn["points"])
        plain = drawn[0].drawn["points"][drawn[0].drawn["peak"]]["tops"][-1]
        ratio = picture.counted.peak / drawn[0].counted.peak
        assert top / plain == pytest.approx(ratio, abs=1e-4)


def test_an_outline_reaches_as_high_as_its_part(drawn: list[Picture]) -> None:
    for picture in drawn:
        for part, outline in enumerate(picture.outlines):
            heights = [1000 - float(text) for text in re.findall(r"V([\d.]+)", outline)]
            top = max(point["tops"][part] for point in picture.drawn["points"])
            assert max(heights) == pytest.approx(1000 * top, abs=0.1)
            assert outline.startswith("M0,1000")
            assert outline.endswith("Z")


def test_the_page_says_each_figure(page: str) -> None:
    names = context()
    for part, size in names["size_of"].items():
        assert f"<strong>{size}</strong>" in page, part
    for one in names["kept"]:
        assert f"{one.purpose.label}</span> <strong>{format_bytes(one.bytes)}</strong>" in page
    for part in Part:
        assert page.count(f'<path class="part-{part.key}"') == len(pictures())


def test_the_page_says_how_many_steps_agree(page: str) -> None:
    for measured in accuracy():
        everything, *families = measured.rows
        assert everything.count == sum(family.count for family in families)
        assert f"We ran {everything.count:,} training steps" in page


def test_the_loss_lifts_the_memory_by_what_the_page_says(page: str, drawn: list[Picture]) -> None:
    before, loss = (phases_of(drawn[0])[phase] for phase in (Phase.FORWARD, Phase.LOSS))
    model = find_model(MODEL)
    scores = 4 * model.sequence_length * model.vocabulary_size
    # the scores and their softmax in 32 bits, and less than one matrix of the same size beside
    assert 2 * scores < loss - before < 3 * scores
    assert f"raises the memory by another {format_bytes(loss - before)}." in page


def test_each_technique_is_the_only_one_in_its_address() -> None:
    for technique, (_, _, added) in zip(techniques(), TECHNIQUES, strict=True):
        for saving, (_, _, choices) in zip(technique.savings, plain_models(), strict=True):
            if saving is None:
                assert technique.label == "LoRA"
                continue
            peak = ask("answer", **(choices | added))["figures"]["report.gpu.peak"]
            assert saving.peak == peak
            assert 0 < saving.part < 100
            for name, value in added.items():
                assert f"{name}={value}" in saving.query
