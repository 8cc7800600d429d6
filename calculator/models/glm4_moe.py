"""GLM 4.5 with experts (transformers' Glm4MoeForCausalLM).

Source: transformers (models/glm4_moe/modeling_glm4_moe.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from calculator.autograd.graph import Tensor
from calculator.configuration import Configuration
from calculator.layers.grouped import Held
from calculator.models.decoder import PartlyTurnedAttention
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

    turned_share = 0.5
    attention_class = LateNormedAttention
    biases = ("attention_bias", "", "")
    normed_heads = "use_qk_norm"

    @classmethod
    def more(cls, c: Configuration) -> Mapping[str, int]:
        """The experts and their groups, and which parts a layer has."""
        return {**super().more(c), **groups_of(c, 1, 1)}
