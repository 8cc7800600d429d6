"""ALBERT (transformers' AlbertForMaskedLM): narrow embeddings, and one layer that is used again.

Source: transformers (models/albert/modeling_albert.py).
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

from calculator.architecture import Architecture
from calculator.autograd import operations as op
from calculator.autograd.graph import Tensor
from calculator.autograd.sizes import Size
from calculator.configuration import Configuration
from calculator.layers.attention import Attended, attend, eager_core, heads_of, joined
from calculator.layers.basic import LayerNorm, Linear
from calculator.layers.heads import EachToken, FirstToken, Heads, Pooled
from calculator.layers.layer import Layer
from calculator.layers.pairs import task_heads
from calculator.layers.stack import Block, Stack
from calculator.models.bert import Bert
from calculator.models.electra import EMBEDDED, NarrowEmbeddings
from calculator.models.widths import FEED, HEAD, HEADS, HIDDEN


@dataclass(eq=False)
class SummedAttention(Layer):
    """Self-attention, its output layer, sum with the input and norm, in one function."""

    def __post_init__(self) -> None:
        self.query = Linear(HIDDEN, HEADS * HEAD, name="attention.query")
        self.key = Linear(HIDDEN, HEADS * HEAD, name="attention.key")
        self.value = Linear(HIDDEN, HEADS * HEAD, name="attention.value")
        self.output = Linear(HEADS * HEAD, HIDDEN, name="attention.dense")
        self.norm = LayerNorm(HIDDEN)

    def __call__(self, x: Tensor) -> Attended:
        """The normed sum, and eager code's probabilities."""
        q, k, v = (heads_of(layer(x), HEADS, HEAD) for layer in (self.query, self.key, self.value))
        out, probabilities = attend(q, k, v, eager_core, causal=False)
        out = self.output(joined(out))
        out = op.dropout(out)
        out = self.norm(op.add(x, out))
        del q, k, v  # held until here
        return out, probabilities


@dataclass(eq=False)
class AlbertBlock(Block):
    """One layer; its norms come after the sums, and the second branch has no dropout."""

    def __post_init__(self) -> None:
        self.norm = LayerNorm(HIDDEN)
        self.attention = SummedAttention()
        self.expand = Linear(HIDDEN, FEED, name="ffn")
        self.contract = Linear(FEED, HIDDEN, name="ffn_output")

    def __call__(self, x: Tensor) -> Tensor:
        """The residual stream after the layer."""
        attended, _probabilities = self.attention(x)
        out = self.forwarded(attended)
        return self.norm(op.add(out, attended))

    def forwarded(self, x: Tensor) -> Tensor:
        """(batch, length, hidden) -> the same."""
        h = self.expand(x)
        h = op.gelu_new(h)
        return self.contract(h)


@dataclass(eq=False)
class AlwaysDropped(Pooled):
    """BERT's, before a classifier whose dropout is not the model's."""

    after: bool = False

    def __call__(self, x: Tensor) -> Tensor:
        """(batch, hidden) -> the same."""
        return op.always_dropout(super().__call__(x))


@dataclass(eq=False)
class Albert(Bert):
    """One layer between embeddings and a head of another width."""

    embeddings: NarrowEmbeddings
    layers: Stack[AlbertBlock]  # type: ignore[assignment]

    heads: ClassVar[Heads] = task_heads(
        lambda _: FirstToken(AlwaysDropped(), inside=True),
        tokens=lambda _: EachToken(dropped=True),
        idle=True,
    )
    transform = "predictions.dense"
    listed_first = ("embeddings", "project", "layers", "head_bias", "norm")
    plain_layers = "AlbertLayerGroup"

    def __post_init__(self) -> None:
        self.project = Linear(EMBEDDED, HIDDEN, name="embedding_hidden_mapping_in")
        super().__post_init__()

    @classmethod
    def read(cls, c: Configuration, name: str) -> Architecture:
        """The architecture that a config.json describes, with one layer for all."""
        return replace(super().read(c, name), sharing_groups=1)

    @classmethod
    def build(cls, architecture: Architecture, tied: bool) -> "Albert":
        """The tree for an architecture."""
        return cls(tied, NarrowEmbeddings(), Stack((AlbertBlock(),), architecture.layers, groups=1))

    @property
    def head_width(self) -> Size:
        """Width of what the dense layer makes."""
        return EMBEDDED

    def hidden(self, ids: Tensor, held: list[Tensor]) -> Tensor:
        """The last hidden states; the embeddings are held until the base model returns."""
        embedded = self.embeddings(ids)
        held.append(embedded)
        return self.layers.begun(partial(self.project, embedded))

    def transformed(self, x: Tensor) -> Tensor:
        """Dense, GELU by tanh and norm, before the product with all words."""
        with x.tape.in_layer("head", 0):
            h = self.dense(x)
            h = op.gelu_new(h)
            return self.norm(h)
