"""Our text-to-image transformer (training/model/transformer.py).

Source: training/model/transformer.py, training/model/attention.py, training/model/layout.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from calculator.architecture import Architecture
from calculator.autograd import operations as op
from calculator.autograd.dtypes import BOOL, FLOAT32, INT64
from calculator.autograd.graph import Parameter, Recorder, Tensor
from calculator.autograd.mode import SEQUENCE, Attention, Mode
from calculator.autograd.sizes import Shape, Size, divided, plus, size, together
from calculator.errors import InputError
from calculator.layers.attention import (
    Attended,
    fused_core,
    heads_of,
    joined,
    math_core,
    scores_of,
    selectively,
    weighted_sum,
)
from calculator.layers.basic import Embedding, LayerNorm, Linear
from calculator.layers.layer import Buffer, Counted, Layer, walk, weights_of
from calculator.layers.reversible import Coupling
from calculator.layers.stack import Block, Stack
from calculator.models.model import Model
from calculator.models.widths import FEED, HEAD, HEADS, HIDDEN
from calculator.parts import Phase

TEXT, WORDS, CODES = size("text_length"), size("vocabulary_size"), size("image_vocabulary_size")
IMAGE = size("image_side") * size("image_side")
IMAGE_BUT_ONE = plus(IMAGE, -1)
TOKENS = together(WORDS, TEXT)  # padding has a token for each text position
MASKS = 3  # kinds of attention: rows, columns, neighbours


@dataclass(eq=False)
class Group(Layer):
    """The matrices of a distinct layer, which several depths may share."""

    gated: bool

    def __post_init__(self) -> None:
        self.query_key_value = Linear(HIDDEN, 3 * HEADS * HEAD, biased=False)
        self.output = Linear(HEADS * HEAD, HIDDEN)
        self.expand = Linear(HIDDEN, 2 * FEED if self.gated else FEED)
        self.contract = Linear(FEED, HIDDEN)


@dataclass(eq=False)
class Own(Layer):
    """Weights that each depth has for itself in a branch: a norm and a scale."""

    def __post_init__(self) -> None:
        self.norm = LayerNorm(HIDDEN)
        self.scale = Parameter((HIDDEN,))


@dataclass(eq=False)
class Depth(Block):
    """One depth: its own norms and scales, and the matrices of its group."""

    group: Group

    def __post_init__(self) -> None:
        self.own_attention = Own()
        self.own_feed = Own()

    def at(self, slot: int, made: dict[int, Any]) -> Self:
        """Norms and scales of its own, matrices of the slot."""
        return type(self)(made.setdefault(slot, self.group.fresh()))

    def count(self, depths: int, slots: int) -> Counted:
        """Matrices for each slot, norms and scales for each depth."""
        for item, copies in walk(self.group):
            yield item, copies * slots
        for item, copies in walk((self.own_attention, self.own_feed)):
            yield item, copies * depths

    def couplings(self, t: Recorder, *_: Any) -> Sequence[Coupling]:
        """Both branches with the weights they train."""
        group, attention, feed = self.group, self.own_attention, self.own_feed
        first = weights_of(t, attention.norm, group.query_key_value, group.output)
        second = weights_of(t, feed.norm, group.expand, group.contract)
        return [
            Coupling(self.attend, [*first, t.weight(attention.scale)]),
            Coupling(self.feed_forward, [*second, t.weight(feed.scale)]),
        ]

    def run(self, x1: Tensor, x2: Tensor) -> tuple[Tensor, Tensor]:
        """y1 = x1 + attention(x2), y2 = x2 + feed_forward(y1)."""
        y1 = op.add(x1, self.attend(x2))
        return y1, op.add(x2, self.feed_forward(y1))

    def attend(self, x: Tensor) -> Tensor:
        """The attention branch."""
        x = self.own_attention.norm(x)
        x = token_shift(x)
        whole = self.group.query_key_value(x)
        parts = op.split(whole, *[HEADS * HEAD] * 3)
        q, k, v = (heads_of(part, HEADS, HEAD) for part in parts)
        q, k = rotate(q), rotate(k)
        out, _probabilities = selectively(core, q, k, v)
        out = self.group.output(joined(out))
        return op.multiply(out, x.tape.weight(self.own_attention.scale))

    def feed_forward(self, x: Tensor) -> Tensor:
        """The feed-forward branch: GEGLU, or GELU where the model is not gated."""
        x = self.own_feed.norm(x)
        x = token_shift(x)
        return op.multiply(self.transformed(x), x.tape.weight(self.own_feed.scale))

    def transformed(self, x: Tensor) -> Tensor:
        """Two products with an activation between."""
        h = self.group.expand(x)
        if self.group.gated:
            values, gates = op.split(h, FEED, FEED)
            h = op.multiply(values, op.gelu(gates))
        else:
            h = op.gelu(h)
        return self.group.contract(h)


def core(q: Tensor, k: Tensor, v: Tensor) -> Attended:
    """Attention under a mask that all sequences share."""
    kernel = q.tape.mode.kernel(masked=True)
    if kernel is Attention.EAGER:
        return masked_core(q, k, v)
    mask = q.tape.empty((SEQUENCE, SEQUENCE), q.dtype)
    if kernel is Attention.MATH:
        return math_core(q, k, v, mask, side_by_side=True)
    return fused_core(q, k, v, mask), None


def masked_core(q: Tensor, k: Tensor, v: Tensor) -> Attended:
    """The reference: scores filled where the mask hides, softmax in 32 bits."""
    scores = scores_of(q, k, side_by_side=True)
    scores = op.scale(scores)
    hidden = q.tape.empty((SEQUENCE, SEQUENCE), BOOL)
    filled = op.masked_fill(scores, hidden)
    del hidden
    weights = op.softmax(filled, FLOAT32)
    del filled
    out = weighted_sum(op.cast(weights, v.dtype), v)
    return op.copy(out), None


def token_shift(x: Tensor) -> Tensor:
    """Half of the channels taken from the tokens before, above and to the left."""
    batch, length, _ = x.shape
    half, quarter = divided(HIDDEN, 2), divided(HIDDEN, 4)
    moved, kept = op.part(x, batch, length, half), op.part(x, batch, length, half)
    longer = plus(length, 1)
    padded = op.pad(moved, batch, longer, half)
    halves = [op.part(padded, batch, longer, quarter) for _ in range(2)]
    quarters = [op.pad(half, batch, length, quarter) for half in halves]
    return op.concatenate([*quarters, kept], *x.shape)


def rotate(x: Tensor) -> Tensor:
    """Each head's two halves turned against each other by the position's angles."""
    t, half = x.tape, divided(HEAD, 2)
    if x.dtype is FLOAT32:
        cosine = sine = t.constant((SEQUENCE, half), FLOAT32)
    else:
        cosine, sine = (t.empty((SEQUENCE, half), x.dtype) for _ in range(2))
    first, second = op.split(x, half, half)
    near = products(first, cosine, second, sine)
    far = products(second, cosine, first, sine)
    return op.concatenate([near, far], *x.shape)


def products(a: Tensor, x: Tensor, b: Tensor, y: Tensor) -> Tensor:
    """a x - b y (or a x + b y)."""
    left, right = op.multiply(a, x), op.multiply(b, y)
    return op.add(left, right)


@dataclass(eq=False)
class Streams(Stack[Depth]):
    """All depths on two streams, reversible or not."""

    def __call__(self, x: Tensor, *_: Any) -> Tensor:
        """The mean of both streams."""
        t = x.tape
        if t.mode.reversible:
            return super().__call__(x)
        first = second = x
        for position, depth in enumerate(self.blocks):
            with t.in_layer(self.name, position):
                if self.is_checkpointed(t, position):
                    first, second = t.checkpoint(depth.run, first, second)
                else:
                    first, second = depth.run(first, second)
        t.ledger.mark(self.name, len(self.blocks), backward=False)
        return op.scale(op.add(first, second))


@dataclass(eq=False)
class Dalle(Model):
    """Text and image tokens in one sequence, a head and a loss for each side."""

    text: Embedding
    image: Embedding
    layers: Streams
    norm: LayerNorm

    can_freeze = False
    kernels = (Attention.EAGER, Attention.SDPA, Attention.EFFICIENT, Attention.MATH)
    can_untie = False
    has_dropout = False
    fixed_length = "text tokens and image codes"

    def __post_init__(self) -> None:
        self.text_bias = Parameter((TOKENS,))
        self.image_bias = Parameter((CODES,))
        # a mask for each kind of attention, angles, and where shifted channels come from
        masks = [Buffer((SEQUENCE, SEQUENCE), BOOL) for _ in range(MASKS)]
        angles = [Buffer((SEQUENCE, divided(HEAD, 2)), FLOAT32) for _ in range(2)]
        self.tables = (*masks, *angles, *(Buffer((SEQUENCE,), INT64) for _ in range(4)))

    @classmethod
    def build(cls, architecture: Architecture, tied: bool) -> "Dalle":
        """The tree for an architecture; the class always ties its embeddings."""
        assert tied
        return cls(
            Embedding(TOKENS, HIDDEN),
            Embedding(CODES, HIDDEN),
            Streams((Depth(Group(architecture.gated)),), architecture.layers),
            LayerNorm(HIDDEN),
        )

    @classmethod
    def check_length(cls, architecture: Architecture, length: int | None) -> None:
        """The sequence is the text and the image, always."""
        fixed = architecture.sequence_length
        if length not in (None, fixed):
            text, codes = architecture.text_length, architecture.image_side**2
            rule = f"must be {fixed:,}: {text} text tokens and {codes:,} image codes"
            raise InputError("sequence_length", length, rule)

    def inputs(self, mode: Mode) -> tuple[Shape, Shape]:
        """Text tokens and image codes."""
        return (mode.batch, TEXT), (mode.batch, IMAGE)

    def forward(self, text_ids: Tensor, codes: Tensor) -> Tensor:
        """The loss of one micro-batch."""
        t = text_ids.tape
        named = t.like(text_ids)  # padding has a token for each position
        x = self.embed(named, codes)
        x = self.layers(x)
        x = self.norm(x)
        with t.in_layer("head", 0):
            text_logits = self.head(x, TEXT, self.text, self.text_bias)
        t.ledger.begin(Phase.LOSS)
        with t.in_layer("head", 0):
            image_logits = self.head(x, IMAGE, self.image, self.image_bias)
        text_loss = op.cross_entropy(text_logits, named)
        image_loss = op.cross_entropy(image_logits, codes)
        return op.add(text_loss, op.scale(image_loss))

    def embed(self, ids: Tensor, codes: Tensor) -> Tensor:
        """Begin token, text tokens and all codes but the last."""
        t, (batch, _) = ids.tape, ids.shape
        with_begin = t.empty((batch, plus(TEXT, 1)), INT64)
        text_part = self.text(with_begin)
        read = op.part(codes, batch, IMAGE_BUT_ONE)
        image_part = self.image(read)
        return op.concatenate([text_part, image_part], batch, SEQUENCE, HIDDEN)

    def head(self, x: Tensor, length: Size, table: Embedding, bias: Parameter) -> Tensor:
        """Logits of one side's positions, which are a slice of all positions."""
        mode = x.tape.mode
        part = op.part(x, mode.batch, length, HIDDEN)
        if part.dtype is mode.arithmetic and not mode.one_sequence:
            part = op.copy(part)  # a product wants its rows side by side
        return table.unembed(part, bias)
