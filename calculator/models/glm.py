"""GLM 4 of 9 and 32 billion parameters (transformers' GlmForCausalLM, Glm4ForCausalLM).

Half of each head is turned, neighboring channels together; one product makes gate and up.

Source: transformers (models/glm/modeling_glm.py, models/glm4/modeling_glm4.py).
"""

from dataclasses import dataclass

from calculator.architecture import Architecture
from calculator.autograd import operations as op
from calculator.autograd.graph import Tensor
from calculator.autograd.sizes import without
from calculator.layers.grouped import GroupedAttention, Held
from calculator.layers.layer import Unary
from calculator.layers.rotary import rotated
from calculator.models.decoder import Decoder
from calculator.models.mistral import JoinedFeedForward


@dataclass(eq=False)
class GlmAttention(GroupedAttention):
    """Attention for which each layer makes tables of its own; a turned head is a new tensor."""

    side_by_side = True

    def turned(self, q: Tensor, k: Tensor, held: Held) -> tuple[Tensor, Tensor]:
        """Queries and keys at their places, with the channels that stay as they are."""
        cosines, sines = held.tables
        tables = cosines.tape.like(cosines), sines.tape.like(sines)
        part = self.turned_part or self.heads.width
        turned_q = rotated(op.part(q, *q.shape[:-1], part), tables)
        turned_k = rotated(op.part(k, *k.shape[:-1], part), tables)
        return self.whole(turned_q, q), self.whole(turned_k, k)

    def kept(self, held: Held) -> Held:
        """The model's tables are not: heads were turned by the layer's own."""
        return Held(held.positions, (), held.mask)  # type: ignore[arg-type]

    def whole(self, turned: Tensor, x: Tensor) -> Tensor:
        """A head's turned channels and the others; a copy where there are none."""
        if self.turned_part is None:
            return op.concatenate([turned], *x.shape)
        rest = op.part(x, *x.shape[:-1], without(self.heads.width, self.turned_part))
        return op.concatenate([turned, rest], *x.shape)


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
