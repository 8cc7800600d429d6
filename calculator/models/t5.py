"""T5, version 1.1 with a gated feed-forward layer too (T5ForConditionalGeneration), and mT5.

Source: transformers (models/t5/modeling_t5.py, integrations/sdpa_attention.py).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from calculator.architecture import Architecture
from calculator.autograd import operations as op
from calculator.autograd.dtypes import BOOL, FLOAT16, FLOAT32, INT64, DType
from calculator.autograd.graph import Made, Parameter, Recorder, Tensor
from calculator.autograd.mode import SEQUENCE, TARGET, Attention, Mode
from calculator.autograd.sizes import ONE, Shape, Size, rounded_up, size
from calculator.configuration import Configuration
from calculator.layers import reversible
from calculator.layers.attention import (
    Attended,
    eager_core,
    fused_core,
    heads_of,
    joined,
    math_core,
    selectively,
)
from calculator.layers.basic import Embedding, Linear, T5Norm
from calculator.layers.grouped import MASK_MULTIPLE
from calculator.layers.layer import Layer, weights_of
from calculator.layers.loss import masked_loss
from calculator.layers.reversible import Coupling
from calculator.layers.stack import Block, Stack
from calculator.models.keys import read_shape
from calculator.models.model import LanguageModel
from calculator.models.widths import FEED, HEAD, HEADS, HIDDEN

BUCKETS = size("relative_buckets")

# what is handed on: of an attention its bias and probabilities, of a layer both its biases
Passed = tuple[Tensor, Tensor, Tensor | None]


@dataclass(eq=False)
class T5Attention(Layer):
    """Norm and attention with a position bias; `crosses` from the decoder to the encoder."""

    crosses: bool = False
    causal: bool = False

    def __post_init__(self) -> None:
        inside = "EncDecAttention" if self.crosses else "SelfAttention"
        self.query = Linear(HIDDEN, HEADS * HEAD, biased=False, name=f"{inside}.q")
        self.key = Linear(HIDDEN, HEADS * HEAD, biased=False, name=f"{inside}.k")
        self.value = Linear(HIDDEN, HEADS * HEAD, biased=False, name=f"{inside}.v")
        self.output = Linear(HEADS * HEAD, HIDDEN, biased=False, name=f"{inside}.o")
        self.norm = T5Norm(HIDDEN)

    def __call__(self, x: Tensor, held: "Held", bias: Tensor | None) -> Passed:
        """x + dropout(attention(norm(x))), the bias and the probabilities."""
        normed = self.norm(x)
        out, bias, probabilities = self.attention(normed, held, bias)
        return op.add(x, op.dropout(out)), bias, probabilities

    def branch(self, x: Tensor, held: "Held", bias: Tensor) -> Tensor:
        """dropout(attention(norm(x)))."""
        normed = self.norm(x)
        out, _, _ = self.attention(normed, held, bias)
        return op.dropout(out)

    def attention(self, x: Tensor, held: "Held", bias: Tensor | None) -> Passed:
        """Self-attention, or cross-attention to the encoder's output; makes a bias if needed.

        Hands on the bias and eager code's probabilities too, which the class's own code holds.
        """
        q = heads_of(self.query(x), HEADS, HEAD)
        source = x
        if self.crosses:
            assert held.encoded is not None
            source = held.encoded
        k = heads_of(self.key(source), HEADS, HEAD)
        v = heads_of(self.value(source), HEADS, HEAD)
        if bias is None:
            bias = self.make_bias(x, q.dtype, source.shape[1], held.table)
        made = bias
        mask = None if self.crosses else held.mask

        def core(q: Tensor, k: Tensor, v: Tensor) -> Attended:
            return self.core(q, k, v, made, mask)

        out, probabilities = selectively(core, q, k, v)
        return self.output(joined(out)), bias, probabilities

    def make_bias(self, x: Tensor, dtype: DType, keys: Size, table: Parameter) -> Tensor:
        """A learned number for each head and distance; zeros between decoder and encoder."""
        t, length = x.tape, x.shape[1]
        if self.crosses:
            zeros = t.empty((ONE, HEADS, length, keys), dtype)
            if t.mode.checkpointing.is_of_layers:
                return t.leaf(zeros)
            return zeros
        places = t.empty((length, ONE), INT64), t.empty((ONE, keys), INT64)
        distances = t.empty((length, keys), INT64)
        buckets = buckets_of(distances, self.causal)
        bias = op.embedding(buckets, t.weight(table), turned=True)
        del places, distances  # held until here
        return op.view(bias, ONE, HEADS, length, keys)

    def core(self, q: Tensor, k: Tensor, v: Tensor, bias: Tensor, mask: Tensor | None) -> Attended:
        """Attention in the chosen kernel; fused ones get the bias as a mask of their own."""
        mode = q.tape.mode
        if mode.attention is Attention.EAGER:
            return eager_core(q, k, v, (bias, mask))
        wide = self.additive_mask(bias)
        added = narrow = q.tape.lower(op.cast(wide, q.dtype))
        if mode.kernel(masked=True) is Attention.MATH:
            return math_core(q, k, v, added)
        if (keys := k.shape[2]) not in mode.aligned:
            added = op.pad(narrow, *narrow.shape[:-1], rounded_up(keys, MASK_MULTIPLE))
        return fused_core(q, k, v, added), None

    def additive_mask(self, bias: Tensor) -> Tensor:
        """The bias as a mask of its own: contiguous, and causal in the decoder."""
        if self.crosses:
            return bias
        hidden = bias.tape.empty(bias.shape[2:], BOOL) if self.causal else None  # to the end
        return op.copy(bias if hidden is None else op.masked_fill(bias, hidden))


def buckets_of(distances: Tensor, causal: bool) -> Tensor:
    """The number of each distance's bucket, in the class's own steps (`_relative_position_bucket`).

    Far distances share buckets by their logarithms; without `causal`, each side has its own.
    """

    def new(dtype: DType = INT64) -> Tensor:
        return distances.tape.empty(distances.shape, dtype)

    if causal:
        zeros, buckets = new(), new()  # the least of both
        del zeros
    else:
        buckets = new(BOOL)  # True on one side
        for _ in range(3):  # a number, times half of the buckets, plus 0
            buckets = new()
    length = new()
    if causal:
        del buckets
    is_near = new(BOOL)
    far = new(FLOAT32)
    for _ in range(4):  # a share of the nearest, its logarithm, a share of that, times buckets
        far = new(FLOAT32)
    for _ in range(2):  # a whole number, behind the near ones
        far = new()
    last, least = new(), new()
    del last, far
    chosen = new()
    if causal:  # plus 0
        buckets = new()
    del length, is_near, least, chosen
    return buckets


class WholeLinear(Linear):
    """A product whose weight is never packed in 4 bits (`_keep_in_fp32_modules`)."""


@dataclass(eq=False)
class FeedForward(Layer):
    """Norm, two products with ReLU between; `gated`, the first one times GELU of another.

    The class widens to the second weight's format.
    """

    gated: bool

    def __post_init__(self) -> None:
        self.gate = Linear(HIDDEN, FEED, biased=False, name="wi_0") if self.gated else None
        self.expand = Linear(HIDDEN, FEED, biased=False, name="wi_1" if self.gated else "wi")
        self.contract = WholeLinear(FEED, HIDDEN, biased=False, name="wo")
        self.norm = T5Norm(HIDDEN)

    def __call__(self, x: Tensor) -> Tensor:
        """x + dropout(Wo dropout(f(norm(x))))."""
        return op.add(x, self.branch(x))

    def branch(self, x: Tensor) -> Tensor:
        """The layer without the sum."""
        normed = self.norm(x)
        out = self.dense(normed)
        return op.dropout(out)

    def dense(self, x: Tensor) -> Tensor:
        """The products; both factors of a gate are held, as in the class's own code."""
        if self.gate is None:
            h = self.expand(x)
            h = op.relu(h)
        else:
            gate = op.gelu_new(self.gate(x))
            expanded = self.expand(x)
            h = op.multiply(gate, expanded)
        h = op.dropout(h)
        h = op.cast(h, x.tape.mode.weights)
        return self.contract(h)


@dataclass(eq=False)
class Held:
    """Tensors that a stack's layers share: the table of biases, eager code's mask, the encoder."""

    table: Parameter
    mask: Tensor | None
    encoded: Tensor | None


@dataclass(eq=False)
class T5Block(Block):
    """Self-attention, in the decoder attention to the encoder, feed-forward."""

    decoder: bool
    gated: bool

    def __post_init__(self) -> None:
        self.attention = T5Attention(causal=self.decoder)
        self.cross = T5Attention(crosses=True) if self.decoder else None
        self.feed_forward = FeedForward(self.gated)

    def checkpointed(
        self, x: Tensor, held: Held, bias: Tensor | None, cross_bias: Tensor | None
    ) -> Passed:
        """The same as `forward`, computed again in the backward pass."""
        given = (x, bias, cross_bias, held.encoded, held.mask)
        there = [item is not None for item in given]
        table = held.table

        def again(*kept: Tensor) -> Passed:
            rest = iter(kept)
            x, bias, cross_bias, encoded, mask = (next(rest) if each else None for each in there)
            assert x is not None
            return self.forward(x, Held(table, mask, encoded), bias, cross_bias)

        return x.tape.checkpoint(again, *(item for item in given if item is not None))

    def forward(
        self, x: Tensor, held: Held, bias: Tensor | None, cross_bias: Tensor | None
    ) -> Passed:
        """The layer's output, and the position biases, which the first layer makes for all.

        An attention's probabilities are held until the next one's.
        """
        x, bias, _probabilities = self.attention(x, held, bias)
        x = clamped(x)
        if self.cross is not None:
            x, cross_bias, _probabilities = self.cross(x, held, cross_bias)
            x = clamped(x)
        return clamped(self.feed_forward(x)), bias, cross_bias

    def couplings(self, t: Recorder, *context: Any) -> Sequence[Coupling]:
        """The layer as branches: self-attention, in the decoder cross-attention, feed-forward."""
        held, bias, cross_bias = context
        cross, encoded = self.cross, held.encoded
        found = [
            Coupling(
                lambda x: self.attention.branch(x, held, bias),
                [*weights_of(t, self.attention), bias],
            )
        ]
        if cross is not None:
            branch = Coupling(
                lambda x: cross.branch(x, held, cross_bias), [*weights_of(t, cross), encoded]
            )
            found.append(branch)
        return [*found, Coupling(self.feed_forward.branch, weights_of(t, self.feed_forward))]


def clamped(x: Tensor) -> Tensor:
    """In float16 the stream held below the largest number, or lower where one is infinite.

    Looking for infinities makes the absolute values. Keeps the stream and both bounds.
    """
    if x.dtype is not FLOAT16:
        return x
    t = x.tape
    absolute, infinite = t.like(x), t.empty(x.shape, BOOL)
    del absolute, infinite  # die here
    bounds = [t.empty((), FLOAT32) for _ in range(2)]
    scratch = [Made((), x.dtype), *[Made(x.shape, BOOL)] * 2]
    return t.operation([x], x.shape, x.dtype, saves=[x, *bounds], scratch=scratch)


@dataclass(eq=False)
class T5Stack(Stack[T5Block]):
    """Embedding, all layers, norm."""

    def __post_init__(self) -> None:
        self.table = Parameter((BUCKETS, HEADS), table=True)
        self.norm = T5Norm(HIDDEN)

    def encode(self, words: Embedding, ids: Tensor, encoded: Tensor | None) -> Tensor:
        """Token ids to hidden states; `encoded` is what a decoder attends to."""
        t = ids.tape
        embedded = words(ids, reader=int(encoded is not None))
        mask = None
        if encoded is not None and t.mode.attention is Attention.EAGER:
            length = ids.shape[1]
            mask = t.empty((t.mode.batch, ONE, length, length), embedded.dtype)
        first = partial(op.dropout, embedded)
        held = Held(self.table, mask, encoded)
        if t.mode.reversible:
            return op.dropout(self.norm(self.on_streams(first(), held)))
        x, *biases = self.one_by_one(first, held)
        x = self.norm(x)
        x = op.dropout(x)
        del biases  # held until here
        return x

    def one_by_one(self, first: Callable[[], Tensor], held: Held) -> Passed:
        """All layers, and the first one's position biases, which serve the others too."""
        x = first()
        t = x.tape
        biases: list[Tensor | None] = [None, None]
        for position, block in enumerate(self.blocks):
            with t.in_layer(self.name, position):
                again = self.is_checkpointed(t, position)
                run = block.checkpointed if again else block.forward
                x = self.gathered(t, position, partial(_with_biases, run, held, biases))(x)
        t.ledger.mark(self.name, len(self.blocks), backward=False)
        bias, cross_bias = biases
        assert bias is not None
        return x, bias, cross_bias

    def beside(self, position: int) -> tuple[Parameter, ...]:
        """The table of biases, which stands in the first layer's attention."""
        return () if position else (self.table,)

    def on_streams(self, x: Tensor, held: Held) -> Tensor:
        """All layers as branches of two streams, which share position biases made before them."""
        first = self.blocks[0]
        dtype, length = x.dtype, x.shape[1]
        bias = first.attention.make_bias(x, dtype, length, held.table)
        cross_bias = None
        if first.cross is not None:
            assert held.encoded is not None
            cross_bias = first.cross.make_bias(x, dtype, held.encoded.shape[1], held.table)
        layers = [block.couplings(x.tape, held, bias, cross_bias) for block in self.blocks]
        return reversible.run(layers, x, self.name)


def _with_biases(
    run: Callable[..., Passed], held: Held, biases: list[Tensor | None], x: Tensor
) -> Tensor:
    """The stream after a layer, which reads the biases or makes them."""
    x, *biases[:] = run(x, held, *biases)
    return x


@dataclass(eq=False)
class T5(LanguageModel):
    """Encoder and decoder on one table of words."""

    words: Embedding
    encoder: T5Stack
    decoder: T5Stack
    scaled: bool

    can_freeze = False
    kernels = (Attention.EAGER, Attention.SDPA, Attention.EFFICIENT, Attention.MATH)
    can_untie = False
    has_target = True
    has_reversible_class = False

    def __post_init__(self) -> None:
        self.head = self.words

    @classmethod
    def read(cls, c: Configuration, name: str) -> Architecture:
        """The architecture that a config.json describes."""
        # transformers ties T5's embeddings always; false leaves out the scaling before the head
        scaled = c.flag("scale_decoder_outputs", c.flag("tie_word_embeddings", True))
        return cls.read_whole(c, name, "relu", scaled)

    @classmethod
    def read_whole(cls, c: Configuration, name: str, activation: str, scaled: bool) -> Architecture:
        """The rest of it; the default of the activation, and whether outputs are scaled."""
        gated = c.text("feed_forward_proj", activation, ["relu", "gated-gelu"]) == "gated-gelu"
        c.only("dense_act_fn", "gelu_new" if gated else "relu")
        c.only("is_gated_act", gated)
        found = read_shape(cls, c, name)
        more = (("unscaled_output", int(not scaled)),)
        return replace(found, target_length=found.sequence_length, gated=gated, more=more)

    @classmethod
    def build(cls, architecture: Architecture, tied: bool) -> "T5":
        """The tree for an architecture; the class always ties its embeddings."""
        assert tied
        gated = architecture.gated
        return cls(
            Embedding(size("vocabulary_size"), HIDDEN, reads_input=True, readers=2),
            T5Stack((T5Block(decoder=False, gated=gated),), architecture.layers),
            T5Stack((T5Block(decoder=True, gated=gated),), architecture.decoder_layers, "decoder"),
            scaled=not dict(architecture.more).get("unscaled_output"),
        )

    def inputs(self, mode: Mode) -> tuple[Shape, Shape]:
        """Token ids of the encoder, labels of the decoder."""
        return (mode.batch, SEQUENCE), (mode.batch, TARGET)

    def forward(self, ids: Tensor, labels: Tensor) -> Tensor:
        """The loss of one micro-batch."""
        t = ids.tape
        # whoever makes the loss shifts the labels first
        early = t.empty(labels.shape, INT64) if t.mode.chunked_loss else None
        encoded = self.encoder.encode(self.words, ids, None)
        shifted = early or t.empty(labels.shape, INT64)
        decoded = self.decoder.encode(self.words, shifted, encoded)
        scaled = op.scale(decoded) if self.scaled else decoded
        if t.mode.chunked_loss:
            del encoded, decoded  # die here
            return self.loss_in_chunks(scaled, labels)
        logits = self.product(scaled)
        t.hand_out(encoded)
        return masked_loss(logits, labels)


@dataclass(eq=False)
class MT5(T5):
    """T5 version 1.1 with many languages' words, and never with the scaling."""

    @classmethod
    def read(cls, c: Configuration, name: str) -> Architecture:
        """The architecture that a config.json describes."""
        c.ignore("tie_word_embeddings")  # the class ties them always
        return cls.read_whole(c, name, "gated-gelu", scaled=False)
