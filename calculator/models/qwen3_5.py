"""Qwen 3.5's text models (transformers' Qwen3_5ForCausalLM), without kernels of other packages.

Source: transformers (models/qwen3_5/modeling_qwen3_5.py).
"""

from dataclasses import dataclass

from calculator.architecture import Architecture
from calculator.autograd import operations as op
from calculator.autograd.dtypes import FLOAT32, DType
from calculator.autograd.graph import Recorder, Tensor
from calculator.autograd.mode import SEQUENCE
from calculator.autograd.sizes import ONE, constant, divided
from calculator.layers.rotary import Rotary, Tables
from calculator.models.decoder import HEAD, turned_of
from calculator.models.hybrid import HybridDecoder

AXES = constant(3)  # time, height and width, which are the same for text


@dataclass(eq=False)
class GridRotary(Rotary):
    """Tables of every sequence, put together of those for three axes."""

    def __call__(self, t: Recorder, positions: Tensor, dtype: DType) -> Tables:
        """Cosines and sines of every place, computed in 32 bits without autocast."""
        each = (AXES, t.mode.batch, SEQUENCE, divided(self.width, 2))
        whole = (t.mode.batch, ONE, SEQUENCE, self.width)
        angles = t.empty(each, FLOAT32)
        cosines = t.like(t.empty(each, FLOAT32))  # times a number
        sines = t.like(t.like(cosines))
        sines = t.empty(whole, FLOAT32)
        cosines = t.empty(whole, FLOAT32)
        tables = op.cast(cosines, dtype), op.cast(sines, dtype)
        del angles
        return tables


@dataclass(eq=False)
class Qwen3_5(HybridDecoder):  # noqa: N801
    """Three layers with linear attention for each with gated attention."""

    title = "Qwen 3.5"
    counted = "Qwen3_5ForCausalLM"
    is_inner = True
    apart = True

    @classmethod
    def turning(cls, architecture: Architecture) -> GridRotary:
        """Tables of the channels that are turned."""
        return GridRotary(turned_of(architecture) or HEAD)
