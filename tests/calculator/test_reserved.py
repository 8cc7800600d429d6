from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given

import calculator.reserved
from calculator.allocator import OutOfMemoryError
from calculator.catalog import MODELS
from calculator.plan import DataParallel, Plan
from calculator.planner.need import judged
from calculator.reserved import MOST_LAYERS, NO_WORKSPACES, Program, Reserved, Workspaces, reserved
from calculator.units import MiB
from tests.calculator.plans import Case, case_of, cases, examples
from tests.calculator.tallied import counted

NAMES = ("gpt2-s", "bert-base", "meta-llama/Llama-3.2-1B", "google/gemma-2-2b", "t5-base")


@pytest.mark.parametrize(
    ("name", "loop"), [*zip(NAMES[:4], ("function", "script") * 2, strict=True)]
)
def test_outputs_that_a_loop_holds_live_through_the_update(name: str, loop: str) -> None:
    case = case_of(name, "batch_size=2 sequence_length=96 checkpointing=full", loop=loop)
    loss = 512  # which the tape lets go of a little earlier
    assert case.report.gpu.total - loss <= counted(case) <= case.report.gpu.total


@examples(20)
@given(cases())
def test_segments_hold_the_blocks_and_the_blocks_the_tensors_that_are_estimated(case: Case) -> None:
    found, most = reserved(case.architecture, case.plan), counted(case)
    assert case.plan.sharing_groups or most == case.report.gpu.total
    assert most <= found.allocated <= found.reserved
    assert found.reserved % (2 * MiB) == 0


def test_what_is_packed_passes_through_one_segment() -> None:
    # transformers asks for all bytes of the loaded model at once (caching_allocator_warmup), and
    # widens in 32 bits what is not packed: the embeddings' 16-bit form stays in that segment
    case = case_of("Qwen/Qwen2.5-1.5B", "lora=8 quantization=nf4 sequence_length=16")
    weights = case.report.gpu.weights
    narrow_embeddings = 151_936 * 1_536 * 2
    found = reserved(case.architecture, case.plan)
    assert found.reserved >= weights + narrow_embeddings - 64 * MiB


def test_a_card_without_room_is_out_of_memory() -> None:
    case = case_of("gpt2-s")
    found = reserved(case.architecture, case.plan)
    with pytest.raises(OutOfMemoryError):
        reserved(case.architecture, case.plan, limit=found.allocated - 1)
    within = reserved(case.architecture, case.plan, limit=found.reserved - 1)
    assert within.reserved < found.reserved


@pytest.mark.parametrize("expandable", [False, True])
def test_a_program_that_begins_like_another_ends_as_it_does_alone(expandable: bool) -> None:
    case = case_of("gpt2-s")
    plain = Plan.parse({"optimizer": "sgd"})
    plans = [plain, Plan(), Plan(optimizer_bits=8), plain]
    found = reserved(case.architecture, plain, expandable=expandable)
    limits = (None, found.reserved, found.reserved - 1, found.allocated, found.allocated // 2)
    asked = [(plan, limit) for plan in plans for limit in limits]

    def answers(alone: bool) -> Iterator[Reserved | None]:
        for plan, limit in asked:
            calculator.reserved._held.clear()
            if alone:
                calculator.reserved._begun.clear()
            try:
                yield reserved(case.architecture, plan, limit=limit, expandable=expandable)
            except OutOfMemoryError:
                yield None

    assert [*answers(alone=False)] == [*answers(alone=True)]


def test_a_program_that_differs_in_a_workspace_alone_is_another_one() -> None:
    case = case_of("gpt2-s")
    found = [reserved(case.architecture, case.plan, Workspaces(each)) for each in ((), (32 * MiB,))]
    assert found[1].allocated == found[0].allocated + 32 * MiB


def test_expandable_segments_reserve_little_more_than_the_blocks() -> None:
    # nothing but the last page of 20 MiB and what is free in the small pool's
    for name in NAMES[:3]:
        case = case_of(name, "batch_size=4 sequence_length=400")
        found = reserved(case.architecture, case.plan, expandable=True)
        assert found.reserved < reserved(case.architecture, case.plan).reserved


def test_a_model_of_more_layers_than_any_has_is_not_simulated() -> None:
    plan = Plan(lora=8, lora_targets="c_attn")
    for layers, is_simulated in ((MOST_LAYERS, True), (MOST_LAYERS + 1, False)):
        shape = replace(MODELS["gpt2-s"], name="deep", layers=layers)
        assert judged(shape, plan).overhead.is_simulated is is_simulated


def test_programs_with_gradients_in_buckets_are_not_taken_for_others() -> None:
    case = case_of("gpt2-s", "gpus=2 accumulation=2 sequence_length=64")
    copied, viewed = (
        Program(case.architecture, case.but(data_parallel=kind).resolved, NO_WORKSPACES)
        for kind in (DataParallel.DDP, DataParallel.DDP_VIEW)
    )
    assert copied.first_requests[1:] == viewed.first_requests[1:]
    assert copied.first_requests != viewed.first_requests
