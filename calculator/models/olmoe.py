"""OLMoE (transformers' OlmoeForCausalLM).

Source: transformers (models/olmoe/modeling_olmoe.py).
"""

from dataclasses import dataclass

from calculator.autograd.graph import Tensor
from calculator.layers.basic import RMSNorm
from calculator.layers.grouped import GroupedAttention, Held
from calculator.models.norms_after import Olmo2, Olmo2Attention
from calculator.models.sparse import SparseDecoder


@dataclass(eq=False)
class OlmoeAttention(Olmo2Attention):
    """All heads of queries, and all of keys, are normed together."""

    norm = RMSNorm

    def turned(self, q: Tensor, k: Tensor, held: Held) -> tuple[Tensor, Tensor]:
        """Queries and keys at their places, in the format of the tables."""
        return GroupedAttention.turned(self, q, k, held)


@dataclass(eq=False)
class Olmoe(SparseDecoder):
    """Experts in every layer, each as wide as a dense layer of the model would be."""

    whole_layers = Olmo2.whole_layers
    attention_class = OlmoeAttention
    biases = ("attention_bias", "attention_bias", "")
