"""The last resort: the fewest GPUs of one kind on which FSDP's shards of a step fit."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from calculator.architecture import Architecture
from calculator.catalog.gpus import Gpu
from calculator.errors import InputError
from calculator.estimate import totals_within
from calculator.plan import (
    ActivationOffload,
    Checkpointing,
    ChunkedLoss,
    DataParallel,
    Offload,
    Plan,
    Precision,
)
from calculator.planner.changes import USUAL_LENGTH
from calculator.planner.need import Need, need_of_peak
from calculator.techniques.fsdp import MEASURED
from calculator.units import format_count

# as many as machines of 8 come in; more are rarely one job's
WORLDS: Final = (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


@dataclass(frozen=True, slots=True)
class Several:
    """A plan for several GPUs, what each needs, and what else had to change, in words."""

    plan: Plan
    need: Need
    beside: str


def fewest_in_steps(architecture: Architecture, plan: Plan, gpu: Gpu) -> Iterator[Several | None]:
    """After each estimate None, until some number of GPUs holds the step.

    First comes the plan as it is, with what FSDP has for autocast and for offload; then layers are
    computed again too, and then sequences are shorter. An end without a find means that no number
    of GPUs helps.
    """
    if architecture.family not in MEASURED:
        return
    again = replace(plan, checkpointing=Checkpointing.FULL)
    tokens = f", checkpointing and {format_count(USUAL_LENGTH)} tokens"
    tries = [(plan, ""), (again, " and checkpointing")]
    if (plan.sequence_length or architecture.sequence_length) > USUAL_LENGTH:
        tries.append((replace(again, sequence_length=USUAL_LENGTH), tokens))
    for whole, beside in tries:
        for gpus in WORLDS:
            if gpus > plan.gpus:
                tried = _shared(whole, gpus)
                need = _need(architecture, tried, gpu)
                fits = need is not None and need.fits(gpu.memory)
                if fits and need is not None:
                    yield Several(tried, need, beside if whole != plan else "")
                    return
                yield None


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
        optimizer_bits=None,  # type: ignore[arg-type]  # the precision's own
    )


def _need(architecture: Architecture, plan: Plan, gpu: Gpu) -> Need | None:
    """The need of each GPU; None where its shards alone are too large, or for a refused plan."""
    try:
        found = totals_within(architecture, plan, gpu.memory.__ge__)
    except InputError:
        return None
    return None if found is None else need_of_peak(found.gpu, gpu.generation)
