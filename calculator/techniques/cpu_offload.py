"""FSDP2's shards in RAM, with their gradients and states: `CPUOffloadPolicy`.

A unit's shards are copied to the GPU each time that it is gathered, and the shard of its gradients
goes to RAM as soon as it is reduced; the update is computed there. Shards and gradients are in
pinned RAM, of which PyTorch rounds each tensor up to a power of two, and states are not.

Source: fsdp2, torch (distributed/fsdp/_fully_shard/_fsdp_param.py, _fsdp_collectives.py)
"""

from collections.abc import Iterator, Sequence
from typing import Final

from calculator.allocator import round_pinned
from calculator.autograd.ledger import FETCHED, STORED
from calculator.peaks.chunks import noted_bytes
from calculator.peaks.step import Prepared
from calculator.peaks.trace import record
from calculator.plan import Plan
from calculator.techniques.gradient_scaler import UNSCALING, kept_bytes, scaler_moved
from calculator.tensors import ParameterTensor, Statics

CPU_OFFLOAD_NOTE: Final = (
    "All shards, their gradients and states are in RAM, and the update is computed there. With "
    "CPUOffloadPolicy's default, pinned RAM, PyTorch rounds each shard and each gradient up to a "
    "power of two."
)


def in_ram(
    static: Statics,
    shards: Sequence[ParameterTensor],
    buffers: int,
    plan: Plan,
) -> Statics:
    """The same with all shards in RAM."""
    trained = [each for each in shards if each.trained]
    return Statics(
        weights=buffers,
        gradients=0,
        ram_weights=sum(_pinned(shards, plan)),
        ram_gradients=sum(_pinned(trained, plan)),
        optimizer=kept_bytes(plan),
        update=UNSCALING // 2 if plan.gradient_scaler else 0,  # the copies are in RAM
        ram_optimizer=static.optimizer - kept_bytes(plan),
        ram_update=static.update,
    )


def moved_shards(prepared: Prepared, plan: Plan) -> tuple[int, int]:
    """Bytes that go to RAM in a step, and that come from there."""
    if not plan.cpu_offload:
        return 0, 0
    chunks = record(prepared.step).chunks
    often = plan.accumulation if plan.pipeline_parallel == 1 else 1
    stored, fetched = (
        sum(noted_bytes(chunks, name, prepared.numbers, prepared.left_out)) * often
        for name in (STORED, FETCHED)
    )
    to_ram, to_gpu = scaler_moved(plan)
    return stored + to_ram, fetched + to_gpu


def _pinned(shards: Sequence[ParameterTensor], plan: Plan) -> Iterator[int]:
    for each in shards:
        whole = each.elements * (each.width or plan.weight_bytes)
        yield each.copies * round_pinned(-(-whole // each.packed))
