"""The last resort: the fewest GPUs of one kind on which FSDP's shards of a step fit."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from calculator.architecture import USUAL_LENGTH, Architecture
from calculator.catalog import Gpu
from calculator.estimate import lawful_totals
from calculator.models.registry import type_of
from calculator.plan import (
    ActivationOffload,
    Checkpointing,
    ChunkedLoss,
    DataParallel,
    Offload,
    Plan,
    Precision,
)
from calculator.planner.need import Need, need_at
from calculator.presets import USUAL_RANK
from calculator.techniques.lora import ALL_LINEAR
from calculator.units import format_count

# as many as machines of 8 come in; more are rarely one job's
WORLDS: Final = (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
ADAPTERS: Final = f"LoRA of rank {USUAL_RANK} on 16-bit weights"
IN_RAM: Final = "shards in RAM"


@dataclass(frozen=True, slots=True)
class Several:
    """A plan for several GPUs, what each needs, its RAM, and what had to change, in words."""

    plan: Plan
    need: Need
    ram: int
    words: str


def fewest_in_steps(architecture: Architecture, plan: Plan, gpu: Gpu) -> Iterator[Several | None]:
    """After each estimate None, until some number of GPUs holds the step.

    First comes the plan as it is, with what FSDP has for autocast and for offload; then layers are
    computed again too, and then sequences are shorter. An end without a find means that no number
    of GPUs helps. A plan for several GPUs is tried on as many of them first.
    """
    yield from _fewest(architecture, plan, gpu, ())


def fewest_for_adapters_in_steps(
    architecture: Architecture, plan: Plan, gpu: Gpu
) -> Iterator[Several | None]:
    """The same for adapters in the place of the model's own weights, which are then in 16 bits."""
    adapted = replace(
        plan,
        lora=USUAL_RANK,
        lora_targets=plan.lora_targets or ALL_LINEAR,
        precision=Precision.HALF,
    )
    yield from _fewest(architecture, adapted, gpu, (ADAPTERS,))


def fewest_with_ram_in_steps(
    architecture: Architecture, plan: Plan, gpu: Gpu
) -> Iterator[Several | None]:
    """The same with the shards, their gradients and states in RAM, and the update there."""
    yield from _fewest(architecture, replace(plan, cpu_offload=True), gpu, (IN_RAM,))


def _fewest(
    architecture: Architecture, plan: Plan, gpu: Gpu, already: tuple[str, ...]
) -> Iterator[Several | None]:
    if not type_of(architecture).counted:
        return
    for whole, changes in _tries(architecture, plan, already):
        for gpus in _worlds(plan):
            tried = _shared(whole, gpus).on(gpu)
            found = lawful_totals(architecture, tried, gpu.memory.__ge__)
            need = found and need_at(architecture, tried, found.gpu, gpu.memory)
            if found and need and need.fits(gpu.memory):
                yield Several(tried, need, found.ram, _in_words(changes))
                return
            yield None


def _tries(
    architecture: Architecture, plan: Plan, changes: tuple[str, ...]
) -> Iterator[tuple[Plan, tuple[str, ...]]]:
    """The plan, checkpointed, and with shorter sequences too; each with its changes in words."""
    yield plan, changes
    if plan.checkpointing is not Checkpointing.FULL:
        plan, changes = replace(plan, checkpointing=Checkpointing.FULL), (*changes, "checkpointing")
        yield plan, changes
    if (plan.sequence_length or 0) > USUAL_LENGTH:
        shorter = replace(plan, sequence_length=USUAL_LENGTH)
        yield shorter, (*changes, f"{format_count(USUAL_LENGTH)} tokens")


def _worlds(plan: Plan) -> list[int]:
    """Numbers of GPUs to try: those of the plan too, unless they share its step already."""
    least_gpus = plan.all_gpus + 1 if plan.is_sharded else max(2, plan.all_gpus)
    return sorted({gpus for gpus in (*WORLDS, plan.all_gpus) if gpus >= least_gpus})


def _in_words(changes: tuple[str, ...]) -> str:
    """FSDP and what else changes, as a list.

    >>> _in_words(("checkpointing", "2,048 tokens"))
    'FSDP, checkpointing and 2,048 tokens'
    """
    *first, last = ("FSDP", *changes)
    return f"{', '.join(first)} and {last}" if first else last


def _shared(plan: Plan, gpus: int) -> Plan:
    precision = Precision.MIXED if plan.precision is Precision.AMP else plan.precision
    return replace(
        plan,
        gpus=gpus,
        data_parallel=DataParallel.FSDP,
        precision=precision,
        offload=Offload.NONE,
        activation_offload=ActivationOffload.NONE,
        chunked_loss=ChunkedLoss.NONE,
        update_in_backward=False,
        tensor_parallel=1,
        sequence_parallel=False,
        context_parallel=1,
        expert_parallel=1,
        pipeline_parallel=1,
        optimizer_bits=None,  # type: ignore[arg-type]  # the precision's own
        paged_optimizer=False,
    )
