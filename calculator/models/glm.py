"""GLM 4 of 9 and 32 billion parameters (transformers' GlmForCausalLM, Glm4ForCausalLM).

Half of each head is turned, neighboring channels together; one product makes gate and up.

Source: transformers (models/glm/modeling_glm.py, models/glm4/modeling_glm4.py).
"""

from dataclasses import dataclass

from calculator.architecture import Architecture
from calculator.autograd.graph import Tensor
from calculator.layers.grouped import Held
from calculator.layers.layer import Unary
from calculator.models.decoder import Decoder
from calculator.models.gpt_neox import turned, whole
from calculator.models.mistral import JoinedFeedForward
from calculator.models.neighbours import NeighbourAttention


@dataclass(eq=False)
class GlmAttention(NeighbourAttention):
    """Turned channels are put beside the rest of a head in a new tensor."""

    side_by_side = True

    def turned(self, q: Tensor, k: Tensor, held: Held) -> tuple[Tensor, Tensor]:
        """Queries and keys at their places."""
        cosines, sines = held.tables
        tables = cosines.tape.like(cosines), sines.tape.like(sines)
        turned_q, turned_k = turned(q, tables), turned(k, tables)
        return whole(turned_q, q), whole(turned_k, k)


@dataclass(eq=False)
class Glm(Decoder):
    """Biases of queries, keys and values."""

    whole_layers = "products are joined in one weight, whose outputs transformers gathers"
    attention_class = GlmAttention
    turned_share = 0.5
    biases = ("attention_bias", "", "")

    @classmethod
    def feed_forward(cls, architecture: Architecture) -> Unary:
        """One product for gate and up."""
        return JoinedFeedForward()


@dataclass(eq=False)
class Glm4(Glm):
    """Norms after attention and feed-forward layer too."""

    norms_after = True
