"""The share of a step that is there because several GPUs train together."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from calculator.allocator import round_block
from calculator.architecture import Architecture
from calculator.parameters import ParameterTensor, buffer_bytes, parameter_tensors
from calculator.peaks.prepare import Prepared, numbers_of
from calculator.peaks.trace import Trace, bytes_in_order, record
from calculator.plan import Plan
from calculator.states import Statics, statics
from calculator.techniques.data_parallel import Collective, buckets
from calculator.techniques.fsdp import Flat, flat_units, sharded_shape
from calculator.techniques.registry import changed_model
from calculator.units import format_bytes

ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER = "all_reduce", "all_gather", "reduce_scatter"


def collectives(
    architecture: Architecture, prepared: Prepared, plan: Plan
) -> tuple[Collective, ...]:
    """The exchanges of a step between the GPUs: the whole tensor's bytes at each call."""
    if plan.gpus == 1:
        return ()
    if plan.is_sharded:
        return _gathered(flat_units(changed_model(architecture, plan), prepared.numbers), plan)
    return (Collective(ALL_REDUCE, buckets(_arrivals(record(prepared.step), prepared))),)


def _gathered(flat: Flat, plan: Plan) -> tuple[Collective, ...]:
    """FSDP's: each layer's weights in both passes, the root's once, and the gradients of each."""
    gathered = (flat.root, *flat.layers, *reversed(flat.layers))
    reduced = (*reversed(flat.layers), flat.root)
    narrow = plan.arithmetic_bytes
    return (
        Collective(ALL_GATHER, tuple(narrow * each for each in gathered) * plan.accumulation),
        Collective(
            REDUCE_SCATTER, tuple(plan.weight_bytes * each for each in reduced) * plan.accumulation
        ),
    )


def shard_statics(
    architecture: Architecture, tensors: Sequence[ParameterTensor], plan: Plan
) -> Statics:
    """Weights, gradients and states of the first GPU: shards of each tensor.

    The gradients of a unit are one flat tensor.
    """
    shards = [replace(each, shape=sharded_shape(each.shape, plan.gpus)) for each in tensors]
    static = statics(shards, buffer_bytes(architecture, plan), plan)
    flat = flat_units(changed_model(architecture, plan), numbers_of(architecture, plan))
    gradients = sum(round_block(each // plan.gpus * plan.weight_bytes) for each in flat.all)
    return replace(static, gradients=gradients)


def parallel_notes(
    architecture: Architecture,
    plan: Plan,
    exchanged: tuple[Collective, ...],
) -> Iterator[str]:
    """Notes on several GPUs: who holds what, what does not divide evenly, what is exchanged."""
    if plan.gpus == 1:
        return
    if plan.is_sharded:
        yield (
            f"Each of {plan.gpus:,} GPUs holds a shard of every weight. fully_shard is counted on "
            "each layer and on the model, with its defaults; figures are those of the first GPU."
        )
        yield from _uneven_notes(architecture, plan)
    else:
        yield (
            f"Each of {plan.gpus:,} GPUs holds the whole model and its states, and "
            f"{format_bytes(bucket_bytes(exchanged))} of buckets for gradients. All need the same."
        )
    said = [
        f"{each.name.replace('_', '-')} in {len(each.sizes):,} calls, {format_bytes(each.total)}"
        for each in exchanged
    ]
    yield (
        f"Exchanged in each step: {'; '.join(said)} (bytes of the whole tensors). NCCL's own "
        "buffers are not counted."
    )


def _uneven_notes(architecture: Architecture, plan: Plan) -> Iterator[str]:
    """A note where GPUs do not divide the rows of some weights."""
    tensors = parameter_tensors(architecture, plan)
    odd = [each for each in tensors if each.shape[0] % plan.gpus]
    if odd:
        example = odd[0].shape[0]
        yield (
            f"{sum(each.copies for each in odd):,} of {sum(each.copies for each in tensors):,} "
            f"weights have rows that {plan.gpus:,} GPUs do not divide evenly (one has "
            f"{example:,}): the last GPUs hold fewer, and each shard is padded to the first's size."
        )


def bucket_bytes(found: tuple[Collective, ...]) -> int:
    """Bytes of DDP's buckets, which live from step to step."""
    return sum(map(round_block, next((one.sizes for one in found if one.name == ALL_REDUCE), ())))


def _arrivals(trace: Trace, prepared: Prepared) -> list[int]:
    """Bytes of every gradient in the order in which the backward pass completes them."""
    return bytes_in_order(trace, trace.arrivals, prepared.numbers, prepared.left_out)
