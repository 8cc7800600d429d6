"""Stages of a pipeline; measured rows hold whole steps, and with them the order of passes."""

from dataclasses import replace

import pytest

from calculator.catalog import find_model
from calculator.estimate import estimate, least, totals
from calculator.plan import PipelineSchedule, Plan, Precision
from calculator.resolution import resolve
from calculator.techniques.pipeline import parts_of
from tests.calculator.whole import peaks_of_gpus

PLAN = Plan(
    sequence_length=64, precision=Precision.HALF, pipeline_parallel=4, accumulation=6
)  # 1f1b
GPIPE = replace(PLAN, pipeline_schedule=PipelineSchedule.GPIPE)
INTERLEAVED = replace(PLAN, pipeline_schedule=PipelineSchedule.INTERLEAVED, accumulation=8)
LLAMA = "meta-llama/Llama-3.1-8B"


@pytest.mark.parametrize("plan", [PLAN, GPIPE, INTERLEAVED, replace(PLAN, checkpointing="full")])
def test_the_report_is_of_the_fullest_of_all_gpus(plan: Plan) -> None:
    model = find_model(LLAMA)
    peaks, report = peaks_of_gpus(model, resolve(model, plan)), estimate(model, plan)
    assert len(peaks) == 4
    assert report.gpu.total == max(peaks) == totals(model, plan).gpu
    assert least(model, plan) <= max(peaks)
    named = "GPU" if plan is INTERLEAVED else "stage"
    notes = " ".join(report.notes)
    assert f"{named} {peaks.index(max(peaks)) + 1} of 4" in notes


def test_parts_alike_are_counted_once() -> None:
    model = find_model(LLAMA)

    def counted(plan: Plan) -> list[int]:
        return [part.numbers["rank"] for part in parts_of(model, resolve(model, plan))]

    assert counted(replace(PLAN, accumulation=16)) == [0, 1, 3]
    # 5 stages of 7, 7, 6, 6 and 6 layers
    assert counted(replace(PLAN, pipeline_parallel=5)) == [0, 1, 2, 4]
    # 4 GPUs with 8 stages of 4 layers each; 3 GPUs with 6 stages of 6, 6, 5, 5, 5 and 5
    assert counted(INTERLEAVED) == [0, 1, 3]
    assert counted(replace(INTERLEAVED, pipeline_parallel=3)) == [0, 1, 2]
