"""Weights in the order and the formats in which a program loads them.

transformers loads what bitsandbytes packs in 16 bits, as the Hub has it, and peft widens the rest
to 32 bits afterwards. Here the weights of a layer come in the order in which they are used.
transformers takes them by their names, and loads some at the same time, so that real figures differ
a little from run to run.

Source: transformers (core_model_loading.py), bitsandbytes (quantize_4bit), peft (utils/other.py,
prepare_model_for_kbit_training)
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from math import prod
from operator import itemgetter
from typing import Final

from calculator.architecture import Architecture
from calculator.autograd.graph import Parameter
from calculator.autograd.sizes import Numbers, number_of
from calculator.layers.layer import Buffer
from calculator.parameters import counted_of
from calculator.peaks.prepare import mode_of, numbers_of
from calculator.plan import BaseBits, Plan

# bytes of a weight as transformers loads it before it is packed in 4 bits, or widened to 32
NARROW: Final = 2


@dataclass(frozen=True, slots=True)
class Weight:
    """Bytes of a weight or table, and of what is loaded before it is packed or widened, or 0."""

    size: int
    loaded: int = 0
    is_packed: bool = False
    is_trained: bool = False


def weights_of(architecture: Architecture, plan: Plan) -> Iterator[Weight]:
    """Every weight and table, layer by layer."""
    numbers = numbers_of(architecture, plan)
    for copies, group in groupby(counted_of(architecture, plan), key=itemgetter(1)):
        yield from [_weight(item, numbers, plan) for item, _ in group] * copies


def _weight(item: Parameter | Buffer, numbers: Numbers, plan: Plan) -> Weight:
    elements = prod(number_of(size, numbers) for size in item.shape)
    own = mode_of(plan).weights.width if isinstance(item, Buffer) else plan.weight_bytes
    width = item.dtype.width if item.dtype else own
    if isinstance(item, Buffer):
        return Weight(elements * width)
    is_packed = item.packed > 1
    size = -(-elements * width // item.packed)
    trained = item.trained and bool(plan.lora)
    # shards are made in RAM
    loads_narrow = plan.quantization is not BaseBits.NONE and not plan.is_sharded
    if trained or not loads_narrow or (width <= NARROW and not is_packed):
        return Weight(size, is_trained=trained)
    return Weight(size, elements * NARROW, is_packed)
