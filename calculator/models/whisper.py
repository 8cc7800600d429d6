"""Whisper (transformers' WhisperForConditionalGeneration and WhisperForAudioClassification).

Source: transformers (models/whisper/modeling_whisper.py).
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

from calculator.architecture import Architecture
from calculator.autograd import operations as op
from calculator.autograd.dtypes import FLOAT16, FLOAT32, INT64, DType
from calculator.autograd.graph import Parameter, Tensor
from calculator.autograd.mode import SEQUENCE, TARGET, Attention, Mode
from calculator.autograd.sizes import ONE, Shape, constant, size
from calculator.configuration import LONGEST_SEQUENCE, Configuration
from calculator.layers.attention import (
    Attended,
    fused_core,
    joined,
    math_core,
    scores_of,
    selectively,
    weighted_sum,
    without_dropout,
)
from calculator.layers.basic import Embedding, LayerNorm
from calculator.layers.convolution import Convolution
from calculator.layers.grouped import head_by_head
from calculator.layers.heads import Averaged, Heads
from calculator.layers.loss import masked_loss
from calculator.layers.stack import Stack
from calculator.models.bart import DROPOUTS, BartAttention, BartBlock, read_stacks
from calculator.models.model import Model
from calculator.models.widths import HEAD, HEADS, HIDDEN, VOCABULARY
from calculator.task import Task

MELS, POSITIONS = size("mel_bins"), size("target_positions")
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


@dataclass(eq=False)
class WhisperBlock(BartBlock):
    """Attention, in the `decoder` attention to the encoder too, feed-forward; norms before each."""

    attends = WhisperAttention

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
        h = op.gelu(self.expand(h))  # which holds what was normed
        if self.activation_dropped:
            h = op.dropout(h)
        h = self.contract(h)
        h = op.dropout(h)
        x = op.add(x, h)
        return op.clamp(x, 2) if x.dtype is FLOAT16 and not self.decoder else x


@dataclass(eq=False)
class Encoder(Stack[WhisperBlock]):
    """Two convolutions, fixed positions, all layers and a norm."""

    def __post_init__(self) -> None:
        self.first = Convolution(MELS, HIDDEN, KERNEL, reads_input=True)
        self.second = Convolution(HIDDEN, HIDDEN, KERNEL)
        self.positions = Parameter((SEQUENCE, HIDDEN), trained=False)
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
class Decoder(Stack[WhisperBlock]):
    """Words and positions, all layers and a norm."""

    def __post_init__(self) -> None:
        self.positions = Parameter((POSITIONS, HIDDEN), table=True)
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
class Whisper(Model):
    """Encoder of a spectrogram, decoder of words."""

    encoder: Encoder
    decoder: Decoder | None  # None beside the head of another task
    tied: bool

    can_freeze = False
    fixed_length = "places of a spectrogram; choose a target length"
    has_target = True
    has_reversible_class = False
    heads: ClassVar[Heads] = {Task.AUDIO: lambda _: Averaged()}
    language_head = ("decoder", "words", "head")

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
        dropped = [architecture.has(key) for key in DROPOUTS]
        encoder, decoder = (WhisperBlock(decoder, *dropped) for decoder in (False, True))
        return cls(
            Encoder((encoder,), architecture.layers),
            Decoder((decoder,), architecture.decoder_layers, "decoder"),
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
        with t.in_layer("head", 0):
            logits = self.head.unembed(decoded)
        t.hand_out(encoded)
        return masked_loss(logits, labels)
