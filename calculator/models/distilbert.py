"""DistilBERT (transformers' DistilBertForMaskedLM).

Source: transformers (models/distilbert/modeling_distilbert.py).
"""

from dataclasses import dataclass
from typing import ClassVar

from calculator.architecture import Architecture
from calculator.autograd import operations as op
from calculator.autograd.dtypes import INT64
from calculator.autograd.graph import Tensor
from calculator.autograd.mode import SEQUENCE
from calculator.autograd.sizes import ONE
from calculator.layers.attention import attend, eager_core, heads_of, joined
from calculator.layers.basic import Embedding, LayerNorm, Linear
from calculator.layers.feed_forward import FeedForward
from calculator.layers.heads import DroppedPooled, EachToken, FirstToken, Heads, Span
from calculator.layers.layer import Buffer, Layer
from calculator.layers.pairs import with_pairs
from calculator.layers.stack import Block, Stack
from calculator.models.bert import POSITIONS
from calculator.models.masked import MaskedModel
from calculator.models.widths import FEED, HEAD, HEADS, HIDDEN, VOCABULARY
from calculator.task import Task


@dataclass(eq=False)
class DistilBertBlock(Block):
    """Attention, sum and norm; feed-forward, sum and norm."""

    def __post_init__(self) -> None:
        self.query = Linear(HIDDEN, HEADS * HEAD, name="q_lin")
        self.key = Linear(HIDDEN, HEADS * HEAD, name="k_lin")
        self.value = Linear(HIDDEN, HEADS * HEAD, name="v_lin")
        self.output = Linear(HEADS * HEAD, HIDDEN, name="out_lin")
        self.attention_norm = LayerNorm(HIDDEN)
        self.feed_forward = FeedForward(HIDDEN, FEED, ("lin1", "lin2"), op.gelu)
        self.norm = LayerNorm(HIDDEN)

    def __call__(self, x: Tensor) -> Tensor:
        """The residual stream after the layer; eager code's probabilities are held to its end."""
        attended, _probabilities = self.attention(x)
        attended = self.attention_norm(op.add(attended, x))
        forwarded = self.feed_forward(attended)
        return self.norm(op.add(forwarded, attended))

    def attention(self, x: Tensor) -> tuple[Tensor, Tensor | None]:
        """The weighted sum, and the probabilities."""
        q, k, v = (heads_of(layer(x), HEADS, HEAD) for layer in (self.query, self.key, self.value))
        out, probabilities = attend(q, k, v, eager_core, causal=False)
        out = self.output(joined(out))
        del q, k, v  # held until here
        return out, probabilities


@dataclass(eq=False)
class Embeddings(Layer):
    """Words and positions, added and normed."""

    def __post_init__(self) -> None:
        self.words = Embedding(VOCABULARY, HIDDEN, reads_input=True)
        self.positions = Embedding(POSITIONS, HIDDEN)
        self.norm = LayerNorm(HIDDEN)
        self.position_indices = Buffer((ONE, POSITIONS), INT64)

    def __call__(self, ids: Tensor) -> Tensor:
        """(batch, length) -> (batch, length, hidden)."""
        words = self.words(ids)
        places = self.positions(ids.tape.constant((ONE, SEQUENCE), INT64))
        x = op.add(words, places)
        x = self.norm(x)
        return op.dropout(x)


@dataclass(eq=False)
class DistilBert(MaskedModel):
    """Embeddings, blocks and the masked-language-model head."""

    embeddings: Embeddings
    layers: Stack[DistilBertBlock]

    transform = "vocab_transform"
    heads: ClassVar[Heads] = with_pairs(
        {
            Task.SEQUENCE: lambda _: FirstToken(DroppedPooled("head.whole"), whole=True),
            Task.TOKENS: lambda _: EachToken(),
            Task.QUESTIONS: lambda _: Span(dropped=True),
        }
    )

    def __post_init__(self) -> None:
        self.make_head(self.embeddings.words)

    @classmethod
    def build(cls, architecture: Architecture, tied: bool) -> "DistilBert":
        """The tree for an architecture."""
        return cls(tied, Embeddings(), Stack((DistilBertBlock(),), architecture.layers))

    def hidden(self, ids: Tensor, held: list[Tensor]) -> Tensor:
        """The last hidden states."""
        x = self.embeddings(ids)
        return self.layers(x)
