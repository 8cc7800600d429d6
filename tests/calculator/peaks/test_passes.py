"""Steps made of recorded passes, held against the same steps recorded pass by pass."""

from dataclasses import replace
from typing import Any

import pytest

from calculator.architecture import Architecture
from calculator.catalog import find_model
from calculator.estimate import estimate
from calculator.parts import Phase
from calculator.peaks import trace
from calculator.peaks.chunks import chunked
from calculator.peaks.passes import Passes, record_passes
from calculator.peaks.prepare import prepare
from calculator.peaks.step import Step, run_step
from calculator.peaks.timeline import Peak, measure
from calculator.peaks.trace import record
from calculator.plan import Plan, Precision
from calculator.resolution import resolve
from calculator.techniques.pipeline import part_of

PLAN = Plan(batch_size=2, sequence_length=96, pipeline_parallel=4, tied_embeddings=False)
NOTHING = (0, 0, 0, 0, 0)
# schedules, stages on each GPU, and micro-batches
SCHEDULES = (
    *(("gpipe", 1, count) for count in (1, 4)),
    *(("1f1b", 1, count) for count in (4, 7)),
    *(("interleaved", 2, count) for count in (3, 8)),
    ("interleaved", 3, 8),
)
OPTIONS: tuple[dict[str, Any], ...] = (
    {"precision": "half"},
    {"checkpointing": "full"},
    {"precision": "mixed", "attention": "eager", "checkpointing": "selective"},
    {"lora": 8, "lora_targets": "all-linear", "checkpointing": "full"},
)


def plan_of(schedule: str, stages: int, count: int, **options: Any) -> Plan:
    given: dict[str, Any] = {"pipeline_schedule": schedule, "accumulation": count, **options}
    return replace(PLAN, pipeline_stages=stages, **given)


def both_ways(part: Architecture, plan: Plan) -> list[dict[Phase, Peak]]:
    """The peaks of one GPU's step: of recorded passes, and of all passes on one tape."""
    found = prepare(part, plan)
    slow = chunked(run_step(found.step).ledger, found.step)
    traces = record(found.step), slow
    return [measure(each, found.numbers, found.left_out, NOTHING) for each in traces]


def check(model: str, plan: Plan, layers: int) -> None:
    """Hold both ways against each other, on every GPU."""
    architecture = replace(find_model(model), layers=layers)
    resolved = resolve(architecture, plan)
    for rank in range(plan.pipeline_parallel):
        fast, slow = both_ways(part_of(architecture, resolved, rank), resolved)
        assert fast == slow
        assert sum(peak.total for peak in fast.values()) > 0


@pytest.mark.parametrize(("schedule", "stages", "count"), SCHEDULES)
def test_every_schedule_has_the_peaks_of_its_passes_on_one_tape(
    schedule: str, stages: int, count: int
) -> None:
    check("gpt2-s", plan_of(schedule, stages, count), 14)


@pytest.mark.parametrize(
    ("schedule", "options"),
    [*zip((SCHEDULES[1], SCHEDULES[3], SCHEDULES[5], SCHEDULES[3]), OPTIONS, strict=True)],
)
def test_options_change_what_is_recorded_of_a_pass(
    schedule: tuple[str, int, int], options: dict[str, Any]
) -> None:
    check("ibm-granite/granite-3.1-8b-base", plan_of(*schedule, **options), 14)


@pytest.mark.parametrize("stages", [2, 3])
def test_weights_in_shards_are_gathered_ahead_of_a_stage_first(stages: int) -> None:
    options = {"data_parallel": "fsdp", "gpus": 8, "checkpointing": "full"}
    check("gpt2-s", plan_of("interleaved", stages, 8, **options), 36)


def test_layers_of_several_kinds_and_few_layers() -> None:
    check("HuggingFaceTB/SmolLM3-3B", plan_of("interleaved", 2, 8), 36)
    check("Qwen/Qwen2.5-0.5B", plan_of("1f1b", 1, 6, precision=Precision.HALF), 5)


def test_more_micro_batches_and_other_schedules_record_nothing_new(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    recorded = []

    def counted(stage: Step) -> Passes:
        recorded.append(stage)
        return record_passes(stage)

    monkeypatch.setattr(trace, "record_passes", counted)
    for cache in (trace.record, trace._known):
        cache.cache_clear()
    model = find_model("gpt2-l")
    estimate(model, plan_of("interleaved", 3, 8))
    # the first stage, one between, the last
    assert len(recorded) == 3
    for count in (4, 12, 64):
        estimate(model, plan_of("interleaved", 3, count))
    for schedule in ("gpipe", "1f1b"):  # stages of 3 layers each, as before
        estimate(replace(model, layers=12), plan_of(schedule, 1, 8))
    assert len(recorded) == 3
