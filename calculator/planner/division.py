"""The changes that the adviser knows for several GPUs: other divisions among as many of them.

Their number stays, and so do the sequences of an update: where fewer are read at once, more
micro-batches make up for it.
"""

from collections.abc import Callable
from math import gcd
from typing import Final

from calculator.plan import ContextRotation, DataParallel, PipelineSchedule, Plan, Precision
from calculator.planner.change import (
    DIVISION,
    LENGTH,
    Change,
    Cost,
    accumulated,
    change,
    has_class,
    has_experts,
    setting,
)
from calculator.techniques.context_parallel import MOST_TURNS

# more GPUs rarely have links that are fast enough for sums in every layer
MOST_IN_A_MACHINE: Final = 8
# in a pipeline that is proposed: the time of an estimate grows with them
MOST_MICRO_BATCHES: Final = 16
COPIES: Final = (DataParallel.DDP, DataParallel.DDP_VIEW)


def most_parts(gpus: int, length: int, most: int = MOST_TURNS) -> int:
    """The most GPUs of so many that can divide a sequence: each has two chunks of it.

    >>> most_parts(8, 4096), most_parts(8, 1004), most_parts(96, 9216)
    (8, 2, 48)
    """
    common = gcd(gpus, length // 2) if length % 2 == 0 else 1
    return max(parts for parts in range(1, min(common, most) + 1) if common % parts == 0)


def _views(plan: Plan) -> Plan | None:
    """Gradients as views of their buckets, which PyTorch has after a single pass."""
    if plan.replicas == 1 or plan.data_parallel is not DataParallel.DDP or plan.accumulation > 1:
        return None
    return plan.but(data_parallel=DataParallel.DDP_VIEW)


def _shared_states(plan: Plan) -> Plan | None:
    """The states of some weights on each GPU, where each has a copy of all."""
    if plan.replicas == 1 or plan.data_parallel not in COPIES:
        return None
    return plan.but(data_parallel=DataParallel.ZERO1)


def _shards(way: DataParallel) -> Callable[[Plan], Plan | None]:
    """Shards in the place of copies; FSDP has a mixed precision of its own for autocast."""

    def apply(plan: Plan) -> Plan | None:
        if plan.replicas == 1 or plan.data_parallel is way:
            return None
        precision = Precision.MIXED if plan.precision is Precision.AMP else plan.precision
        return plan.but(data_parallel=way, precision=precision)

    return apply


def _parts(plan: Plan) -> Plan | None:
    """Sequences divided among as many GPUs as can."""
    before, parts = plan.context_parallel, most_parts(plan.replicas, plan.sequence_length)
    if parts % before or parts == before:
        return None
    return accumulated(plan.but(context_parallel=parts), parts // before)


def _fewer_parts(share: int) -> Callable[[Plan], Plan | None]:
    """Sequences divided among so many times fewer GPUs, with fewer micro-batches."""

    def apply(plan: Plan) -> Plan | None:
        parts, some = divmod(plan.context_parallel, share)
        micro_batches, others = divmod(plan.accumulation, share)
        if some or others or parts == 1:
            return None
        return plan.but(context_parallel=parts, accumulation=micro_batches)

    return apply


def _has_copies(plan: Plan) -> bool:
    """True if each of several GPUs has a copy of the weights, and reads sequences of its own."""
    return plan.replicas > 1 and plan.context_parallel == 1 and not plan.is_sharded


def _one_micro_batch(plan: Plan, **values: object) -> Plan | None:
    """All GPUs compute one micro-batch together, and as many more of them after one another."""
    return accumulated(plan, plan.replicas, gpus=1, data_parallel=DataParallel.DDP, **values)


def _layers(plan: Plan) -> Plan | None:
    """A share of every layer on each GPU, and of the tokens between the products if they divide."""
    if not _has_copies(plan) or plan.replicas > MOST_IN_A_MACHINE:
        return None
    even = plan.sequence_length % plan.replicas == 0
    return _one_micro_batch(plan, tensor_parallel=plan.replicas, sequence_parallel=even)


def _experts(plan: Plan) -> Plan | None:
    """A share of the experts on each GPU."""
    if not _has_copies(plan):
        return None
    return _one_micro_batch(plan, expert_parallel=plan.replicas)


def _stages(plan: Plan) -> Plan | None:
    """Consecutive layers on each GPU."""
    if not _has_copies(plan) or plan.accumulation * plan.replicas > MOST_MICRO_BATCHES:
        return None
    schedule = PipelineSchedule.ONE_FORWARD_ONE_BACKWARD
    return _one_micro_batch(
        plan, pipeline_parallel=plan.replicas, pipeline_schedule=schedule, pipeline_stages=None
    )


def _tokens_between(plan: Plan) -> Plan | None:
    """A share of the tokens on each GPU between the products of a divided layer."""
    if plan.tensor_parallel == 1 or plan.sequence_length % plan.tensor_parallel:
        return None
    return setting(sequence_parallel=True)(plan)


def _in_turn(before: PipelineSchedule) -> Callable[[Plan], Plan | None]:
    """Forward and backward passes in turn, in a pipeline with that other schedule."""

    def apply(plan: Plan) -> Plan | None:
        if plan.pipeline_parallel == 1 or plan.pipeline_schedule is not before:
            return None
        schedule = PipelineSchedule.ONE_FORWARD_ONE_BACKWARD
        return plan.but(pipeline_schedule=schedule, pipeline_stages=None)

    return apply


def _passed_on(plan: Plan) -> Plan | None:
    """Keys and values from one GPU to the next, where several divide a sequence."""
    if plan.context_parallel == 1:
        return None
    return setting(context_rotation=ContextRotation.ALL_TO_ALL)(plan)


def _sequences(apply: Callable[[Plan], Plan | None], lesser: tuple[Change, ...] = ()) -> Change:
    return change(
        "context parallel", Cost.LINKS, apply, lesser=lesser, about=LENGTH, is_for=has_class
    )


GATHERED_ONCE: Final = change("ZeRO 2", Cost.EFFICIENCY, _shards(DataParallel.ZERO2))
SHARDED: Final = change(
    "FSDP",
    Cost.LITTLE_TIME,
    _shards(DataParallel.FSDP),
    lesser=(GATHERED_ONCE,),
    about=DIVISION,
    is_for=has_class,
)
DIVISIONS: Final = (
    change("gradients in buckets", Cost.NOTHING, _views, about=DIVISION),
    change("ZeRO 1", Cost.EFFICIENCY, _shared_states, about=DIVISION),
    SHARDED,
    _sequences(_parts, tuple(_sequences(_fewer_parts(share)) for share in (2, 4, 8, 16, 32))),
    change("keys and values passed on", Cost.EFFICIENCY, _passed_on),
    change("sequence parallel", Cost.NOTHING, _tokens_between),
    change("1F1B", Cost.NOTHING, _in_turn(PipelineSchedule.GPIPE)),
    change("1F1B, not interleaved", Cost.LITTLE_TIME, _in_turn(PipelineSchedule.INTERLEAVED)),
    change("expert parallel", Cost.LINKS, _experts, about=DIVISION, is_for=has_experts),
    change("tensor parallel", Cost.LINKS, _layers, about=DIVISION, is_for=has_class),
    change("pipeline", Cost.LINKS, _stages, about=DIVISION, is_for=has_class, is_slow=True),
)
