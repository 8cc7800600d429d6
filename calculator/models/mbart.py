"""mBART, M2M100 (NLLB too), Pegasus and Marian: BART's encoder and decoder, with other positions.

Counted are MBartForConditionalGeneration, M2M100ForConditionalGeneration,
PegasusForConditionalGeneration and MarianMTModel.

Source: transformers (models/mbart/modeling_mbart.py, models/m2m_100/modeling_m2m_100.py,
models/pegasus/modeling_pegasus.py, models/marian/modeling_marian.py).
"""

from dataclasses import dataclass, replace
from typing import ClassVar

from calculator.architecture import Architecture
from calculator.autograd import operations as op
from calculator.autograd.dtypes import FLOAT32, INT32, INT64
from calculator.autograd.graph import Parameter, Tensor
from calculator.autograd.mode import SEQUENCE, TARGET
from calculator.autograd.sizes import at_least, size
from calculator.configuration import Configuration
from calculator.layers.basic import Embedding
from calculator.layers.layer import Buffer
from calculator.models.bart import POSITIONS, Bart, BartStack, NormsBefore
from calculator.models.widths import HIDDEN


@dataclass(eq=False)
class MBartStack(BartStack):
    """Words and positions, their norm, all layers and a norm."""

    ends_with_norm = True


class MBart(Bart):
    """Encoder and decoder whose norms come before each part."""

    block, stack = NormsBefore, MBartStack
    shifted_by, has_start = "mbart", False


@dataclass(eq=False)
class MarianStack(BartStack):
    """Words and fixed positions, and all layers."""

    listed_first: ClassVar[tuple[str, ...]] = ("fixed",)

    def make_places(self) -> None:
        """Make the table, which is not trained."""
        self.fixed = Parameter(
            (at_least(size("positions"), at_least(SEQUENCE, TARGET)), HIDDEN),
            trained=False,
            table=True,
        )

    def start(self, embedded: Tensor, places: Tensor) -> Tensor:
        """The stream before the first layer."""
        x = op.add(embedded, places)
        return op.dropout(x)

    def embedded(self, words: Embedding, ids: Tensor, reader: int) -> Tensor:
        """The words' rows times a number, outside of the table's module."""
        return op.scale(words(ids, reader=reader))

    def placed(self, ids: Tensor, decoder: bool) -> Tensor:
        """One row for each position."""
        t = ids.tape
        return t.empty((ids.shape[1], HIDDEN), t.mode.weights)


class Marian(Bart):
    """Encoder and decoder on one table of words, with fixed positions."""

    stack = MarianStack


@dataclass(eq=False)
class PegasusStack(MarianStack):
    """Words and fixed positions, all layers and a norm."""

    ends_with_norm = True


class Pegasus(Bart):
    """Encoder and decoder with fixed positions, whose norms come before each part."""

    block, stack = NormsBefore, PegasusStack


@dataclass(eq=False)
class M2M100Stack(PegasusStack):
    """Words and computed positions, all layers and a norm."""

    listed_first = ()
    holds_places = False
    embedded = BartStack.embedded

    def start(self, embedded: Tensor, places: Tensor) -> Tensor:
        """The stream before the first layer; FSDP casts what that reads to the weights' format."""
        return op.cast(super().start(embedded, places), embedded.dtype)

    def make_places(self) -> None:
        """Make the table, which no checkpoint has."""
        self.computed = Buffer((POSITIONS, HIDDEN), None)

    def placed(self, ids: Tensor, decoder: bool) -> Tensor:
        """A row for each token, as padding has none of its own."""
        t = ids.tape
        mask = t.empty(ids.shape, INT32)
        indices = t.empty(ids.shape, INT64)
        del mask
        dtype = FLOAT32 if t.mode.narrows_shards else t.mode.weights  # FSDP narrows no buffers
        places = t.empty((*ids.shape, HIDDEN), dtype)
        del indices
        return places


class M2M100(Bart):
    """Encoder and decoder with computed positions, whose norms come before each part."""

    block, stack = NormsBefore, M2M100Stack
    added_to_logits = ""

    @classmethod
    def read(cls, c: Configuration, name: str) -> Architecture:
        """The architecture; it notes if training may skip layers (layerdrop)."""
        found = super().read(c, name)
        rates = [c.probability(f"{part}_layerdrop", 0.05) for part in ("encoder", "decoder")]
        drops = any(rates)
        more = (*found.more, ("layerdrop", int(drops)))
        return replace(found, more=more, note=found.note if drops else "")
