"""Rotary positions: queries and keys turned by an angle that grows with their place.

Source: transformers (models/llama/modeling_llama.py, LlamaRotaryEmbedding)
"""

from dataclasses import dataclass

from calculator.autograd import operations as op
from calculator.autograd.dtypes import FLOAT32, INT64, DType
from calculator.autograd.graph import Recorder, Tensor
from calculator.autograd.mode import SEQUENCE
from calculator.autograd.sizes import ONE, Size, divided, without
from calculator.layers.layer import Buffer, Layer

# the cosines and the sines, (1, 1, length, width)
Tables = tuple[Tensor, Tensor]


@dataclass(eq=False)
class Rotary(Layer):
    """The tables of cosines and sines, which are made once for all layers of so many `kinds`.

    With `long` frequencies, others for long sequences stay beside them from the first step on.
    """

    width: Size
    kinds: int = 1
    long: bool = False

    def __post_init__(self) -> None:
        half = divided(self.width, 2)
        self.frequencies = tuple(Buffer((half,), FLOAT32) for _ in range(self.kinds))
        self.originals = tuple(Buffer((half,), FLOAT32) for _ in range(self.kinds))
        self.others = Buffer((half,), FLOAT32) if self.long else None

    def __call__(self, t: Recorder, positions: Tensor, dtype: DType) -> Tables:
        """Cosines and sines of every place, computed in 32 bits without autocast."""
        length, whole = positions.shape[-1], (ONE, ONE, SEQUENCE, self.width)
        places = t.empty((ONE, length, ONE), FLOAT32)
        angles = t.empty((ONE, length, divided(self.width, 2)), FLOAT32)
        del places  # dies here
        doubled = t.empty(whole, FLOAT32)
        cosines = t.empty(whole, FLOAT32)
        cosines = t.like(cosines)  # times a number
        sines = t.empty(whole, FLOAT32)
        sines = t.like(sines)
        tables = op.cast(cosines, dtype), op.cast(sines, dtype)
        del angles, doubled
        return tables


def positions_of(t: Recorder) -> Tensor:
    """The places of a sequence's tokens, (1, length).

    Those of a sequence that GPUs divide are an input, which is counted with the others.
    """
    return (t.empty if t.mode.context == 1 else t.constant)((ONE, SEQUENCE), INT64)


def rotated(x: Tensor, tables: Tables, part: Size | None = None) -> Tensor:
    """x cos + (x turned by a quarter) sin; tables in 32 bits make the result so too.

    Where only a `part` of a head's channels is turned, the others are joined to it.
    """
    if part is not None:
        first = op.part(x, *x.shape[:-1], part)
        rest = op.part(x, *x.shape[:-1], without(x.shape[-1], part))
        return op.concatenate([rotated(first, tables), rest], *x.shape)
    cosines, sines = tables
    near = op.multiply(x, cosines)
    turned = half_turned(x)
    far = op.multiply(turned, sines)
    del turned  # dies here
    return op.add(near, far)


def half_turned(x: Tensor) -> Tensor:
    """The two halves of each head exchanged, the second one's sign too."""
    half = (*x.shape[:-1], divided(x.shape[-1], 2))
    first, second = op.part(x, *half), op.part(x, *half)
    return op.concatenate([op.scale(second), first], *x.shape)
