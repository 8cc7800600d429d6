"""The curve against the report, and against a tape with every layer on it."""

import csv
import io
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calculator.catalog import find_model
from calculator.clock.work import computed
from calculator.curve import Point, curve
from calculator.estimate import estimate
from calculator.parts import Part, Phase
from calculator.peaks.curve import curve_of
from calculator.peaks.outputs import with_outputs
from calculator.peaks.prepare import prepare
from calculator.plan import Plan
from calculator.resolution import resolve
from tests.calculator.plans import Case, case_of, cases, examples
from tests.calculator.whole import levels_of, whole_tape

GPT2 = find_model("gpt2-s")


def highest(points: Sequence[Point]) -> dict[Phase, int]:
    found: dict[Phase, int] = {}
    for point in points:
        found[point.phase] = max(found.get(point.phase, 0), point.memory.total)
    return found


@given(cases(), st.integers(1, 400))
@examples(12)
def test_whole_or_thinned_a_curve_has_the_reported_peak_of_each_phase(
    case: Case, most: int
) -> None:
    whole, few = (curve(case.architecture, case.plan, points) for points in (None, most))
    reported = {phase: memory.total for phase, memory in case.report.phases.items()}
    assert highest(few.points) == highest(whole.points) == reported
    assert few.operations == whole.operations == len(whole.points)
    assert {*few.points} <= {*whole.points}
    assert len(few.points) <= most + 20


@given(cases())
@examples(8)
def test_left_out_layers_stand_where_a_whole_tape_has_them(case: Case) -> None:
    levels = {*levels_of(whole_tape(case).ledger, case)}
    found = curve(case.architecture, case.plan).points
    always = found[0].memory.total - found[0].memory.activations
    tops = {point.memory.total - always for point in found[:-1]}
    assert tops <= levels
    assert max(tops) == max(levels)


def test_every_layer_is_in_the_curve_in_order() -> None:
    for phase, is_back in ((Phase.FORWARD, False), (Phase.BACKWARD, True)):
        layers = [point.layer for point in curve(GPT2).points if point.phase is phase]
        numbers = [int(layer.split()[1]) for layer in layers if layer.startswith("layer")]
        assert numbers == sorted(numbers, reverse=is_back)
        assert set(numbers) == set(range(1, 13))  # GPT-2 has 12 layers


def test_the_scores_of_eager_attention_are_the_largest_at_the_end_of_a_long_forward_pass() -> None:
    plan = Plan(attention="eager", batch_size=4, sequence_length=1024, dropout=0)
    points = curve(GPT2, plan).points
    last = next(point for point in points if point.layer.startswith("layer 12"))
    # of each layer before: a softmax of 4 x 12 x 1024 x 1024 numbers in 32 bits
    wide = [held for held in last.largest if held.kind.width == 4]
    (scores,) = [held for held in wide if "heads" in held.kind.size]
    assert (scores.kind.name, scores.count) == ("self attention: softmax", 11)
    assert scores.bytes == 11 * 4 * 12 * 1024**2 * 4


def test_operations_follow_one_another_and_micro_batches_and_the_update_make_the_step() -> None:
    case = case_of("meta-llama/Llama-3.1-8B", "precision=half batch_size=16 sequence_length=512")
    case = case.but(accumulation=4).on("a100-80")
    found = curve(case.architecture, case.plan)
    starts = [point.seconds for point in found.points if point.seconds is not None]
    assert len(starts) == len(found.points)
    assert starts[0] == 0
    assert starts == sorted(starts)
    assert 3 * starts[-1] + found.seconds == pytest.approx(case.report.seconds.step)
    # a product has two of its size in the backward pass
    backward = next(point.seconds for point in found.points if point.phase is Phase.BACKWARD)
    assert backward == pytest.approx(starts[-1] / 3, rel=0.1)


@pytest.mark.parametrize("options", [{}, {"checkpointing": "full", "precision": "mixed"}])
def test_the_operations_together_do_the_work_of_the_step(options: dict[str, str]) -> None:
    plan = resolve(GPT2, Plan.parse(options))
    prepared = with_outputs(prepare(GPT2, plan), plan)
    found = curve_of(prepared.step, prepared.numbers, prepared.left_out, [0] * len(Part))
    works = [computed(tally, prepared.numbers) for tally in found.tallies()]
    whole = estimate(GPT2, plan).work
    for name in ("narrow", "wide", "narrow_attention", "repeated", "written", "kernels"):
        parts = (getattr(works[one.recorded], name) for one in found.operations)
        assert sum(parts) == getattr(whole, name), name


def test_a_table_has_a_line_for_each_point() -> None:
    found = curve(GPT2, most=50)
    rows = list(csv.DictReader(io.StringIO(found.as_csv())))
    assert len(rows) == len(found.points)
    for row, point in zip(rows, found.points, strict=True):
        parts = ("weights", "gradients", "optimizer", "activations", "temporaries")
        assert sum(int(row[part]) for part in parts) == int(row["gpu"]) == point.memory.total
        assert float(row["seconds"]) == pytest.approx(point.seconds, abs=1e-6)
