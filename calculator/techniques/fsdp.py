"""FSDP2: each GPU holds a shard of every weight, its gradient and its states.

Counted is `fully_shard` on each layer and on the model, with its defaults: a layer's weights are
gathered when it runs, forward and backward, and the next layer's while it does. The recorded step
holds them (`calculator.autograd.sharding`); here are the shards, which live from step to step.

`torch.chunk` cuts a weight by rows. Where the GPUs do not divide them, the last GPUs hold fewer
rows or none, but every GPU has the bytes of the first: the shards are padded.

Under `mixed` it is `MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)`:
shards and reduced gradients in 32 bits, gathered weights in 16.

Under LoRA the frozen weights are in shards like all others, and have no gradients to reduce.

Packed weights (QLoRA) are stored as if they had the format of the others, as FSDP wants it
(`bnb_4bit_quant_storage`); their scales are whole on every GPU.

With `zero2` a layer's weights are gathered once and stay whole between its two passes, as
`fully_shard(reshard_after_forward=False)` does it: between steps all is in shards, as with `fsdp`.

Source: fsdp2, torch (distributed/fsdp/_fully_shard)
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain
from math import prod
from typing import Final

from calculator.allocator import round_block
from calculator.autograd.dtypes import FLOAT32, DType
from calculator.autograd.graph import Parameter
from calculator.autograd.mode import Mode
from calculator.autograd.sharding import Unit
from calculator.autograd.sizes import Numbers, number_of
from calculator.models.model import Model
from calculator.plan import BaseBits, DataParallel, Plan, Precision
from calculator.states import sent_by_update, statics
from calculator.techniques.collectives import Collective, Group
from calculator.techniques.cpu_offload import CPU_OFFLOAD_NOTE, in_ram
from calculator.techniques.effect import Answer, Effect, Stored, Tensors
from calculator.tensors import Cut, ParameterTensor, Statics


def gradients_of_units(model: Model, numbers: Numbers, mode: Mode) -> tuple[int, ...]:
    """Bytes of the flat gradients of each unit of a model whose layers share no weights."""
    shards = mode.shards
    assert shards is not None
    sizes: dict[Unit, int] = {}
    for unit in (found := units_of(model, mode.weights)):
        if unit not in sizes:
            elements = number_of(unit.summed, numbers) if unit.trained else 0
            sizes[unit] = elements and elements * unit.reduced_format(shards).width
    return tuple(sizes[unit] for unit in found)


@lru_cache(maxsize=64)
def units_of(model: Model, weights: DType) -> tuple[Unit, ...]:
    """The root and each layer, in order; a search for what fits asks for them many times."""
    made: dict[tuple[Parameter, ...], Unit] = {}
    layers = (tuple(unit) for _, stack in model.stacks() for unit in stack.units())
    order = [each for each in (tuple(model.outside()), *layers) if each]  # or a stage has no root
    for parameters in order:
        if parameters not in made:
            made[parameters] = Unit(parameters, weights)
    return tuple(made[parameters] for parameters in order)


def sharded_shape(shape: tuple[int, ...], gpus: int, packed: int = 1) -> tuple[int, ...]:
    """The shape of a weight's shard: every GPU has the bytes of the first.

    Of weights of which so many are `packed` into one element, these are cut.

    >>> sharded_shape((10, 3), 4)
    (3, 3)
    """
    if packed > 1:
        return (-(-prod(shape) // packed // gpus) * packed,)
    return (-(-shape[0] // gpus), *shape[1:])


def _shards(tensors: Tensors, plan: Plan) -> list[ParameterTensor]:
    return [
        replace(
            each,
            shape=sharded_shape(each.shape, plan.replicas, each.packed),
            cuts=(*each.cuts, Cut(each.shape, 0, plan.replicas)),
        )
        for each in tensors
    ]


def _exchanges(plan: Plan, _: object, tensors: Callable[[], Tensors]) -> Iterator[Collective]:
    """Exchanges of an update of shards."""
    yield from sent_by_update(plan, lambda: _shards(tensors(), plan), Group.REPLICAS)


def _statics(_: Statics, stored: Stored) -> Statics:
    """Weights, gradients and states of the first GPU: shards of each tensor.

    The gradients of a unit are one flat tensor.
    """
    plan = stored.plan
    shards = _shards(stored.tensors, plan)
    static = statics(shards, stored.buffers, plan)
    if plan.cpu_offload:
        return in_ram(static, shards, stored.buffers, plan)
    if plan.update_in_backward:  # they are gone
        return static
    models, mode = stored.models, stored.mode
    units = chain(*(gradients_of_units(model, stored.numbers, mode) for model in models))
    return replace(static, gradients=sum(round_block(each // plan.replicas) for each in units))


def _notes(answer: Answer) -> Iterator[str]:
    """Notes on who holds what, and on what does not divide evenly."""
    plan = answer.plan
    yield (
        f"Each of {plan.replicas:,} GPUs holds a shard of every weight. fully_shard is counted on "
        "each layer and on the model, with its defaults; figures are those of the first GPU."
    )
    if plan.data_parallel is DataParallel.ZERO2:
        yield (
            "With reshard_after_forward=False a layer's weights are gathered once in a micro-step, "
            "and stay whole until its backward pass is over. DeepSpeed's ZeRO-2 keeps whole 16-bit "
            "weights between steps too."
        )
    if plan.lora and plan.precision is Precision.MIXED:
        yield (
            "Under mixed the adapters are gathered and computed in 16 bits, as all weights are; "
            "their shards, gradients and states are in 32."
        )
    if plan.quantization is not BaseBits.NONE:
        yield (
            "Packed weights are stored as if they had the others' format, which FSDP wants "
            "(bnb_4bit_quant_storage); each GPU has all of their scales."
        )
    if plan.cpu_offload:
        yield CPU_OFFLOAD_NOTE
    yield from _uneven_notes(answer.tensors(), plan)


def _uneven_notes(tensors: Sequence[ParameterTensor], plan: Plan) -> Iterator[str]:
    """A note where GPUs do not divide the rows of some weights."""
    odd = [each for each in tensors if each.shape[0] % plan.replicas]
    if odd:
        example = odd[0].shape[0]
        yield (
            f"{sum(each.copies for each in odd):,} of {sum(each.copies for each in tensors):,} "
            f"weights have rows that {plan.replicas:,} GPUs do not divide evenly (one has "
            f"{example:,}): the last GPUs hold fewer, and each shard is padded to the first's size."
        )


EFFECT: Final = Effect(
    used=lambda plan: plan.is_sharded,
    mode=lambda plan: {
        "shards": plan.half if plan.weight_bytes == 2 else FLOAT32,
        "reshards": plan.data_parallel is not DataParallel.ZERO2,
        "shards_in_ram": plan.cpu_offload,
    },
    statics=_statics,
    exchanges=_exchanges,
    notes=_notes,
)
