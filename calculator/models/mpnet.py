"""MPNet (transformers' MPNetForMaskedLM): BERT with a learned bias for distances, in eager code.

Source: transformers (models/mpnet/modeling_mpnet.py).
"""

from dataclasses import dataclass
from typing import ClassVar

from calculator.architecture import Architecture
from calculator.autograd import operations as op
from calculator.autograd.dtypes import INT64
from calculator.autograd.graph import Parameter, Tensor
from calculator.autograd.mode import SEQUENCE, Attention
from calculator.autograd.sizes import ONE, size
from calculator.layers.attention import heads_of, joined, scores_of, weighted_sum
from calculator.layers.basic import Embedding, LayerNorm, Linear
from calculator.layers.heads import Heads
from calculator.layers.layer import Buffer, Layer
from calculator.layers.stack import Block, Stack
from calculator.models.bert import Bert, Roberta, RobertaEmbeddings, SummedFeedForward
from calculator.models.widths import HEAD, HEADS, HIDDEN, VOCABULARY


@dataclass(eq=False)
class BiasedAttention(Layer):
    """Self-attention with a bias, its output layer, sum with the input and norm."""

    def __post_init__(self) -> None:
        self.query = Linear(HIDDEN, HEADS * HEAD, name="attn.q")
        self.key = Linear(HIDDEN, HEADS * HEAD, name="attn.k")
        self.value = Linear(HIDDEN, HEADS * HEAD, name="attn.v")
        self.output = Linear(HEADS * HEAD, HIDDEN, name="attn.o")
        self.norm = LayerNorm(HIDDEN)

    def __call__(self, x: Tensor, bias: Tensor) -> Tensor:
        """The normed sum; the output layer's product is held to the end."""
        out = self.attended(x, bias)
        return self.norm(op.add(op.dropout(out), x))

    def attended(self, x: Tensor, bias: Tensor) -> Tensor:
        """(batch, length, hidden) -> the same."""
        q, k, v = (heads_of(layer(x), HEADS, HEAD) for layer in (self.query, self.key, self.value))
        scores = op.add_in_place(op.scale(scores_of(q, k)), bias)
        probabilities = op.dropout(op.softmax(scores))
        summed = op.copy(weighted_sum(probabilities, v))
        out = self.output(joined(summed))
        del q, k, v, scores, probabilities, summed  # held until here
        return out


@dataclass(eq=False)
class MPNetBlock(Block):
    """One layer; its norms come after the sums."""

    def __post_init__(self) -> None:
        self.attention = BiasedAttention()
        self.feed_forward = SummedFeedForward()

    def __call__(self, x: Tensor, bias: Tensor) -> Tensor:
        """The residual stream after the layer."""
        return self.feed_forward(self.attention(x, bias))


@dataclass(eq=False)
class MPNetEmbeddings(Layer):
    """Words and positions, which are made from the token ids, added and normed."""

    unused = RobertaEmbeddings.unused

    def __post_init__(self) -> None:
        places = RobertaEmbeddings.places
        self.words = Embedding(VOCABULARY, HIDDEN, reads_input=True)
        self.positions = Embedding(places, HIDDEN)
        self.norm = LayerNorm(HIDDEN)
        self.position_indices = Buffer((ONE, places), INT64)

    def __call__(self, ids: Tensor) -> Tensor:
        """(batch, length) -> (batch, length, hidden)."""
        places = ids.tape.empty(ids.shape, INT64)  # counted from the token ids, held to the end
        words = self.words(ids)
        place_part = self.positions(places)
        x = op.add(words, place_part)
        x = self.norm(x)
        return op.dropout(x)


@dataclass(eq=False)
class MPNet(Roberta):
    """RoBERTa's head and heads around blocks that share one bias."""

    embeddings: MPNetEmbeddings  # type: ignore[assignment]
    layers: Stack[MPNetBlock]  # type: ignore[assignment]

    heads: ClassVar[Heads] = Roberta.heads
    kernels = (Attention.EAGER, Attention.SDPA)
    has_attention_core = False
    plain_layers = "MPNetLayer"

    def __post_init__(self) -> None:
        self.distances = Parameter((size("relative_buckets"), HEADS), table=True)
        super().__post_init__()

    @classmethod
    def build(cls, architecture: Architecture, tied: bool) -> Bert:
        """The tree for an architecture."""
        return cls(tied, MPNetEmbeddings(), Stack((MPNetBlock(),), architecture.layers))

    def hidden(self, ids: Tensor, held: list[Tensor]) -> Tensor:
        """The last hidden states; the embeddings are held until the base model returns."""
        embedded = self.embeddings(ids)
        held.append(embedded)
        bias = self.bias(embedded)
        return self.layers(embedded, bias)

    def bias(self, x: Tensor) -> Tensor:
        """A learned number for each head and distance, copied for each sequence."""
        t = x.tape
        square = (SEQUENCE, SEQUENCE)
        bias = op.embedding(t.empty(square, INT64), t.weight(self.distances), turned=True)
        bias = op.expand(op.view(bias, ONE, HEADS, *square), t.mode.batch, HEADS, *square)
        return op.copy(bias)
