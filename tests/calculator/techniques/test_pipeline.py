"""Stages of a pipeline; measured rows hold whole steps."""

from dataclasses import replace
from typing import Any

import pytest

from calculator.catalog import find_model
from calculator.curve import curve
from calculator.errors import InputError
from calculator.estimate import estimate, least, stage_peaks, totals
from calculator.page.answer import answer
from calculator.plan import PipelineSchedule, Plan, Precision
from calculator.report import Phase
from calculator.resolution import resolve
from calculator.techniques.pipeline import layers_of, stage_of, stages_of
from calculator.techniques.turns import turns_of

PLAN = Plan(
    sequence_length=64, precision=Precision.HALF, pipeline_parallel=4, accumulation=6
)  # 1f1b
GPIPE = replace(PLAN, pipeline_schedule=PipelineSchedule.GPIPE)
LLAMA = "meta-llama/Llama-3.1-8B"
# its config.json
LAYERS, WIDTH, HEADS, KEYS, HEAD, FEED, WORDS = 32, 4096, 32, 8, 128, 14_336, 128_256
TABLE = WORDS * WIDTH
LAYER = (2 * HEADS + 2 * KEYS) * HEAD * WIDTH + 3 * FEED * WIDTH + 2 * WIDTH
STREAM = 64 * WIDTH * 2  # bytes that a micro-batch moves


@pytest.mark.parametrize("stages", [2, 4, 8])
def test_the_last_stage_has_the_output_layer_and_the_final_norm_beside_its_layers(
    stages: int,
) -> None:
    plan = replace(PLAN, pipeline_parallel=stages, accumulation=8)
    report = estimate(find_model(LLAMA), plan)
    memory = report.phases[Phase.UPDATE]
    held = 2 * (LAYERS // stages * LAYER + TABLE + WIDTH)  # bytes
    assert f"stage {stages} of {stages}" in " ".join(report.notes)
    assert memory.gradients == held
    assert memory.optimizer == 2 * held
    assert memory.weights - held < 4096  # and the rotary table
    assert report.parameters == 2 * TABLE + LAYERS * LAYER + WIDTH == 8_030_261_248


def test_each_layer_belongs_to_one_stage_and_the_first_stages_have_one_more() -> None:
    for layers, stages in ((7, 2), (32, 5), (16, 16), (126, 16)):
        parts = [layers_of(layers, stages, place) for place in range(stages)]
        assert [layer for part in parts for layer in part] == [*range(layers)]
        sizes = [len(part) for part in parts]
        assert sizes == sorted(sizes, reverse=True)
        assert max(sizes) - min(sizes) <= 1


def test_gpipe_sends_all_forward_first_and_1f1b_has_fewer_in_flight_at_later_stages() -> None:
    # torch.distributed.pipelining: warm-up of stages - place micro-batches, then one of each kind
    def order(plan: Plan, place: int) -> str:
        found = turns_of(plan, place)
        assert found is not None
        return " ".join(f"{'F' if forward else 'B'}{number}" for forward, number in found.passes)

    short = replace(PLAN, pipeline_parallel=3, accumulation=4)
    assert order(short, 0) == "F0 F1 F2 B0 F3 B1 B2 B3"
    assert order(short, 1) == "F0 F1 B0 F2 B1 F3 B2 B3"
    assert order(short, 2) == "F0 B0 F1 B1 F2 B2 F3 B3"
    assert order(replace(short, pipeline_schedule="gpipe"), 1) == "F0 F1 F2 F3 B0 B1 B2 B3"


def test_micro_batches_in_flight_are_what_a_schedule_saves() -> None:
    model = find_model(LLAMA)
    long = replace(GPIPE, sequence_length=1024)
    few, many = (
        estimate(model, plan).gpu.total for plan in (replace(long, pipeline_schedule="1f1b"), long)
    )
    assert few < many
    more = estimate(model, replace(long, accumulation=12)).gpu.total
    assert more - many > 6 * 16 * STREAM  # outputs and buffers alone


@pytest.mark.parametrize("plan", [PLAN, GPIPE, replace(PLAN, checkpointing="full")])
def test_the_report_is_of_the_fullest_of_all_stages(plan: Plan) -> None:
    model = find_model(LLAMA)
    resolved = resolve(model, plan)
    peaks = stage_peaks(model, resolved)
    assert len(peaks) == 4
    assert estimate(model, plan).gpu.total == max(peaks) == totals(model, plan).gpu
    assert least(model, plan) <= max(peaks)
    assert f"stage {peaks.index(max(peaks)) + 1} of 4" in " ".join(estimate(model, plan).notes)


def test_stages_alike_are_counted_once() -> None:
    model = find_model(LLAMA)
    found = [*stages_of(model, resolve(model, replace(PLAN, accumulation=16)))]
    assert [stage.numbers["stage"] for stage in found] == [0, 1, 3]
    # 5 stages of 7, 7, 6, 6 and 6 layers
    uneven = resolve(model, replace(PLAN, pipeline_parallel=5))
    assert [stage.numbers["stage"] for stage in stages_of(model, uneven)] == [0, 1, 2, 4]


def test_a_stage_has_the_kinds_of_its_own_layers() -> None:
    model = replace(
        find_model("Qwen/Qwen2.5-0.5B"),
        layers=7,
        pattern=("full_attention",) * 3 + ("sliding_attention",) * 4,
    )
    kinds = [stage_of(model, replace(PLAN, pipeline_parallel=3), n).pattern for n in range(3)]
    full, sliding = "full_attention", "sliding_attention"
    assert kinds == [(full,), (sliding,), (sliding,)]


def test_each_micro_batch_crosses_every_border_of_a_stage_both_ways() -> None:
    (sent,) = estimate(find_model(LLAMA), PLAN).collectives
    # the last stage sends gradients only, the others outputs too
    assert sent.sizes == (STREAM,) * 6
    (wide,) = estimate(find_model(LLAMA), replace(PLAN, precision="amp")).collectives
    assert wide.sizes == (2 * STREAM,) * 6  # autocast leaves the residual stream in 32 bits


def test_the_curve_ends_as_the_report() -> None:
    model = find_model("Qwen/Qwen2.5-0.5B")
    for schedule in PipelineSchedule:
        plan = replace(
            PLAN, pipeline_schedule=schedule, tied_embeddings=False, checkpointing="full"
        )
        assert curve(model, plan).peak.memory.total == estimate(model, plan).gpu.total


@pytest.mark.parametrize(
    ("model", "options", "rule"),
    [
        (LLAMA, {"pipeline_parallel": 33, "accumulation": 40}, "must be at most 32"),
        ("gpt2-s", {}, "was measured for llama.*not for gpt2: must be 1"),
        (LLAMA, {"gpus": 2}, "gpus = 2"),
        (LLAMA, {"tensor_parallel": 2}, "tensor_parallel = 2"),
        (LLAMA, {"lora": 8}, "lora = 8"),
        (LLAMA, {"optimizer": "muon"}, "optimizer = muon"),
        (LLAMA, {"offload": "optimizer"}, "offload = optimizer"),
        (LLAMA, {"chunked_loss": "torch"}, "chunked_loss = torch"),
        (LLAMA, {"reversible": True}, "reversible = True"),
        (LLAMA, {"sharing_groups": 4}, "sharing_groups = 4"),
        (LLAMA, {"checkpointing": "full", "checkpoint_every": 2}, "checkpoint_every = 2"),
    ],
)
def test_what_has_too_few_layers_or_was_not_measured_is_refused(
    model: str, options: dict[str, Any], rule: str
) -> None:
    with pytest.raises(InputError, match=f"pipeline_parallel = .*{rule}"):
        resolve(find_model(model), replace(PLAN, **options))


@pytest.mark.parametrize("count", [1, 3])
def test_1f1b_needs_a_micro_batch_for_each_stage_and_gpipe_does_not(count: int) -> None:
    model = find_model(LLAMA)
    with pytest.raises(InputError, match=r"accumulation = .*each of 4 stages: must be at least 4"):
        resolve(model, replace(PLAN, accumulation=count))
    assert resolve(model, replace(GPIPE, accumulation=count)).accumulation == count


def test_more_micro_batches_than_are_counted_are_refused() -> None:
    with pytest.raises(InputError, match=r"accumulation = .*must be at most 64"):
        resolve(find_model(LLAMA), replace(PLAN, accumulation=65))


def test_tied_embeddings_would_be_on_two_gpus() -> None:
    model = find_model("Qwen/Qwen2.5-0.5B")
    with pytest.raises(InputError, match=r"tied_embeddings = .*on different GPUs: must be false"):
        resolve(model, PLAN)
    assert resolve(model, replace(PLAN, tied_embeddings=False)).pipeline_parallel == 4


def test_the_page_names_the_fullest_stage_and_what_moves() -> None:
    value = answer(
        {
            "model": LLAMA,
            "sequence_length": "128",
            "pipeline_parallel": "5",
            "accumulation": "5",
            "pipeline_schedule": "gpipe",
        }
    )
    notes = " ".join(value["report"]["notes"])
    assert "of 5, which holds the most" in notes
    assert "5 stages do not divide 32 layers evenly: the first 2 have one more each" in notes
    assert "each micro-batch moves 2.00 MiB forward, and as much backward" in notes
    (row,) = [row for row in value["savings"] if row["option"] == "pipeline_parallel"]
    assert row["gpu"] > 0
    assert "--pipeline-parallel 5" in value["command"]
    assert "--pipeline-schedule gpipe" in value["command"]
