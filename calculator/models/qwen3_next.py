"""Qwen 3 Next and Qwen 3.5's text models, which alternate linear and gated attention.

Counted are Qwen3NextForCausalLM, Qwen3_5ForCausalLM and Qwen3_5MoeForCausalLM as they run without
kernels of other packages.

Source: transformers (models/qwen3_next/modeling_qwen3_next.py,
models/qwen3_5/modeling_qwen3_5.py, models/qwen3_5_moe/modeling_qwen3_5_moe.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from calculator.architecture import Architecture
from calculator.autograd import operations as op
from calculator.autograd.dtypes import FLOAT32, DType
from calculator.autograd.graph import Recorder, Tensor
from calculator.autograd.mode import SEQUENCE
from calculator.autograd.sizes import ONE, constant, divided
from calculator.configuration import MOST_LAYERS, Configuration
from calculator.errors import InputError
from calculator.layers.attention import Attended, joined, selectively
from calculator.layers.basic import Linear
from calculator.layers.delta import GatedDelta
from calculator.layers.grouped import Held, Mixer
from calculator.layers.rotary import Rotary, Tables
from calculator.models.decoder import (
    FULL,
    HIDDEN,
    Decoder,
    PartlyTurnedAttention,
    in_turn,
)
from calculator.models.gemma import GemmaNorm
from calculator.models.keys import own_numbers
from calculator.models.model import ALWAYS
from calculator.models.sparse import DENSE, GatedSparseDecoder, dense_places

LINEAR = "linear_attention"


@dataclass(eq=False)
class GatedAttention(PartlyTurnedAttention):
    """Attention whose output passes a gate that is projected with the queries."""

    def __post_init__(self) -> None:
        super().__post_init__()
        width = 2 * self.heads.queries * self.heads.width
        self.query = Linear(self.hidden, width, self.biased, name="q_proj")

    def __call__(self, x: Tensor, held: Held) -> Attended:
        """The weighted sum and, in eager code, the probabilities."""
        heads = (self.heads.queries, self.heads.width)
        both = op.view(self.query(x), *x.shape[:-1], self.heads.queries, 2 * self.heads.width)
        q, gate = op.split(both, self.heads.width, self.heads.width)
        del both  # dies here
        gate = op.view(op.copy(gate), *x.shape[:-1], heads[0] * heads[1])
        assert self.query_norm is not None
        q = op.transpose(self.query_norm(q), 1, 2)
        k = self.heads_of(self.key(x), self.heads.keys, self.key_norm)
        copied = self.copies(x.tape.mode, held.mask)
        v = self.heads_of(self.value(x), self.heads.keys, copied=copied)
        q, k = self.turned(q, k, held)
        out, probabilities = selectively(partial(self.core, held=held), q, k, v)
        out = joined(out)
        out = op.multiply(out, op.sigmoid(gate))
        out = self.output(out)
        del q, k, v, gate  # held until here
        return out, probabilities


@dataclass(eq=False)
class HybridDecoder(Decoder):
    """A decoder whose layers have linear or gated attention.

    Attributes:
        apart: whether each kind of projection of linear attention is a product of its own.
    """

    turned_share = 0.25
    has_chunks = True
    whole_tokens = "linear attention has weights that are no DTensors"
    norm_class = GemmaNorm
    attention_class = GatedAttention
    normed_heads = ALWAYS
    biases = ("attention_bias", "attention_bias", "")
    apart: ClassVar[bool] = False

    @classmethod
    def more(cls, c: Configuration) -> Mapping[str, int]:
        """The heads of linear attention."""
        c.ignore("mlp_only_layers")  # which only Qwen 3 Next reads
        return cls.linear(c)

    @classmethod
    def linear(cls, c: Configuration) -> Mapping[str, int]:
        """The heads of linear attention, and whether projections have biases."""
        c.only("attn_output_gate", True)
        c.ignore("mamba_ssm_dtype", "mtp_num_hidden_layers", "mtp_use_dedicated_embeddings")
        found = own_numbers(cls, c)
        keys, values = found["linear_key_heads"], found["linear_value_heads"]
        if values % keys:
            rule = f"must be a multiple of the {keys} heads of keys"
            raise InputError("linear_num_value_heads", values, rule)
        kernel = found["linear_kernel_size"]
        if kernel < 2:
            raise InputError("linear_conv_kernel_dim", kernel, "must be at least 2 to be counted")
        return found

    @classmethod
    def pattern(cls, c: Configuration, layers: int) -> tuple[str, ...]:
        """The kinds of layers by their attention."""
        return in_turn(cls.mixers(c, layers))

    @classmethod
    def mixers(cls, c: Configuration, layers: int) -> list[str]:
        """The kind of each layer's attention."""
        found = c.value("layer_types")
        if found is None:
            step = c.size("full_attention_interval", 4, most=MOST_LAYERS)
            return [LINEAR if (place + 1) % step else FULL for place in range(layers)]
        c.ignore("full_attention_interval")
        kinds = (FULL, LINEAR)
        fits = isinstance(found, list) and len(found) == layers
        if not fits or any(kind not in kinds for kind in found):
            rule = f"must name the kind of each of {layers} layers: {FULL} or {LINEAR}"
            raise InputError("layer_types", found, rule)
        return [*map(str, found)]

    @classmethod
    def attention(cls, architecture: Architecture, kind: str) -> Mixer:
        """Linear attention or gated attention."""
        if not kind.startswith(LINEAR):
            return super().attention(architecture, kind)
        numbers = architecture.numbers
        grouped = numbers["linear_value_heads"] > numbers["linear_key_heads"]
        return GatedDelta(HIDDEN, grouped, cls.apart)


@dataclass(eq=False)
class Qwen3Next(HybridDecoder, GatedSparseDecoder):
    """Three layers with linear attention for each with gated attention; experts in all or some."""

    @classmethod
    def more(cls, c: Configuration) -> Mapping[str, int]:
        """The heads of linear attention, the experts, and what is normed or has biases."""
        return {**cls.linear(c), **cls.experts(c)}

    @classmethod
    def pattern(cls, c: Configuration, layers: int) -> tuple[str, ...]:
        """The kinds of layers, by their attention and by whether they have experts."""
        dense = dense_places(c, layers)
        return in_turn(
            [
                f"{kind} {DENSE}" if place in dense else kind
                for place, kind in enumerate(cls.mixers(c, layers))
            ]
        )


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
        c.ignore("mlp_only_layers")
        return {**super().more(c), "norm_topk_prob": True}

    @classmethod
    def pattern(cls, c: Configuration, layers: int) -> tuple[str, ...]:
        """The kinds of layers by their attention."""
        return in_turn(cls.mixers(c, layers))
