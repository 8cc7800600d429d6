"""BART and Whisper: an encoder and a decoder that attends to it.

Counted are BartForConditionalGeneration, WhisperForConditionalGeneration and
WhisperForAudioClassification.

Source: transformers (models/bart/modeling_bart.py, models/whisper/modeling_whisper.py).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

from calculator.architecture import Architecture
from calculator.autograd import operations as op
from calculator.autograd.dtypes import FLOAT16, FLOAT32, INT64, DType
from calculator.autograd.graph import Parameter, Recorder, Tensor
from calculator.autograd.mode import SEQUENCE, TARGET, Attention, Mode
from calculator.autograd.sizes import ONE, Shape, at_least, constant, plus, size
from calculator.configuration import LONGEST_SEQUENCE, Configuration
from calculator.errors import InputError
from calculator.layers.attention import (
    Attended,
    attend,
    eager_core,
    fused_core,
    heads_of,
    joined,
    math_core,
    scores_of,
    selectively,
    weighted_sum,
    without_dropout,
)
from calculator.layers.basic import Embedding, LayerNorm, Linear
from calculator.layers.convolution import Convolution
from calculator.layers.feed_forward import Activation, activated
from calculator.layers.grouped import head_by_head
from calculator.layers.heads import Averaged, Heads
from calculator.layers.layer import Buffer, Layer
from calculator.layers.loss import masked_loss
from calculator.layers.stack import Block, Stack
from calculator.models.keys import declared, read_shape, read_size
from calculator.models.model import LanguageModel
from calculator.models.widths import FEED, HEAD, HEADS, HIDDEN, VOCABULARY
from calculator.parts import Phase
from calculator.task import Task

DECODER_FEED = size("decoder_feed_forward_size")
DROPOUTS = ("attention_dropout", "activation_dropout")  # those that a layer may leave out
ALIASES = {"swish": Activation.SILU}
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
    activation: Activation = Activation.GELU

    def __post_init__(self) -> None:
        inner = DECODER_FEED if self.decoder else FEED
        self.attention = self.attends(self.decoder, self.attention_dropped)
        self.attention_norm = LayerNorm(HIDDEN)
        self.cross = self.attends(False, self.attention_dropped) if self.decoder else None
        self.cross_norm = LayerNorm(HIDDEN) if self.decoder else None
        self.expand = Linear(HIDDEN, inner, name="fc1")
        self.contract = Linear(inner, HIDDEN, name="fc2")
        self.norm = LayerNorm(HIDDEN)

    def recomputed(
        self, t: Recorder, mask: Tensor | None, encoded: Tensor | None
    ) -> Callable[[Tensor], Tensor]:
        """The layer under a checkpoint, which keeps or moves all that it is handed."""
        given = [item for item in (mask, encoded) if item is not None]
        there = [item is not None for item in (mask, encoded)]

        def again(x: Tensor, *kept: Tensor) -> Tensor:
            rest = iter(kept)
            return self(x, *(next(rest) if each else None for each in there))

        return lambda x: t.checkpoint(again, x, *given)

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
        h = activated(h, self.activation)
        if self.activation_dropped:
            h = op.dropout(h)
        h = self.contract(h)
        h = op.dropout(h)
        h = op.add(x, h)
        return self.norm(h)


@dataclass(eq=False)
class NormsBefore(BartBlock):
    """The same with a norm before each; an encoder's sums are kept from overflowing 16 bits."""

    def __call__(self, x: Tensor, mask: Tensor | None, encoded: Tensor | None) -> Tensor:
        """The residual stream after the layer; the last probabilities are held until its end."""
        h = self.attention_norm(x)
        h, _probabilities = self.attention(h, mask)
        h = op.dropout(h)
        x = h = op.add(x, h)
        if self.cross is not None and self.cross_norm is not None:
            h = self.cross_norm(h)
            h, _probabilities = self.cross(h, None, encoded)
            h = op.dropout(h)
            x = h = op.add(x, h)
        h = self.norm(h)
        h = activated(self.expand(h), self.activation)  # which holds what was normed
        if self.activation_dropped:
            h = op.dropout(h)
        h = self.contract(h)
        h = op.dropout(h)
        x = op.add(x, h)
        return op.clamp(x, 2) if x.dtype is FLOAT16 and not self.decoder else x


@dataclass(eq=False)
class BartStack(Stack[BartBlock]):
    """Words and positions, their norm, and all layers."""

    listed_first: ClassVar[tuple[str, ...]] = ("positions",)
    holds_places: ClassVar[bool] = True  # the decoder's numbers of positions, to its end

    ends_with_norm: ClassVar[bool] = False

    def __post_init__(self) -> None:
        self.make_places()
        self.norm = LayerNorm(HIDDEN) if self.ends_with_norm else None

    def make_places(self) -> None:
        """Make what is added to the words, and its norm."""
        self.positions = Embedding(POSITIONS, HIDDEN)
        self.first_norm = LayerNorm(HIDDEN)

    def start(self, embedded: Tensor, places: Tensor) -> Tensor:
        """The stream before the first layer."""
        x = op.add(embedded, places)
        x = self.first_norm(x)
        return op.dropout(x)

    def embedded(self, words: Embedding, ids: Tensor, reader: int) -> Tensor:
        """The words' rows times a number."""
        return words(ids, scaled=True, reader=reader)

    def placed(self, ids: Tensor, decoder: bool) -> Tensor:
        """The rows of their positions, which a decoder has once for all sequences."""
        shape = (ONE, ids.shape[1]) if decoder else ids.shape
        return self.positions(ids.tape.empty(shape, INT64))

    def encode(self, words: Embedding, ids: Tensor, encoded: Tensor | None) -> Tensor:
        """Token ids to hidden states; `encoded` is what a decoder attends to."""
        t, (batch, length) = ids.tape, ids.shape
        embedded = self.embedded(words, ids, int(encoded is not None))
        mask = held = None
        if encoded is not None:
            held = t.empty((length,), INT64) if self.holds_places else None
            if t.mode.attention is Attention.EAGER:
                mask = t.empty((batch, ONE, length, length), embedded.dtype)
        places = self.placed(ids, encoded is not None)
        x = self.begun(partial(self.start, embedded, places), mask, encoded)
        x = x if self.norm is None else self.norm(x)
        del embedded, places, held  # held until here
        return x


@dataclass(eq=False)
class Bart(LanguageModel):
    """Encoder and decoder on one table of words."""

    encoder: BartStack
    decoder: BartStack
    tied: bool

    block: ClassVar[type[BartBlock]] = BartBlock
    stack: ClassVar[type[BartStack]] = BartStack
    added_to_logits = "final_logits_bias"
    has_target = True
    has_reversible_class = False
    unused = "table of words"

    def __post_init__(self) -> None:
        self.words = self.decoder_words = Embedding(VOCABULARY, HIDDEN, reads_input=True, readers=2)
        self.head = self.words
        if not self.tied:  # transformers then has a table for each, and one that nobody reads
            self.unread = Parameter((VOCABULARY, HIDDEN), trained=False, table=True, idle=True)
            self.words, self.decoder_words = (
                Embedding(VOCABULARY, HIDDEN, reads_input=True) for _ in range(2)
            )
            self.head = Embedding(VOCABULARY, HIDDEN)
        self.logits_bias = Buffer((ONE, VOCABULARY), None) if self.added_to_logits else None

    @classmethod
    def read(cls, c: Configuration, name: str) -> Architecture:
        """The architecture that a config.json describes; older keys must be as the class is now."""
        found = read_stacks(cls, c, name, dropout=0.1)
        return replace(found, target_length=found.sequence_length)

    @classmethod
    def build(cls, architecture: Architecture, tied: bool) -> "Bart":
        """The tree for an architecture."""
        in_attention, between = (architecture.has(key) for key in DROPOUTS)
        function = next(a for a in Activation if architecture.has(a) or a is Activation.GELU)
        encoder, decoder = (
            cls.block(decoder, in_attention, between, function) for decoder in (False, True)
        )
        return cls(
            cls.stack((encoder,), architecture.layers),
            cls.stack((decoder,), architecture.decoder_layers, "decoder"),
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
        decoded = self.decoder.encode(self.decoder_words, shifted, encoded)
        # FSDP narrows no buffers
        dtype = FLOAT32 if t.mode.narrows_shards else t.mode.weights
        if t.mode.chunked_loss:
            del encoded  # dies here
            bias = t.constant((VOCABULARY,), dtype) if self.added_to_logits else None
            return self.loss_in_chunks(decoded, labels, bias)
        logits = self.product(decoded)
        t.ledger.begin(Phase.LOSS)
        if self.added_to_logits:
            logits = op.add(logits, t.constant((ONE, VOCABULARY), dtype))
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
    functions = declared(kind, "texts")["activation_function"]
    function = c.text("activation_function", functions[0], functions)
    numbers = {
        **dict(found.more),
        **({} if function == Activation.GELU else {ALIASES.get(function, function): 1}),
        **more,
        **{key: int(key in dropped) for key in DROPOUTS},
    }
    rate = c.dropout("dropout", dropout, *dropped)
    return replace(found, dropout=rate, more=tuple(numbers.items()))


MELS, PLACES = size("mel_bins"), size("target_positions")
FRAMES = 2 * SEQUENCE  # two frames of the spectrogram become one place
KERNEL = (constant(3),)


@dataclass(eq=False)
class WhisperAttention(BartAttention):
    """Attention whose queries, keys and values are copied to lie head after head."""

    key_biased = False

    def __call__(self, x: Tensor, mask: Tensor | None, source: Tensor | None = None) -> Attended:
        """The weighted sum, and eager code's probabilities."""
        attended = x if source is None else source
        q = self.heads_of(op.scale(self.query(x)))
        k = self.heads_of(self.key(attended))
        v = self.heads_of(self.value(attended))
        core = partial(self.core, mask=mask)
        out, probabilities = selectively(core if self.dropped else without_dropout(core), q, k, v)
        out = self.output(joined(out))
        del q, k, v  # held until here
        return out, probabilities

    def heads_of(self, x: Tensor) -> Tensor:
        """(batch, length, hidden) -> (batch, heads, length, head), copied."""
        # the efficient kernel's gradients lie token after token, the others' head after head
        efficient = self.kernel(x.tape.mode) is Attention.EFFICIENT
        view = op.view if efficient else op.regrouped
        return op.copy(op.transpose(view(x, *x.shape[:-1], HEADS, HEAD), 1, 2))

    def kernel(self, mode: Mode) -> Attention:
        """The kernel of the plan, or the one that PyTorch picks."""
        return mode.kernel(masked=False)

    def core(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Attended:
        """Attention in that kernel."""
        length = q.shape[2]
        match self.kernel(q.tape.mode):
            case Attention.EAGER:
                return eager(q, k, v, mask)
            case Attention.MATH:
                added = q.tape.empty((length, length), FLOAT32) if self.causal else None
                return math_core(q, k, v, added, side_by_side=True, repeated=True)
            case Attention.FLASH:
                return head_by_head(q, k, v), None
            case _:
                return fused_core(q, k, v), None


def eager(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Attended:
    """Scores, mask, softmax and weighted sum in plain operations."""
    scores = op.scale(scores_of(q, k, side_by_side=True))
    if mask is not None:
        scores = op.add(scores, mask)
    scores = op.softmax(scores)
    scores = op.dropout(scores)
    return op.copy(weighted_sum(scores, v, repeated=True)), scores


class WhisperBlock(NormsBefore):
    """A layer with Whisper's attention."""

    attends = WhisperAttention


@dataclass(eq=False)
class WhisperEncoder(Stack[WhisperBlock]):
    """Two convolutions, fixed positions, all layers and a norm."""

    listed_first = ("first", "second", "positions")

    def __post_init__(self) -> None:
        self.first = Convolution(MELS, HIDDEN, KERNEL, reads_input=True)
        self.second = Convolution(HIDDEN, HIDDEN, KERNEL)
        self.positions = Parameter((SEQUENCE, HIDDEN), trained=False, table=True)
        self.norm = LayerNorm(HIDDEN)

    def encode(self, features: Tensor) -> Tensor:
        """A spectrogram, (batch, mels, frames), to hidden states."""
        x = op.gelu(self.first(features, FRAMES, turned=False))
        x = op.gelu(self.second(x, SEQUENCE))
        places = x.tape.empty((SEQUENCE,), INT64)
        out = self.begun(partial(self.start, x), None, None)
        out = self.norm(out)
        del x, places  # held until here
        return out

    def start(self, x: Tensor) -> Tensor:
        """The stream before the first layer."""
        t = x.tape
        placed = t.empty((SEQUENCE, HIDDEN), t.mode.weights)
        x = op.add(op.transpose(x, 1, 2), placed)
        del placed
        return op.dropout(x)


@dataclass(eq=False)
class WhisperDecoder(Stack[WhisperBlock]):
    """Words and positions, all layers and a norm."""

    listed_first: ClassVar[tuple[str, ...]] = ("positions",)

    def __post_init__(self) -> None:
        self.positions = Parameter((PLACES, HIDDEN), table=True)
        self.norm = LayerNorm(HIDDEN)

    def decode(self, words: Embedding, ids: Tensor, encoded: Tensor) -> Tensor:
        """Token ids to hidden states, with attention to what was encoded."""
        t, (batch, length) = ids.tape, ids.shape
        embedded = words(ids)
        weight = t.weight(self.positions)
        indices = t.empty(ids.shape, INT64)
        places = t.operation([weight], embedded.shape, weight.dtype, saves=[indices])
        mask = None
        if t.mode.attention is Attention.EAGER:
            mask = t.empty((batch, ONE, length, length), embedded.dtype)
        x = self.begun(partial(self.start, embedded, places), mask, encoded)
        x = self.norm(x)
        del embedded, places, indices  # held until here
        return x

    def start(self, embedded: Tensor, places: Tensor) -> Tensor:
        """The stream before the first layer."""
        x = op.add(embedded, places)
        return op.dropout(x)


@dataclass(eq=False)
class Whisper(LanguageModel):
    """Encoder of a spectrogram, decoder of words."""

    encoder: WhisperEncoder
    decoder: WhisperDecoder | None  # None beside the head of another task
    tied: bool

    can_freeze = False
    fixed_length = "places of a spectrogram; choose a target length"
    has_target = True
    has_reversible_class = False
    heads: ClassVar[Heads] = {Task.AUDIO: lambda _: Averaged()}
    language_head = ("decoder", "words", *LanguageModel.language_head)
    listed_first = ("encoder", "words")

    def __post_init__(self) -> None:
        self.words = Embedding(VOCABULARY, HIDDEN, reads_input=True)
        self.head = self.words if self.tied else Embedding(VOCABULARY, HIDDEN)

    @classmethod
    def read(cls, c: Configuration, name: str) -> Architecture:
        """The architecture that a config.json describes."""
        positions = c.size("max_target_positions", 448, most=LONGEST_SEQUENCE)
        found = read_stacks(cls, c, name, dropout=0.0, target_positions=positions)
        return replace(found, target_length=positions)

    @classmethod
    def build(cls, architecture: Architecture, tied: bool) -> "Whisper":
        """The tree for an architecture."""
        in_attention, between = (architecture.has(key) for key in DROPOUTS)
        encoder, decoder = (
            WhisperBlock(decoder, in_attention, between) for decoder in (False, True)
        )
        return cls(
            WhisperEncoder((encoder,), architecture.layers),
            WhisperDecoder((decoder,), architecture.decoder_layers, "decoder"),
            tied,
        )

    def inputs(self, mode: Mode) -> tuple[Shape, ...]:
        """A spectrogram and labels."""
        head = self.task_head
        labels = [(mode.batch, TARGET)] if head is None else head.targets(mode)
        return (mode.batch, MELS, FRAMES), *labels

    def formats(self, mode: Mode) -> tuple[DType, DType]:
        """The spectrogram in the weights' format."""
        return mode.weights, INT64

    def forward(self, features: Tensor, labels: Tensor) -> Tensor:
        """The loss of one micro-batch."""
        if self.task_head is not None:
            return self.task_loss(features, [self.encoder.encode(features)], labels)
        t = features.tape
        shifted = t.empty(labels.shape, INT64)
        encoded = self.encoder.encode(features)
        assert self.decoder is not None
        decoded = self.decoder.decode(self.words, shifted, encoded)
        if t.mode.chunked_loss:
            del encoded  # dies here
            return self.loss_in_chunks(decoded, labels)
        logits = self.product(decoded)
        t.hand_out(encoded)
        return masked_loss(logits, labels)
