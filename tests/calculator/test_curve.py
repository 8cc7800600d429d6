"""The curve against the report, and against a tape with every layer on it."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calculator.autograd.sizes import number_of
from calculator.cards import find_card
from calculator.catalog import find_model
from calculator.clock.work import computed
from calculator.curve import curve
from calculator.estimate import estimate
from calculator.parts import Part, Phase
from calculator.peaks.curve import curve_of
from calculator.peaks.outputs import with_outputs
from calculator.peaks.prepare import prepare
from calculator.plan import Plan
from calculator.report import Memory
from calculator.resolution import resolve
from tests.calculator.plans import Case, cases, examples
from tests.calculator.whole import numbers_of, whole_tape

GPT2 = find_model("gpt2-s")


def highest(case: Case, most: int | None = None) -> dict[Phase, Memory]:
    found: dict[Phase, Memory] = {}
    for point in curve(case.architecture, case.plan, most).points:
        if point.phase not in found or point.memory.total > found[point.phase].total:
            found[point.phase] = point.memory
    return found


@given(cases(), st.integers(1, 400))
@examples(12)
def test_the_highest_of_each_phase_is_the_reported_one_also_when_thinned(
    case: Case, most: int
) -> None:
    found = highest(case)
    assert {phase: memory.total for phase, memory in found.items()} == {
        phase: memory.total for phase, memory in case.report.phases.items()
    }
    assert highest(case, most) == found


@given(cases())
@examples(8)
def test_left_out_layers_stand_where_a_whole_tape_has_them(case: Case) -> None:
    tape = whole_tape(case)
    numbers = numbers_of(case)
    sizes = {
        number: (number_of(size, numbers) * dtype.width + 511) // 512 * 512
        for (size, dtype), number in tape.ledger.sizes.items()
    }
    level, levels = 0, {0}
    for event in tape.ledger.events:
        level += sizes[event] if event > 0 else -sizes[-event]
        levels.add(level)
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


def test_operations_start_one_after_the_other_and_end_with_the_step() -> None:
    model = find_model("meta-llama/Llama-3.1-8B")
    plan = Plan(precision="half", batch_size=16, sequence_length=512).on(find_card("a100-80"))
    found, report = curve(model, plan), estimate(model, plan)
    starts = [point.seconds for point in found.points if point.seconds is not None]
    assert len(starts) == len(found.points)
    assert starts[0] == 0
    assert starts == sorted(starts)
    assert found.seconds == pytest.approx(report.seconds.step)
    # a product has two of its size in the backward pass
    backward = next(point.seconds for point in found.points if point.phase is Phase.BACKWARD)
    assert backward == pytest.approx(report.seconds.step / 3, rel=0.1)


def test_micro_batches_and_the_update_are_the_step() -> None:
    plan = Plan(precision="half", batch_size=16, accumulation=4).on(find_card("a100-80"))
    found, report = curve(GPT2, plan), estimate(GPT2, plan)
    update = found.points[-1].seconds
    assert 3 * update + found.seconds == pytest.approx(report.seconds.step)


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


def test_no_more_points_are_given_than_asked_for() -> None:
    whole = curve(GPT2)
    few = curve(GPT2, most=100)
    assert len(few.points) <= 120
    assert few.operations == whole.operations == len(whole.points)
    by_number = {point.number: point for point in whole.points}
    assert all(by_number[point.number] == point for point in few.points)


def test_a_table_has_a_line_for_each_point() -> None:
    found = curve(GPT2, most=50)
    rows = list(csv.DictReader(io.StringIO(found.as_csv())))
    assert len(rows) == len(found.points)
    for row, point in zip(rows, found.points, strict=True):
        parts = ("weights", "gradients", "optimizer", "activations", "temporaries")
        assert sum(int(row[part]) for part in parts) == int(row["gpu"]) == point.memory.total
        assert float(row["seconds"]) == pytest.approx(point.seconds, abs=1e-6)
