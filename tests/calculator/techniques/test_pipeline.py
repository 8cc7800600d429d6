"""Stages of a pipeline; measured rows hold whole steps."""

from dataclasses import replace
from typing import Any

import pytest

from calculator.catalog import find_model
from calculator.errors import InputError
from calculator.estimate import estimate, least, static_of, totals
from calculator.plan import PipelineSchedule, Plan, Precision
from calculator.report import Phase
from calculator.resolution import resolve
from calculator.techniques.pipeline import layers_of, part_of, parts_of, stages_in
from calculator.techniques.turns import turns_of
from tests.calculator.whole import peaks_of_gpus

PLAN = Plan(
    sequence_length=64, precision=Precision.HALF, pipeline_parallel=4, accumulation=6
)  # 1f1b
GPIPE = replace(PLAN, pipeline_schedule=PipelineSchedule.GPIPE)
INTERLEAVED = replace(PLAN, pipeline_schedule=PipelineSchedule.INTERLEAVED, accumulation=8)
SEVERAL = {"pipeline_schedule": "interleaved"}
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


def order(plan: Plan, rank: int) -> str:
    """The passes of a GPU, as torch names them: of its own stage, where it has several."""
    found = turns_of(plan, rank)
    assert found is not None
    stages = [each.stage if found.stages > 1 else "" for each in found.passes]
    return " ".join(
        f"{stage}{'F' if each.is_forward else 'B'}{each.micro_batch}"
        for stage, each in zip(stages, found.passes, strict=True)
    )


def test_gpipe_sends_all_forward_first_and_1f1b_has_fewer_in_flight_at_later_stages() -> None:
    # torch.distributed.pipelining: warm-up of stages - place micro-batches, then one of each kind
    short = replace(PLAN, pipeline_parallel=3, accumulation=4)
    assert order(short, 0) == "F0 F1 F2 B0 F3 B1 B2 B3"
    assert order(short, 1) == "F0 F1 B0 F2 B1 F3 B2 B3"
    assert order(short, 2) == "F0 B0 F1 B1 F2 B2 F3 B3"
    assert (
        order(replace(short, pipeline_schedule=PipelineSchedule.GPIPE), 1)
        == "F0 F1 F2 F3 B0 B1 B2 B3"
    )


def test_interleaved_micro_batches_pass_in_rounds_through_the_stages_of_a_gpu() -> None:
    # Narayanan et al. 2021 (figure 4): the first and the last of 4 devices with 2 chunks each
    plan = replace(INTERLEAVED, pipeline_stages=2, accumulation=8)
    first = (
        "0F0 0F1 0F2 0F3 1F0 1F1 1F2 1F3 0F4 0F5 0F6 1B0 0F7 1B1 1F4 1B2 1F5 1B3 1F6 0B0 1F7 "
        "0B1 0B2 0B3 1B4 1B5 1B6 1B7 0B4 0B5 0B6 0B7"
    )
    assert order(plan, 0) == first
    last = (
        "0F0 0F1 0F2 0F3 1F0 1B0 1F1 1B1 1F2 1B2 1F3 1B3 0F4 0B0 0F5 0B1 0F6 0B2 0F7 0B3 "
        "1F4 1B4 1F5 1B5 1F6 1B6 1F7 1B7 0B4 0B5 0B6 0B7"
    )
    assert order(plan, 3) == last


def test_micro_batches_in_flight_are_what_a_schedule_saves() -> None:
    model = find_model(LLAMA)
    long = replace(GPIPE, sequence_length=1024)
    few, many = (
        estimate(model, plan).gpu.total for plan in (replace(long, pipeline_schedule="1f1b"), long)
    )
    assert few < many
    more = estimate(model, replace(long, accumulation=12)).gpu.total
    assert more - many > 6 * 16 * STREAM  # outputs and buffers alone


@pytest.mark.parametrize("plan", [PLAN, GPIPE, INTERLEAVED, replace(PLAN, checkpointing="full")])
def test_the_report_is_of_the_fullest_of_all_gpus(plan: Plan) -> None:
    model = find_model(LLAMA)
    resolved = resolve(model, plan)
    peaks = peaks_of_gpus(model, resolved)
    assert len(peaks) == 4
    assert estimate(model, plan).gpu.total == max(peaks) == totals(model, plan).gpu
    assert least(model, plan) <= max(peaks)
    named = "GPU" if plan is INTERLEAVED else "stage"
    notes = " ".join(estimate(model, plan).notes)
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


def test_a_gpu_has_the_layers_of_all_its_stages() -> None:
    model = find_model("Qwen/Qwen2.5-0.5B")
    model = replace(model, layers=7, pattern=("full_attention",) * 3 + ("sliding_attention",) * 4)

    def kinds(plan: Plan, rank: int) -> list[tuple[str, ...]]:
        plan = resolve(model, replace(plan, tied_embeddings=False))
        stages = [*stages_in(part_of(model, plan, rank), plan)]
        assert all(stage.layers >= len(stage.pattern) for stage in stages)
        return [stage.pattern for stage in stages]

    full, sliding = "full_attention", "sliding_attention"
    three = replace(PLAN, pipeline_parallel=3)
    assert [kinds(three, rank) for rank in range(3)] == [[(full,)], [(sliding,)], [(sliding,)]]
    # layers 0 and 1, 2 and 3, 4 and 5, 6 in four stages on two GPUs
    two = replace(INTERLEAVED, pipeline_parallel=2)
    assert kinds(two, 0) == [(full,), (sliding,)]
    assert kinds(two, 1) == [(full, sliding), (sliding,)]


def test_layers_in_several_stages_are_the_same_layers() -> None:
    model = find_model(LLAMA)
    resolved = resolve(model, INTERLEAVED)
    held = [static_of(part_of(model, resolved, rank), resolved)[1] for rank in range(4)]
    assert sum(held) == estimate(model, INTERLEAVED).parameters == 8_030_261_248
    assert resolved.pipeline_stages == 2


def test_each_micro_batch_crosses_every_border_of_a_stage_both_ways() -> None:
    (sent,) = estimate(find_model(LLAMA), PLAN).collectives
    # the last stage sends gradients only, the others outputs too
    assert sent.sizes == (STREAM,) * 6
    (several,) = estimate(find_model(LLAMA), INTERLEAVED).collectives
    assert several.sizes == (STREAM,) * 24  # stage 4 sends both ways, stage 8 gradients only
    (wide,) = estimate(find_model(LLAMA), replace(PLAN, precision="amp")).collectives
    assert wide.sizes == (2 * STREAM,) * 6  # autocast leaves the residual stream in 32 bits


@pytest.mark.parametrize("count", [1, 3])
def test_1f1b_needs_a_micro_batch_for_each_stage_and_gpipe_does_not(count: int) -> None:
    model = find_model(LLAMA)
    with pytest.raises(InputError, match=r"accumulation = .*each of 4 stages: must be at least 4"):
        resolve(model, replace(PLAN, accumulation=count))
    assert resolve(model, replace(GPIPE, accumulation=count)).accumulation == count


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"pipeline_stages": 1, **SEVERAL}, "several stages on each GPU: must be at least 2"),
        ({"pipeline_stages": 33, **SEVERAL}, "each has a layer, of 32"),
        ({"pipeline_stages": 2}, "1f1b has one stage on each GPU: must be 1"),
        ({"pipeline_stages": 3, "pipeline_schedule": "gpipe"}, "gpipe has one stage"),
    ],
)
def test_only_an_interleaved_schedule_has_several_stages_per_gpu(
    options: dict[str, Any], rule: str
) -> None:
    with pytest.raises(InputError, match=f"pipeline_stages = .*{rule}"):
        resolve(find_model(LLAMA), replace(PLAN, accumulation=8, **options))


def test_interleaved_rounds_have_equal_numbers_of_micro_batches() -> None:
    model = find_model(LLAMA)
    # 4 GPUs: 10 micro-batches are two rounds of 5, 3 are one round, 9 are no two equal ones
    for count in (3, 4, 8, 10):
        assert resolve(model, replace(INTERLEAVED, accumulation=count)).accumulation == count
    with pytest.raises(
        InputError, match=r"accumulation = .*9 micro-batches in 2 equal rounds.*of 2"
    ):
        resolve(model, replace(INTERLEAVED, accumulation=9))


def test_each_end_of_a_pipeline_has_the_table_of_tied_embeddings() -> None:
    model = find_model("Qwen/Qwen2.5-0.5B")
    plan = resolve(model, replace(PLAN, pipeline_parallel=2))
    table = 151_936 * 896  # its config.json
    parts = [static_of(part_of(model, plan, rank), plan) for rank in range(2)]
    assert sum(held for _, held, _ in parts) == estimate(model, plan).parameters + table
    sent, summed = estimate(model, plan).collectives
    assert (sent.name, summed.name) == ("send", "all_reduce")
    assert summed.sizes == (2 * table,)
    assert "have the table of the tied embeddings each" in " ".join(estimate(model, plan).notes)
    (untied,) = estimate(model, replace(plan, tied_embeddings=False)).collectives
    assert untied == sent
    frozen = estimate(model, replace(PLAN, pipeline_parallel=2, lora=8)).collectives
    assert [each.name for each in frozen] == ["send"]


def test_a_stage_between_the_ends_has_no_table() -> None:
    model = find_model("gpt2-s")
    plan = resolve(model, replace(PLAN, pipeline_parallel=3))
    first, middle, last = (static_of(part_of(model, plan, rank), plan)[1] for rank in range(3))
    # tokens and positions; final norm and output layer, of GPT-2's sizes
    assert first - middle == (50_257 + 1024) * 768
    assert last - middle == 50_257 * 768 + 2 * 768
