"""Qwen 3.5's text models, with experts or without (Qwen3_5ForCausalLM, Qwen3_5MoeForCausalLM).

They run without kernels of other packages.

Source: transformers (models/qwen3_5/modeling_qwen3_5.py,
models/qwen3_5_moe/modeling_qwen3_5_moe.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from calculator.autograd import operations as op
from calculator.autograd.dtypes import FLOAT32, DType
from calculator.autograd.graph import Recorder, Tensor
from calculator.autograd.mode import SEQUENCE
from calculator.autograd.sizes import ONE, constant, divided
from calculator.configuration import Configuration
from calculator.layers.rotary import Rotary, Tables
from calculator.models.decoder import in_turn
from calculator.models.hybrid import HybridDecoder
from calculator.models.qwen3_next import Qwen3Next

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

    is_inner = True
    apart = True
    rotary_class = GridRotary


@dataclass(eq=False)
class Qwen3_5Moe(Qwen3Next):  # noqa: N801
    """Qwen 3.5's layers with experts in all of them."""

    is_inner = True
    apart = True
    rotary_class = GridRotary
    fused_experts = ()  # peft knows no names of its experts

    @classmethod
    def more(cls, c: Configuration) -> Mapping[str, int]:
        """The heads of linear attention and the experts, whose shares are normed."""
        shared = c.size("shared_expert_intermediate_size", 512)
        c.ignore("mlp_only_layers")
        return {**cls.linear(c), **cls.experts(c), "shared_size": shared, "norm_topk_prob": True}

    @classmethod
    def pattern(cls, c: Configuration, layers: int) -> tuple[str, ...]:
        """The kinds of layers by their attention."""
        return in_turn(cls.mixers(c, layers))
