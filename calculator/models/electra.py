"""ELECTRA (transformers' ElectraForMaskedLM): BERT with narrower embeddings, which are projected.

Source: transformers (models/electra/modeling_electra.py).
"""

from dataclasses import dataclass
from typing import ClassVar

from calculator.architecture import Architecture
from calculator.autograd.graph import Tensor
from calculator.autograd.sizes import Size, size
from calculator.layers.basic import Linear
from calculator.layers.heads import FirstToken, Heads, Pooled
from calculator.layers.pairs import task_heads
from calculator.layers.stack import Stack
from calculator.models.bert import Bert, BertBlock, Embeddings
from calculator.models.widths import HIDDEN

EMBEDDED = size("embedding_size")


@dataclass(eq=False)
class NarrowEmbeddings(Embeddings):
    """BERT's, of a width of their own."""

    width = EMBEDDED


@dataclass(eq=False)
class Electra(Bert):
    """BERT's blocks between embeddings and a head of another width.

    Embeddings of the stream's own width are not projected.
    """

    projected: bool = False

    unused = ""
    heads: ClassVar[Heads] = task_heads(
        lambda _: FirstToken(Pooled("head.whole", before=True, activation="gelu"), whole=True)
    )
    transform = "generator_predictions.dense"
    listed_first = ("embeddings", "project", "layers", "norm")

    def __post_init__(self) -> None:
        self.project = (
            Linear(EMBEDDED, HIDDEN, name="embeddings_project") if self.projected else None
        )
        super().__post_init__()

    @classmethod
    def build(cls, architecture: Architecture, tied: bool) -> "Electra":
        """The tree for an architecture."""
        narrow = architecture.numbers["embedding_size"] != architecture.hidden_size
        stack = Stack((BertBlock(),), architecture.layers)
        return cls(tied, NarrowEmbeddings() if narrow else Embeddings(), stack, narrow)

    @property
    def head_width(self) -> Size:
        """Width of what the dense layer makes."""
        return EMBEDDED if self.projected else HIDDEN

    def hidden(self, ids: Tensor, held: list[Tensor]) -> Tensor:
        """The last hidden states; the embeddings are held until the base model returns."""
        embedded = self.embeddings(ids)
        if self.project is not None:
            embedded = self.project(embedded)
        held.append(embedded)
        return self.layers(embedded)
