"""GLM 4.5 with experts (transformers' Glm4MoeForCausalLM).

Source: transformers (models/glm4_moe/modeling_glm4_moe.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from calculator.architecture import Architecture
from calculator.autograd.graph import Tensor
from calculator.configuration import Configuration
from calculator.layers.basic import RMSNorm
from calculator.layers.grouped import GroupedAttention, Held
from calculator.layers.rotary import Rotary
from calculator.models.decoder import (
    HEAD,
    HIDDEN,
    PartlyTurnedAttention,
    heads_of,
    part_turned,
    turned_of,
)
from calculator.models.sparse import GroupedSparseDecoder, groups_of


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

    title = "GLM 4 MoE"
    counted = "Glm4MoeForCausalLM"
    turns_part = True

    @classmethod
    def more(cls, c: Configuration) -> Mapping[str, int]:
        """The experts and their groups, and which parts a layer has."""
        flags = {key: c.flag(key, False) for key in ("attention_bias", "use_qk_norm")}
        normed = {"norm_topk_prob": c.flag("norm_topk_prob", True)}
        return {**cls.experts(c), **groups_of(c, 1, 1), **flags, **normed}

    @classmethod
    def rotary_size(cls, c: Configuration, head_size: int) -> int:
        """The channels of a head that are turned."""
        return part_turned(c, head_size, 0.5)

    @classmethod
    def turning(cls, architecture: Architecture) -> Rotary:
        """Tables of the channels that are turned."""
        return Rotary(turned_of(architecture) or HEAD)

    @classmethod
    def attention(cls, architecture: Architecture, kind: str) -> GroupedAttention:
        """Heads that may be normed before a part of each is turned."""
        normed = architecture.has("use_qk_norm")
        biased = architecture.has("attention_bias")
        heads = heads_of(architecture)
        return LateNormedAttention(
            HIDDEN,
            heads,
            biased,
            query_norm=RMSNorm(HEAD) if normed else None,
            key_norm=RMSNorm(HEAD) if normed else None,
            turned_part=turned_of(architecture),
        )
