"""Figures of real cards: as published, beside the answer of the row's own command."""

import json
import statistics
from dataclasses import replace

import pytest

from calculator.cards import find_card
from calculator.catalog import find_model
from calculator.estimate import estimate
from calculator.models.registry import TYPES
from calculator.plan import Plan
from calculator.report import Phase
from templates.pieces.comparisons import scores
from validation import fitcheck
from validation.by_hand import repeated_by_hand
from validation.published_rows import Figure
from validation.real import BEFORE_2, held_or_not, summary
from validation.scoreboard import Score


def of_the_t4() -> list[Score]:
    return [score for score in scores() if score.source.key == "t4"]


def test_every_step_of_the_t4_has_its_three_figures() -> None:
    published = [json.loads(line) for line in fitcheck.PATH.read_text().splitlines()]
    assert len(published) == 57
    for figure, key in (
        (Figure.ALLOCATED, "peak_allocated"),
        (Figure.OF_ALLOCATOR, "peak_reserved"),
        (Figure.USED, "process"),
    ):
        found = [item.measured for item in of_the_t4() if item.figure is figure]
        assert found == [row[key] for row in published]


def test_what_pytorch_allocates_on_a_t4_is_within_a_hundredth() -> None:
    # the first target of real rows: a hundredth at most, a thousandth in the median
    errors = [abs(score.error) for score in of_the_t4() if score.figure is Figure.ALLOCATED]
    assert statistics.median(errors) < 0.001
    assert max(errors) < 0.01


def test_keys_and_values_repeated_by_hand_are_kept_for_every_head() -> None:
    # TinyLlama: 22 layers, 32 heads of 64 channels, 4 of keys and values; 2 bytes an element
    shape = find_model("TinyLlama/TinyLlama-1.1B-Chat-v1.0")
    options = {"batch_size": 2, "sequence_length": 512, "precision": "half", "lora": 8}
    grouped = estimate(shape, Plan.parse({**options, "attention": "flash"}))
    with repeated_by_hand(shape) as by_hand:
        whole = estimate(by_hand, Plan.parse({**options, "attention": "efficient"}))
    more = 22 * 2 * (2 * 512) * (32 - 4) * 64 * 2
    activations = [report.phases[Phase.FORWARD].activations for report in (whole, grouped)]
    # the kernels differ in the scalars that they keep for dropout, too
    assert activations[0] - activations[1] == pytest.approx(more, abs=22 * 1024)
    assert by_hand.family not in TYPES


def test_the_command_prints_medians_and_coverage_of_each_card() -> None:
    # a title that stands there again is that of another figure
    lines = reversed([*summary(scores())])
    printed = {line[:34].rstrip(): line[34:].split() for line in lines}
    errors = [
        abs(item.error)
        for item in of_the_t4()
        if item.figure is Figure.ALLOCATED and item.row.options["quantization"] == "nf4"
    ]
    median = f"{100 * statistics.median(errors):.2f}"
    assert printed["  Tesla T4, QLoRA"][:2] == [str(len(errors)), median]
    steps = held_or_not(scores())
    assert len({id(item.row) for item in steps}) == len(steps)
    assert sum(item.source.key == "t4" for item in steps) == 57
    today = [item for item in steps if item.source.key not in BEFORE_2]
    for title, chosen in (("all", steps), ("without 2021 and 2022", today)):
        rows, held, known, width = (float(cell.rstrip("%")) for cell in printed[title])
        assert rows == len(chosen)
        assert held == round(100 * sum(item.is_held for item in chosen) / rows)
        assert known == round(100 * sum(item.is_held_as_counted for item in chosen) / rows)
        assert known >= 90
        assert width <= 15
    assert held >= 90  # today


def test_a_reserved_figure_is_held_without_the_cards_context() -> None:
    score = next(item for item in of_the_t4() if item.figure is Figure.OF_ALLOCATOR)
    context = find_card("t4").context
    for bound, is_held in (
        (score.answer.low, True),
        (score.answer.low - 1, False),
        (score.answer.high, True),
        (score.answer.high + 1, False),
    ):
        assert replace(score, measured=bound - context).is_held == is_held
