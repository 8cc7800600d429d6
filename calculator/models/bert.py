"""BERT, RoBERTa, XLM-RoBERTa and DistilBERT, each with its head for masked tokens.

Counted are BertForMaskedLM, RobertaForMaskedLM, XLMRobertaForMaskedLM and DistilBertForMaskedLM.

Source: transformers (models/bert/modeling_bert.py, models/roberta/modeling_roberta.py,
models/distilbert/modeling_distilbert.py).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from calculator.architecture import Architecture
from calculator.autograd import operations as op
from calculator.autograd.dtypes import INT64
from calculator.autograd.graph import Recorder, Tensor
from calculator.autograd.mode import SEQUENCE
from calculator.autograd.sizes import ONE, Size, plus, size
from calculator.configuration import Configuration
from calculator.errors import InputError
from calculator.layers.attention import Attended, attend, eager_core, heads_of, joined
from calculator.layers.basic import Embedding, LayerNorm, Linear
from calculator.layers.feed_forward import FeedForward
from calculator.layers.heads import DroppedPooled, FirstToken, Heads, Pooled, Span
from calculator.layers.layer import Buffer, Layer, weights_of
from calculator.layers.pairs import task_heads
from calculator.layers.reversible import Coupling
from calculator.layers.stack import Block, Stack
from calculator.models.masked import MaskedModel
from calculator.models.widths import FEED, HEAD, HEADS, HIDDEN, POSITIONS, VOCABULARY


@dataclass(eq=False)
class Output(Layer):
    """LayerNorm(dropout(W h) + x)."""

    inputs: Size
    name: str

    def __post_init__(self) -> None:
        self.dense = Linear(self.inputs, HIDDEN, name=self.name)
        self.norm = LayerNorm(HIDDEN)

    def __call__(self, h: Tensor, x: Tensor | None) -> Tensor:
        """Without x the layer is a branch of reversible streams."""
        out = self.dense(h)
        out = op.dropout(out)
        total = out if x is None else op.add(out, x)
        return self.norm(total)


@dataclass(eq=False)
class SelfAttention(Layer):
    """Self-attention, its output layer, sum with the input (unless `alone`) and norm."""

    def __post_init__(self) -> None:
        self.query = Linear(HIDDEN, HEADS * HEAD, name="query")
        self.key = Linear(HIDDEN, HEADS * HEAD, name="key")
        self.value = Linear(HIDDEN, HEADS * HEAD, name="value")
        self.output = Output(HEADS * HEAD, "attention.output.dense")

    def __call__(self, x: Tensor, alone: bool = False) -> Attended:
        """The normed sum, and eager code's probabilities."""
        q, k, v = (heads_of(layer(x), HEADS, HEAD) for layer in (self.query, self.key, self.value))
        out, probabilities = attend(q, k, v, eager_core, causal=False)
        del q, k, v
        return self.output(joined(out), None if alone else x), probabilities


@dataclass(eq=False)
class SummedFeedForward(Layer):
    """Two products with GELU between, sum with the input (unless `alone`) and norm."""

    def __post_init__(self) -> None:
        self.intermediate = Linear(HIDDEN, FEED, name="intermediate.dense")
        self.output = Output(FEED, "output.dense")

    def __call__(self, x: Tensor, alone: bool = False) -> Tensor:
        """(batch, length, hidden) -> the same."""
        h = self.intermediate(x)
        h = op.gelu(h)
        return self.output(h, None if alone else x)


@dataclass(eq=False)
class BertBlock(Block):
    """One layer; its norms come after the sums."""

    def __post_init__(self) -> None:
        self.attention = SelfAttention()
        self.feed_forward = SummedFeedForward()

    def __call__(self, x: Tensor) -> Tensor:
        """The residual stream after the layer."""
        attended, _probabilities = self.attention(x)
        return self.feed_forward(attended)

    def couplings(self, t: Recorder) -> Sequence[Coupling]:
        """Two branches, each with its own norm at the end."""
        return [
            Coupling(lambda x: self.attention(x, alone=True)[0], weights_of(t, self.attention)),
            Coupling(lambda x: self.feed_forward(x, alone=True), weights_of(t, self.feed_forward)),
        ]


@dataclass(eq=False)
class Embeddings(Layer):
    """Words, kinds and positions, added and normed."""

    places: ClassVar[Size] = POSITIONS
    width: ClassVar[Size] = HIDDEN
    unused: ClassVar[int] = 0  # the first positions, which no token has

    def __post_init__(self) -> None:
        self.words = Embedding(VOCABULARY, self.width, reads_input=True)
        self.positions = Embedding(self.places, self.width)
        self.kinds = Embedding(size("token_types"), self.width)
        self.norm = LayerNorm(self.width)
        # indices of positions and kinds, which take no bytes of their own when they are read
        self.position_indices = Buffer((ONE, self.places), INT64)
        self.kind_indices = Buffer((ONE, self.places), INT64)

    def __call__(self, ids: Tensor) -> Tensor:
        """(batch, length) -> (batch, length, hidden)."""
        t = ids.tape
        word_part = self.words(ids)
        kinds = op.expand(t.empty((ONE, SEQUENCE), INT64), *ids.shape)
        kind_part = self.kinds(kinds)
        del kinds
        x = op.add(word_part, kind_part)
        place_part = self.positions(t.constant((ONE, SEQUENCE), INT64))
        x = op.add(x, place_part)
        x = self.norm(x)
        return op.dropout(x)


@dataclass(eq=False)
class Bert(MaskedModel):
    """Embeddings, blocks and the masked-language-model head."""

    embeddings: Embeddings
    layers: Stack[BertBlock]

    unused = "bias"
    heads: ClassVar[Heads] = task_heads(lambda _: FirstToken(Pooled(), inside=True), idle=True)
    embeddings_class: ClassVar[type[Embeddings]] = Embeddings

    def __post_init__(self) -> None:
        self.make_head(self.embeddings.words)

    @classmethod
    def read(cls, c: Configuration, name: str) -> Architecture:
        """The architecture that a config.json describes."""
        found = super().read(c, name)
        length = found.positions - cls.embeddings_class.unused
        if length <= 0:
            rule = f"must be above {cls.embeddings_class.unused}"
            raise InputError("max_position_embeddings", found.positions, rule)
        return replace(found, positions=length, sequence_length=length)

    @classmethod
    def build(cls, architecture: Architecture, tied: bool) -> "Bert":
        """The tree for an architecture."""
        stack = Stack((BertBlock(),), architecture.layers)
        return cls(tied, cls.embeddings_class(), stack)

    def hidden(self, ids: Tensor, held: list[Tensor]) -> Tensor:
        """The last hidden states; the embeddings are held until the base model returns."""
        embedded = self.embeddings(ids)
        held.append(embedded)
        return self.layers(embedded)


UNUSED = 2  # RoBERTa's first positions, up to that of padding


@dataclass(eq=False)
class RobertaEmbeddings(Embeddings):
    """BERT's, whose places and kinds are made from the token ids."""

    unused = UNUSED
    places = plus(POSITIONS, UNUSED)
    listed_first = ("words", "kinds", "norm")

    def __call__(self, ids: Tensor) -> Tensor:
        """(batch, length) -> (batch, length, hidden)."""
        t = ids.tape
        places = t.empty(ids.shape, INT64)  # counted from the token ids, held to the end
        kinds = t.empty(ids.shape, INT64)  # gathered by places, held too
        word_part = self.words(ids)
        kind_part = self.kinds(kinds)
        x = op.add(word_part, kind_part)
        place_part = self.positions(places)
        x = op.add(x, place_part)
        x = self.norm(x)
        return op.dropout(x)


@dataclass(eq=False)
class Roberta(Bert):
    """BERT's blocks and head on embeddings whose positions begin after padding's."""

    heads: ClassVar[Heads] = task_heads(
        lambda _: FirstToken(Pooled("head.whole", before=True), whole=True), idle=True
    )
    embeddings_class = RobertaEmbeddings
    transform = "lm_head.dense"

    @classmethod
    def read(cls, c: Configuration, name: str) -> Architecture:
        """The architecture that a config.json describes."""
        c.only("pad_token_id", UNUSED - 1)
        return super().read(c, name)


@dataclass(eq=False)
class XLMRoberta(Roberta):
    """RoBERTa's code with many languages' words."""

    heads = Roberta.heads


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
class DistilBertEmbeddings(Layer):
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

    embeddings: DistilBertEmbeddings
    layers: Stack[DistilBertBlock]

    transform = "vocab_transform"
    heads: ClassVar[Heads] = task_heads(
        lambda _: FirstToken(DroppedPooled("head.whole"), whole=True),
        questions=lambda _: Span(dropped=True),
    )

    def __post_init__(self) -> None:
        self.make_head(self.embeddings.words)

    @classmethod
    def build(cls, architecture: Architecture, tied: bool) -> "DistilBert":
        """The tree for an architecture."""
        return cls(tied, DistilBertEmbeddings(), Stack((DistilBertBlock(),), architecture.layers))

    def hidden(self, ids: Tensor, held: list[Tensor]) -> Tensor:
        """The last hidden states."""
        x = self.embeddings(ids)
        return self.layers(x)
