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

from functools import lru_cache
from math import prod

from calculator.autograd.dtypes import DType
from calculator.autograd.graph import Parameter
from calculator.autograd.mode import Mode
from calculator.autograd.sharding import Unit
from calculator.autograd.sizes import Numbers, number_of
from calculator.models.model import Model


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
