"""DeepSeek V3 and R1 (transformers' DeepseekV3ForCausalLM).

Source: transformers (models/deepseek_v3/modeling_deepseek_v3.py).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from calculator.architecture import Architecture
from calculator.autograd.mode import Attention
from calculator.autograd.sizes import size
from calculator.configuration import Configuration
from calculator.errors import InputError
from calculator.layers.grouped import Heads
from calculator.layers.latent import LatentAttention, Widths
from calculator.layers.rotary import Rotary
from calculator.models.decoder import HEAD, HIDDEN
from calculator.models.sparse import GroupedSparseDecoder, groups_of

TURNED = size("rotary_size")
WIDTHS = {"qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "kv_lora_rank": 512}


@dataclass(eq=False)
class DeepseekV3(GroupedSparseDecoder):
    """Attention by way of a latent; dense layers first; experts beside a layer of all tokens."""

    title = "DeepSeek V3"
    counted = "DeepseekV3ForCausalLM"
    kernels: ClassVar[tuple[Attention, ...]] = (
        *(Attention.EAGER, Attention.SDPA, Attention.EFFICIENT, Attention.MATH),
    )
    dense = 3
    latent: ClassVar[type[LatentAttention]] = LatentAttention

    @classmethod
    def more(cls, c: Configuration) -> Mapping[str, int]:
        """The experts, the latents and the widths of heads."""
        return {
            **cls.experts(c),
            **cls.routing(c),
            **{key: c.size(key, default) for key, default in WIDTHS.items()},
            "q_lora_rank": 0 if c.has_null("q_lora_rank") else c.size("q_lora_rank", 1536),
            "attention_bias": c.flag("attention_bias", False),
        }

    @classmethod
    def routing(cls, c: Configuration) -> Mapping[str, int]:
        """Groups of experts, and how turned channels are paired."""
        c.ignore("num_nextn_predict_layers", "num_mtp_layers")
        c.only("scoring_func", "sigmoid")
        c.only("topk_method", "noaux_tc")
        paired = {"rope_interleave": c.flag("rope_interleave", True)}
        normed = {"norm_topk_prob": c.flag("norm_topk_prob", True)}
        return {**groups_of(c, 8, 4), **paired, **normed}

    @classmethod
    def rotary_size(cls, c: Configuration, head_size: int) -> int:
        """The channels of a head that are turned."""
        del head_size
        return c.size("qk_rope_head_dim", WIDTHS["qk_rope_head_dim"])

    @classmethod
    def _head_size(cls, c: Configuration, hidden: int, heads: int) -> int:
        """Channels of a query and of a key."""
        del hidden, heads
        turned = cls.rotary_size(c, 0)
        if turned % 2:
            raise InputError("qk_rope_head_dim", turned, "must be even: channels turn in pairs")
        return turned + c.size("qk_nope_head_dim", WIDTHS["qk_nope_head_dim"])

    @classmethod
    def _key_value_heads(cls, c: Configuration, heads: int) -> int:
        shared = c.size("num_key_value_heads", heads)
        if shared != heads:
            rule = f"must be the {heads} heads: each has keys and values of its own"
            raise InputError("num_key_value_heads", shared, rule)
        return shared

    @classmethod
    def turning(cls, architecture: Architecture) -> Rotary:
        """Tables of the channels that are turned."""
        del architecture
        return Rotary(TURNED)

    @classmethod
    def kernels_of(
        cls, architecture: Architecture, narrow: bool, length: int
    ) -> Sequence[Attention]:
        """All in every precision; flash wants values as wide as keys."""
        del architecture, narrow, length
        return cls.kernels

    @classmethod
    def attention(cls, architecture: Architecture, kind: str) -> LatentAttention:
        """By way of a latent of the keys and values, and of the queries or not."""
        del kind
        return cls.latent(
            HIDDEN,
            Heads(size("heads"), size("heads"), HEAD),
            architecture.has("attention_bias"),
            widths=Widths(
                size("qk_nope_head_dim"),
                TURNED,
                size("v_head_dim"),
                size("kv_lora_rank"),
                size("q_lora_rank") if architecture.has("q_lora_rank") else None,
            ),
            paired=architecture.has("rope_interleave"),
        )
