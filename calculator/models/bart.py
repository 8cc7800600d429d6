"""BART (transformers' BartForConditionalGeneration).

Source: transformers (models/bart/modeling_bart.py).
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

from calculator.architecture import Architecture
from calculator.autograd import operations as op
from calculator.autograd.dtypes import INT64
from calculator.autograd.graph import Tensor
from calculator.autograd.mode import SEQUENCE, TARGET, Attention, Mode
from calculator.autograd.sizes import ONE, Shape, at_least, plus, size
from calculator.configuration import Configuration
from calculator.errors import InputError
from calculator.layers.attention import Attended, attend, eager_core, heads_of, joined
from calculator.layers.basic import Embedding, LayerNorm, Linear
from calculator.layers.layer import Buffer, Layer
from calculator.layers.stack import Block, Stack
from calculator.models.keys import read_shape, read_size
from calculator.models.model import Model
from calculator.models.widths import FEED, HEAD, HEADS, HIDDEN, VOCABULARY
from calculator.parts import Phase

DECODER_FEED = size("decoder_feed_forward_size")
DROPOUTS = ("attention_dropout", "activation_dropout")  # those that a layer may leave out
UNUSED = 2  # the first rows of both tables of positions
POSITIONS = plus(at_least(size("positions"), at_least(SEQUENCE, TARGET)), UNUSED)


@dataclass(eq=False)
class BartAttention(Layer):
    """Attention to the sequence itself, `causal` in the decoder, or to another one.

    The probabilities are `dropped` where that dropout is not zero.
    """

    key_biased: ClassVar[bool] = True

    causal: bool
    dropped: bool

    def __post_init__(self) -> None:
        self.key = Linear(HIDDEN, HEADS * HEAD, self.key_biased, name="k_proj")
        self.value = Linear(HIDDEN, HEADS * HEAD, name="v_proj")
        self.query = Linear(HIDDEN, HEADS * HEAD, name="q_proj")
        self.output = Linear(HEADS * HEAD, HIDDEN, name="out_proj")

    def __call__(self, x: Tensor, mask: Tensor | None, source: Tensor | None = None) -> Attended:
        """The weighted sum, and eager code's probabilities."""
        attended = x if source is None else source
        q = heads_of(self.query(x), HEADS, HEAD)
        k, v = (heads_of(layer(attended), HEADS, HEAD) for layer in (self.key, self.value))
        eager = partial(eager_core, added=(mask,))
        out, probabilities = attend(q, k, v, eager, self.causal, self.dropped)
        out = self.output(joined(out))
        del q, k, v  # held until here
        return out, probabilities


@dataclass(eq=False)
class BartBlock(Block):
    """Attention, in the `decoder` attention to the encoder too, feed-forward; norms after sums."""

    attends: ClassVar[type[BartAttention]] = BartAttention

    decoder: bool
    attention_dropped: bool
    activation_dropped: bool

    def __post_init__(self) -> None:
        inner = DECODER_FEED if self.decoder else FEED
        self.attention = self.attends(self.decoder, self.attention_dropped)
        self.attention_norm = LayerNorm(HIDDEN)
        self.cross = self.attends(False, self.attention_dropped) if self.decoder else None
        self.cross_norm = LayerNorm(HIDDEN) if self.decoder else None
        self.expand = Linear(HIDDEN, inner, name="fc1")
        self.contract = Linear(inner, HIDDEN, name="fc2")
        self.norm = LayerNorm(HIDDEN)

    def __call__(self, x: Tensor, mask: Tensor | None, encoded: Tensor | None) -> Tensor:
        """The residual stream after the layer; the last probabilities are held until its end."""
        h, _probabilities = self.attention(x, mask)
        h = op.dropout(h)
        h = op.add(x, h)
        x = h = self.attention_norm(h)
        if self.cross is not None and self.cross_norm is not None:
            h, _probabilities = self.cross(h, None, encoded)
            h = op.dropout(h)
            h = op.add(x, h)
            x = h = self.cross_norm(h)
        h = self.expand(h)
        h = op.gelu(h)
        if self.activation_dropped:
            h = op.dropout(h)
        h = self.contract(h)
        h = op.dropout(h)
        h = op.add(x, h)
        return self.norm(h)


@dataclass(eq=False)
class BartStack(Stack[BartBlock]):
    """Words and positions, their norm, and all layers."""

    def __post_init__(self) -> None:
        self.positions = Embedding(POSITIONS, HIDDEN)
        self.first_norm = LayerNorm(HIDDEN)

    def start(self, embedded: Tensor, places: Tensor) -> Tensor:
        """The stream before the first layer."""
        x = op.add(embedded, places)
        x = self.first_norm(x)
        return op.dropout(x)

    def encode(self, words: Embedding, ids: Tensor, encoded: Tensor | None) -> Tensor:
        """Token ids to hidden states; `encoded` is what a decoder attends to."""
        t, (batch, length) = ids.tape, ids.shape
        embedded = words(ids, scaled=True)
        mask = held = None
        if encoded is None:
            places = self.positions(t.empty(ids.shape, INT64))
        else:
            held = t.empty((length,), INT64)
            if t.mode.attention is Attention.EAGER:
                mask = t.empty((batch, ONE, length, length), embedded.dtype)
            places = self.positions(t.empty((ONE, length), INT64))
        x = self.begun(partial(self.start, embedded, places), mask, encoded)
        del embedded, places, held  # held until here
        return x


@dataclass(eq=False)
class Bart(Model):
    """Encoder and decoder on one table of words."""

    encoder: BartStack
    decoder: BartStack
    tied: bool

    has_target = True
    has_reversible_class = False

    def __post_init__(self) -> None:
        self.words = Embedding(VOCABULARY, HIDDEN, reads_input=True)
        self.head = self.words if self.tied else Embedding(VOCABULARY, HIDDEN)
        self.logits_bias = Buffer((ONE, VOCABULARY), None)

    @classmethod
    def read(cls, c: Configuration, name: str) -> Architecture:
        """The architecture that a config.json describes; older keys must be as the class is now."""
        found = read_stacks(cls, c, name, dropout=0.1)
        return replace(found, target_length=found.sequence_length)

    @classmethod
    def build(cls, architecture: Architecture, tied: bool) -> "Bart":
        """The tree for an architecture."""
        dropped = [architecture.has(key) for key in DROPOUTS]
        encoder, decoder = (BartBlock(decoder, *dropped) for decoder in (False, True))
        return cls(
            BartStack((encoder,), architecture.layers),
            BartStack((decoder,), architecture.decoder_layers, "decoder"),
            tied,
        )

    def inputs(self, mode: Mode) -> tuple[Shape, Shape]:
        """Token ids of the encoder, labels of the decoder."""
        return (mode.batch, SEQUENCE), (mode.batch, TARGET)

    def forward(self, ids: Tensor, labels: Tensor) -> Tensor:
        """The loss of one micro-batch; to the logits a table of zeros is added."""
        t = ids.tape
        shifted = t.empty(labels.shape, INT64)
        encoded = self.encoder.encode(self.words, ids, None)
        decoded = self.decoder.encode(self.words, shifted, encoded)
        with t.in_layer("head", 0):
            logits = self.head.unembed(decoded)
        t.ledger.begin(Phase.LOSS)
        logits = op.add(logits, t.constant((ONE, VOCABULARY), t.mode.weights))
        t.hand_out(logits, encoded)
        return op.cross_entropy(logits, labels)


def read_stacks(
    kind: type, c: Configuration, name: str, dropout: float, **more: int
) -> Architecture:
    """The architecture by the keys that BART and Whisper share, and `more` of the type's own.

    Raises:
        InputError: for a decoder with another number of heads.
    """
    found = read_shape(kind, c, name)
    if read_size(c, kind, "decoder_heads") != found.heads:
        rule = f"must be the encoder's {found.heads}: no other number is counted"
        raise InputError("decoder_attention_heads", c.value("decoder_attention_heads"), rule)
    dropped = [key for key in DROPOUTS if c.probability(key, 0.0)]
    numbers = {
        **dict(found.more),
        **more,
        **{key: int(key in dropped) for key in DROPOUTS},
    }
    rate = c.dropout("dropout", dropout, *dropped)
    return replace(found, dropout=rate, more=tuple(numbers.items()))
