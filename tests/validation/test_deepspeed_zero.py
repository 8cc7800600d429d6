"""DeepSpeed's ZeRO holds what its rules say, and our plans beside it what theirs do."""

from importlib.util import find_spec
from typing import Any

import pytest

from calculator.estimate import estimate
from calculator.parameters import parameter_tensors
from validation.configuration import parse
from validation.deepspeed_zero import PLANS, Run, counted, held, measure, published, read_runs

MEASURED = read_runs()
DIVIDED = [(run, row) for run, row in MEASURED if not run.persistent]


def name(run: Run) -> str:
    whole = "-default" if run.persistent else ""
    return f"{run.model.split('/')[-1]}-{run.gpus}-stage{run.stage}{whole}"


def sizes(run: Run) -> list[int]:
    tensors = parameter_tensors(run.ours.architecture, run.ours.resolved)
    return [item.elements for item in tensors for _ in range(item.copies)]


def check_one_flat_tensor(run: Run, rank: dict[str, int]) -> None:
    """Stages 1 and 2: all weights in a row, padded to a multiple of 2 elements for each GPU."""
    padded = sum(sizes(run)) + -sum(sizes(run)) % (2 * run.gpus)
    assert rank["weights"] == 2 * padded
    assert rank["masters"] == 4 * padded // run.gpus
    assert rank["moments"] == 8 * padded // run.gpus + 4  # the number of steps, once


def check_shards(run: Run, rank: dict[str, int]) -> None:
    """Stage 3: each weight padded to a multiple of the GPUs, and small ones whole beside it."""
    padded = {size: size + -size % run.gpus for size in sizes(run)}
    part = sum(padded[size] for size in sizes(run)) // run.gpus
    whole = sum(padded[size] for size in sizes(run) if size <= run.persistent)
    assert rank["weights"] == 2 * part + 2 * whole
    assert rank["masters"] == 4 * part
    assert rank["moments"] == 8 * part + 4
    assert rank["gradients_between_micro_batches"] == rank["gradients"] == 2 * part


def check_row(run: Run, row: dict[str, Any]) -> None:
    every, largest = sum(sizes(run)), max(sizes(run))
    assert len(row["ranks"]) == run.gpus
    for rank in row["ranks"]:
        assert rank["parameters"] == every
        assert rank["rest"] < 1024  # inputs and some numbers: no part is missing
        (check_shards if run.stage == 3 else check_one_flat_tensor)(run, rank)
    kept = [rank["gradients_between_micro_batches"] for rank in row["ranks"]]
    match run.stage:
        case 1:
            assert kept == [2 * every] * run.gpus
        case 2:  # a tensor on the border of two parts is whole in both
            assert 2 * every <= sum(kept) <= 2 * (every + (run.gpus - 1) * largest)


@pytest.mark.parametrize(("run", "row"), MEASURED, ids=[name(run) for run, _ in MEASURED])
def test_each_rank_holds_what_deepspeeds_rules_of_padding_say(
    run: Run, row: dict[str, Any]
) -> None:
    check_row(run, row)


@pytest.mark.parametrize(("run", "row"), DIVIDED, ids=[name(run) for run, _ in DIVIDED])
def test_weights_and_states_are_those_of_the_papers_equations(
    run: Run, row: dict[str, Any]
) -> None:
    # Rajbhandari et al., 2019, section 5: 2Ψ + 2Ψ + 12Ψ/N, 2Ψ + 14Ψ/N, 16Ψ/N
    every = row["ranks"][0]["parameters"]
    weights, gradients, states = (size / every for size in held(row))
    paper = {1: (2, 2), 2: (2, 2 / run.gpus), 3: (2 / run.gpus, 2 / run.gpus)}[run.stage]
    assert published(run) == pytest.approx((*paper, 12 / run.gpus))
    assert (weights, states) == pytest.approx((paper[0], 12 / run.gpus), rel=1e-4)
    if run.stage != 2:  # there, see `check_row`
        assert gradients == pytest.approx(paper[1], rel=1e-4)


@pytest.mark.parametrize("plan", PLANS.values())
def test_on_one_gpu_each_of_our_plans_has_16_bytes_per_weight_as_deepspeed_has(plan: str) -> None:
    # 2 + 2 + 12, the paper's section 3.1
    alone = parse(f"gpt2-s --sequence-length 16 --precision {plan.split()[-1]}".split())
    report = estimate(alone.architecture, alone.resolved)
    update = next(item for key, item in report.phases.items() if key.value == "update")
    total = update.weights + update.gradients + update.optimizer
    assert total / report.parameters == pytest.approx(16, rel=1e-3)


def test_our_fsdp_keeps_as_many_bytes_and_our_zero2_shards_of_the_weights_alone() -> None:
    for run, row in DIVIDED:
        ours, theirs = counted(run), held(row)
        match run.stage:
            case 3:  # ours are in blocks of 512 bytes, and of whole rows
                assert sum(theirs) < sum(ours) <= 1.005 * sum(theirs)
            case 2:  # PyTorch's 32-bit shards are its masters; its 16-bit weights come on top
                assert ours[0] == pytest.approx(row["ranks"][0]["masters"], rel=0.01)
                assert theirs[0] >= 2 * sum(sizes(run))


@pytest.mark.oracle
@pytest.mark.parametrize("stage", [2, 3])
def test_two_processes_hold_today_what_deepspeeds_rules_say(stage: int) -> None:
    if find_spec("deepspeed") is None:
        pytest.skip("DeepSpeed is not installed: see validation/README.md")
    run = Run("validation/configs/llama.json", 2, stage)
    check_row(run, measure(run))
