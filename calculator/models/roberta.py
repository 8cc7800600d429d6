"""RoBERTa and XLM-RoBERTa: BERT with positions that begin after padding's (RobertaForMaskedLM).

Source: transformers (models/roberta/modeling_roberta.py).
"""

from dataclasses import dataclass
from typing import ClassVar

from calculator.architecture import Architecture
from calculator.autograd import operations as op
from calculator.autograd.dtypes import INT64
from calculator.autograd.graph import Tensor
from calculator.autograd.mode import SEQUENCE
from calculator.autograd.sizes import at_least, plus, size
from calculator.configuration import Configuration
from calculator.layers.heads import EachToken, FirstToken, Heads, Pooled, Span
from calculator.layers.pairs import with_pairs
from calculator.layers.stack import Stack
from calculator.models.bert import Bert, BertBlock, Embeddings
from calculator.task import Task

UNUSED = 2  # the first positions, up to that of padding
POSITIONS = at_least(size("positions"), plus(SEQUENCE, UNUSED))


@dataclass(eq=False)
class RobertaEmbeddings(Embeddings):
    """BERT's, whose places and kinds are made from the token ids."""

    places = POSITIONS

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
    """BERT's blocks and head on embeddings of its own."""

    heads: ClassVar[Heads] = with_pairs(
        {
            Task.SEQUENCE: lambda _: FirstToken(Pooled("head.whole", before=True), whole=True),
            Task.TOKENS: lambda _: EachToken(),
            Task.QUESTIONS: lambda _: Span(),
        },
        idle=True,
    )
    unused = UNUSED
    transform = "lm_head.dense"

    @classmethod
    def read(cls, c: Configuration, name: str) -> Architecture:
        """The architecture that a config.json describes."""
        c.only("pad_token_id", UNUSED - 1)
        return super().read(c, name)

    @classmethod
    def build(cls, architecture: Architecture, tied: bool) -> "Roberta":
        """The tree for an architecture."""
        return cls(RobertaEmbeddings(), Stack((BertBlock(),), architecture.layers), tied)


@dataclass(eq=False)
class XLMRoberta(Roberta):
    """RoBERTa's code with many languages' words."""

    heads = Roberta.heads
