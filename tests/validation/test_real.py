"""Figures of real cards: as published, beside the answer of the row's own command."""

import json
import statistics

import pytest

from calculator.catalog import find_model
from calculator.estimate import estimate
from calculator.models.registry import TYPES
from calculator.plan import Plan
from calculator.report import Phase
from validation import fitcheck
from validation.by_hand import repeated_by_hand
from validation.published_rows import Figure
from validation.real import everything, holds, summary

T4 = [item for item in everything() if item.source.key == "t4"]


def test_every_step_of_the_t4_has_its_three_figures() -> None:
    published = [json.loads(line) for line in fitcheck.PATH.read_text().splitlines()]
    assert len(published) == 57
    for figure, key in (
        (Figure.ALLOCATED, "peak_allocated"),
        (Figure.OF_ALLOCATOR, "peak_reserved"),
        (Figure.USED, "process"),
    ):
        found = [item.measured for item in T4 if item.figure is figure]
        assert found == [row[key] for row in published]


def test_a_step_without_keys_repeated_by_hand_is_what_its_command_prints(
    capsys: pytest.CaptureFixture[str],
) -> None:
    from calculator.__main__ import main

    rows = [row for row in fitcheck.source().rows if not row.by_hand]
    assert len(rows) == 36
    row = next(row for row in rows if "QLoRA" in row.words)
    main([*row.command.split()[3:], "--json"])
    assert json.loads(capsys.readouterr().out)["gpu"]["peak"] == row.report.gpu.total


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
    lines = list(summary())
    line = next(line for line in lines if line.startswith("  Tesla T4, QLoRA"))
    errors = [
        abs(item.error)
        for item in T4
        if item.figure is Figure.ALLOCATED and item.row.options["quantization"] == "nf4"
    ]
    assert line.split()[3:5] == [str(len(errors)), f"{100 * statistics.median(errors):.2f}"]
    used = [item for item in T4 if item.figure is Figure.USED]
    held = 100 * sum(map(holds, used)) / len(used)
    line = next(line for line in lines if line.startswith("all "))
    assert line.split()[1:3] == ["57", f"{held:.0f}%"]


def test_a_row_that_is_far_off_has_its_causes_or_is_unexplained() -> None:
    listed = [line for line in summary() if line[:1] == " " and "litgpt" in line]
    assert listed
    assert all("left" in line for line in listed)
