"""Common parts of causal language models that alternate linear and gated attention.

Source: transformers (models/qwen3_next/modeling_qwen3_next.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

from calculator.architecture import Architecture
from calculator.autograd import operations as op
from calculator.autograd.graph import Tensor
from calculator.configuration import MOST_LAYERS, Configuration
from calculator.errors import InputError
from calculator.layers.attention import Attended, joined, selectively
from calculator.layers.basic import Linear
from calculator.layers.delta import GatedDelta
from calculator.layers.grouped import Held, Mixer
from calculator.models.decoder import (
    FULL,
    HIDDEN,
    Decoder,
    PartlyTurnedAttention,
    in_turn,
)
from calculator.models.gemma import GemmaNorm
from calculator.models.model import ALWAYS

LINEAR = "linear_attention"
PLAIN = (
    "Linear attention is counted as transformers computes it in plain PyTorch, without the kernels "
    "of flash-linear-attention and causal-conv1d."
)


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
    def read(cls, c: Configuration, name: str) -> Architecture:
        """The architecture that a config.json describes, with a note on what is counted."""
        found = super().read(c, name)
        return replace(found, note=f"{PLAIN} {found.note}".strip())

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
        keys = c.size("linear_num_key_heads", 16)
        values = c.size("linear_num_value_heads", 32)
        if values % keys:
            rule = f"must be a multiple of the {keys} heads of keys"
            raise InputError("linear_num_value_heads", values, rule)
        kernel = c.size("linear_conv_kernel_dim", 4)
        if kernel < 2:
            raise InputError("linear_conv_kernel_dim", kernel, "must be at least 2 to be counted")
        return {
            "linear_key_heads": keys,
            "linear_value_heads": values,
            "linear_key_size": c.size("linear_key_head_dim", 128),
            "linear_value_size": c.size("linear_value_head_dim", 128),
            "linear_kernel_size": kernel,
            "attention_bias": c.flag("attention_bias", False),
        }

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
