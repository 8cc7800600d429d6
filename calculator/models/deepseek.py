"""DeepSeek V2, V3 and R1, and GLM 4.5, whose experts stand in groups.

Counted are DeepseekV2ForCausalLM, DeepseekV3ForCausalLM and Glm4MoeForCausalLM.

Source: transformers (models/deepseek_v3/modeling_deepseek_v3.py,
models/deepseek_v2/modeling_deepseek_v2.py, models/glm4_moe/modeling_glm4_moe.py).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from calculator.architecture import Architecture
from calculator.autograd.graph import Tensor
from calculator.autograd.mode import Attention
from calculator.autograd.sizes import size
from calculator.configuration import Configuration
from calculator.errors import InputError
from calculator.layers.experts import Router, ScaledRouter
from calculator.layers.grouped import Heads, Held
from calculator.layers.latent import ComplexAttention, ComplexRotary, LatentAttention, Widths
from calculator.models.decoder import HEAD, HIDDEN, PartlyTurnedAttention
from calculator.models.keys import own_numbers
from calculator.models.sparse import CHOICE, GROUPS, GroupedSparseDecoder, groups_of

TURNED = size("rotary_size")


@dataclass(eq=False)
class DeepseekV3(GroupedSparseDecoder):
    """Attention by way of a latent; dense layers first; experts beside a layer of all tokens."""

    kernels = (Attention.EAGER, Attention.SDPA, Attention.EFFICIENT, Attention.MATH)
    dense = 3
    attention_class: ClassVar[type[LatentAttention]] = LatentAttention

    @classmethod
    def more(cls, c: Configuration) -> Mapping[str, int]:
        """The experts, the latents and the widths of heads."""
        return {
            **super().more(c),
            **cls.routing(c),
            "q_lora_rank": 0 if c.has_null("q_lora_rank") else c.size("q_lora_rank", 1536),
        }

    @classmethod
    def routing(cls, c: Configuration) -> Mapping[str, int]:
        """Groups of experts."""
        c.ignore("num_nextn_predict_layers", "num_mtp_layers")
        c.only("scoring_func", "sigmoid")
        c.only("topk_method", "noaux_tc")
        return groups_of(c, 8, 4)

    @classmethod
    def rotary_size(cls, c: Configuration, head_size: int) -> int:
        """The channels of a head that are turned."""
        return own_numbers(cls, c)["qk_rope_head_dim"]

    @classmethod
    def _head_size(cls, c: Configuration, hidden: int, heads: int) -> int:
        """Channels of a query and of a key."""
        turned = cls.rotary_size(c, 0)
        if turned % 2:
            raise InputError("qk_rope_head_dim", turned, "must be even: channels turn in pairs")
        return turned + own_numbers(cls, c)["qk_nope_head_dim"]

    @classmethod
    def _key_value_heads(cls, c: Configuration, heads: int) -> int:
        shared = c.size("num_key_value_heads", heads)
        if shared != heads:
            rule = f"must be the {heads} heads: each has keys and values of its own"
            raise InputError("num_key_value_heads", shared, rule)
        return shared

    @classmethod
    def kernels_of(
        cls, architecture: Architecture, narrow: bool, length: int
    ) -> Sequence[Attention]:
        """All in every precision; flash wants values as wide as keys."""
        return cls.kernels

    @classmethod
    def attention(cls, architecture: Architecture, kind: str) -> LatentAttention:
        """By way of a latent of the keys and values, and of the queries or not."""
        return cls.attention_class(
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


@dataclass(eq=False)
class DeepseekV2(DeepseekV3):
    """Channels turned as complex numbers; experts by their probabilities among all."""

    dense = 0
    attention_class = ComplexAttention
    rotary_class = ComplexRotary
    biases = ("", "", "mlp_bias")

    @classmethod
    def routing(cls, c: Configuration) -> Mapping[str, int]:
        """Groups of experts, where they count."""
        if c.value("num_experts_per_tok") is None:
            raise InputError("num_experts_per_tok", None, "must be given: the class has no default")
        c.ignore("norm_topk_prob")
        c.only("scoring_func", "softmax")
        methods = ("greedy", "group_limited_greedy")
        limited = c.text("topk_method", methods[0], methods) == methods[1]
        return {**groups_of(c, 1, 1, shared=2), "limited": limited}

    @classmethod
    def router(cls, architecture: Architecture) -> Router:
        """Probabilities among all experts, of which only those of the best groups may count."""
        return ScaledRouter(HIDDEN, CHOICE, GROUPS if architecture.has("limited") else None)


@dataclass(eq=False)
class LateNormedAttention(PartlyTurnedAttention):
    """Attention that projects queries, keys and values before it norms any."""

    def projected(self, x: Tensor, held: Held) -> tuple[Tensor, Tensor, Tensor]:
        """Heads of queries, keys and values."""
        q, k, v = self.query(x), self.key(x), self.value(x)
        q = self.heads_of(q, self.heads.queries, self.query_norm)
        k = self.heads_of(k, self.heads.keys, self.key_norm)
        copied = self.copies(x.tape.mode, held.mask)
        return q, k, self.heads_of(v, self.heads.keys, copied=copied)


@dataclass(eq=False)
class Glm4Moe(GroupedSparseDecoder):
    """Dense layers first; experts beside one that all tokens pass; a part of each head turned."""

    turned_share = 0.5
    attention_class = LateNormedAttention
    biases = ("attention_bias", "", "")
    normed_heads = "use_qk_norm"

    @classmethod
    def more(cls, c: Configuration) -> Mapping[str, int]:
        """The experts and their groups, and which parts a layer has."""
        return {**super().more(c), **groups_of(c, 1, 1)}
