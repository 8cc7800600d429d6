"""T5's step (transformers' T5ForConditionalGeneration, version 1.0).

Source: transformers (models/t5/modeling_t5.py, integrations/sdpa_attention.py).
"""

from dataclasses import dataclass

from calculator import operations as op
from calculator.families import reversible
from calculator.families.cores import Attended, eager_core, math_core, selectively
from calculator.families.loss import cross_entropy
from calculator.families.reversible import Coupling
from calculator.families.structure import Structure
from calculator.graph import Tensor, Weight
from calculator.ledger import Moment
from calculator.operations import Heads
from calculator.tape import Tape
from calculator.techniques import Attention, Checkpointing

Layer = dict[str, Weight]


@dataclass(frozen=True, slots=True)
class Side:
    """Names of shapes in the encoder or the decoder: its tokens and its length."""

    stack: str
    tokens: str
    length: str
    decoder: bool


# symbols of lengths rounded up to what the efficient kernel's mask must be a multiple of
PADDED = {"S": "G", "T": "H"}

ENCODER = Side("layers", "N", "S", decoder=False)
DECODER = Side("decoder", "M", "T", decoder=True)


def layer_weights(t: Tape, decoder: bool) -> Layer:
    """The weights of one layer."""
    weights: Layer = {}
    for attention in ("self", "cross") if decoder else ("self",):
        for name in ("q", "k", "v", "o"):
            weights[f"{attention}.{name}"] = t.weight("a*d")
        weights[f"{attention}.norm"] = t.weight("d")
    weights |= {"wi": t.weight("d*f"), "wo": t.weight("d*f"), "norm": t.weight("d")}
    return weights


def forward(t: Tape, s: Structure) -> Tensor:
    """The loss of one micro-batch."""
    ids, labels = t.inputs
    shared = t.weight("V*d")
    encoded = run_stack(t, s, ENCODER, shared, ids, None)
    shifted = t.empty("M", 8)
    decoded = run_stack(t, s, DECODER, shared, shifted, encoded)
    scaled = op.scale(t, decoded)
    with t.in_layer("head", 0):
        logits = op.linear(t, scaled, shared, "M*V")
    t.ledger.begin(Moment.LOSS)
    return cross_entropy(t, logits, labels)


def run_stack(
    t: Tape, s: Structure, side: Side, shared: Weight, ids: Tensor, encoded: Tensor | None
) -> Tensor:
    """Embedding, all layers, norm."""
    slots = s.layer_slots(side.decoder)
    layers = [layer_weights(t, side.decoder) for _ in range(max(slots) + 1)]
    bias_table, norm = t.weight("R*h"), t.weight("d")
    embedded = op.embedding(t, shared, ids, f"{side.tokens}*d")
    mask = None
    if side.decoder and s.attention is Attention.EAGER:
        mask = t.empty("B*T*T", embedded.item)
    x = op.dropout(t, embedded, s.dropout)
    blocks = [Block(t, s, side, layers[slot], bias_table, mask) for slot in slots]
    x = run_reversible(t, blocks, x, encoded) if s.reversible else run_blocks(t, blocks, x, encoded)
    x = op.rms_norm(t, x, norm, side.tokens)
    return op.dropout(t, x, s.dropout)


def run_blocks(t: Tape, blocks: list["Block"], x: Tensor, encoded: Tensor | None) -> Tensor:
    """All layers; the first one's position biases serve the others too."""
    bias = cross_bias = None
    stack = blocks[0].side.stack
    for position, block in enumerate(blocks):
        with t.in_layer(stack, position):
            x, bias, cross_bias = block.run(x, bias, cross_bias, encoded)
    t.ledger.mark(stack, len(blocks), backward=False)
    return x


def run_reversible(t: Tape, blocks: list["Block"], x: Tensor, encoded: Tensor | None) -> Tensor:
    """All layers as branches of two streams, which share position biases made before them."""
    bias, cross_bias = blocks[0].biases(x, encoded)
    couplings = [block.couplings(bias, cross_bias, encoded) for block in blocks]
    return reversible.run(t, couplings, x, blocks[0].side.stack)


@dataclass(frozen=True, slots=True)
class Block:
    """One layer of a stack."""

    t: Tape
    s: Structure
    side: Side
    w: Layer
    bias_table: Weight
    mask: Tensor | None

    def run(
        self, x: Tensor, bias: Tensor | None, cross_bias: Tensor | None, encoded: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """The layer's output and the position biases, which the first layer makes for all."""
        if self.s.checkpointing is not Checkpointing.FULL:
            return self.forward(x, bias, cross_bias, encoded)
        inputs = [item for item in (x, bias, cross_bias, encoded, self.mask) if item is not None]

        def again(*given: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
            rest = iter(given)
            return self.forward(
                *(None if item is None else next(rest) for item in (x, bias, cross_bias, encoded))  # type: ignore[arg-type]
            )

        return self.t.checkpoint(again, *inputs)

    def forward(
        self, x: Tensor, bias: Tensor | None, cross_bias: Tensor | None, encoded: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Self-attention, in the decoder attention to the encoder, feed-forward."""
        length = self.side.length
        x, bias, _probabilities = self.attend("self", x, None, bias, length)
        if encoded is not None:
            x, cross_bias, _probabilities = self.attend("cross", x, encoded, cross_bias, "S")
        return self.feed_forward(x), bias, cross_bias

    def biases(self, x: Tensor, encoded: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """The position biases of self-attention and, in the decoder, of cross-attention."""
        bias = self.make_bias("self", x, self.side.length)
        return bias, None if encoded is None else self.make_bias("cross", x, "S")

    def couplings(
        self, bias: Tensor, cross_bias: Tensor | None, encoded: Tensor | None
    ) -> list[Coupling]:
        """The layer as branches: self-attention, in the decoder cross-attention, feed-forward."""

        def self_attention(x: Tensor) -> Tensor:
            return self.branch("self", x, None, bias, self.side.length)

        def cross_attention(x: Tensor) -> Tensor:
            return self.branch("cross", x, encoded, cross_bias, "S")

        found = [Coupling(self_attention, [*self.weights_of("self"), bias])]
        if encoded is not None:
            found.append(Coupling(cross_attention, [*self.weights_of("cross"), encoded]))
        names = ("wi", "wo", "norm")
        return [*found, Coupling(self.feed_branch, [self.w[name] for name in names])]

    def weights_of(self, kind: str) -> list[Tensor]:
        """The weights of one attention."""
        return [weight for name, weight in self.w.items() if name.startswith(f"{kind}.")]

    def branch(
        self, kind: str, x: Tensor, encoded: Tensor | None, bias: Tensor | None, keys: str
    ) -> Tensor:
        """One attention with its norm and dropout."""
        normed = op.rms_norm(self.t, x, self.w[f"{kind}.norm"], self.side.tokens)
        out, _, _ = self.attention(kind, normed, encoded, bias, keys)
        return op.dropout(self.t, out, self.s.dropout)

    def attend(
        self, kind: str, x: Tensor, encoded: Tensor | None, bias: Tensor | None, keys: str
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """x + dropout(attention(norm(x)))."""
        t, s = self.t, self.s
        normed = op.rms_norm(t, x, self.w[f"{kind}.norm"], self.side.tokens)
        out, bias, probabilities = self.attention(kind, normed, encoded, bias, keys)
        return op.add(t, x, op.dropout(t, out, s.dropout)), bias, probabilities

    def attention(
        self, kind: str, x: Tensor, encoded: Tensor | None, bias: Tensor | None, keys: str
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """One attention with a position bias."""
        t, w, rows = self.t, self.w, self.side.tokens
        key_rows = "M" if keys == "T" else "N"
        q = op.linear(t, x, w[f"{kind}.q"], f"{rows}*a")
        source = x if encoded is None else encoded
        k = op.linear(t, source, w[f"{kind}.k"], f"{key_rows}*a")
        v = op.linear(t, source, w[f"{kind}.v"], f"{key_rows}*a")
        if bias is None:
            bias = self.make_bias(kind, q, keys)
        made = bias
        heads = self.heads(keys)
        mask = self.mask if kind == "self" else None
        out, probabilities = selectively(
            t, self.s, lambda q, k, v: self.core(heads, q, k, v, made, mask, kind), q, k, v
        )
        return op.linear(t, out, w[f"{kind}.o"], f"{rows}*d"), bias, probabilities

    def heads(self, keys: str) -> Heads:
        """Shapes of an attention of this stack's tokens to `keys`."""
        rows, length = self.side.tokens, self.side.length
        return Heads(
            queries=f"{rows}*a",
            keys=f"{'M' if keys == 'T' else 'N'}*a",
            scores=f"h*{length}*{keys}" if self.s.one_sequence else f"B*h*{length}*{keys}",
            rows=f"B*h*{'F' if length == 'T' else 'E'}",
            one_sequence=self.s.one_sequence,
        )

    def make_bias(self, kind: str, q: Tensor, keys: str) -> Tensor:
        """A learned number for each head and distance; zeros between decoder and encoder."""
        t, length = self.t, self.side.length
        if kind == "cross":
            zeros = t.empty(f"h*{length}*{keys}", q.item)
            if self.s.checkpointing is Checkpointing.FULL:
                return t.leaf(zeros)
            return zeros
        buckets = t.empty(f"{length}*{keys}", 8)
        return op.embedding(t, self.bias_table, buckets, f"{length}*{keys}*h")

    def core(
        self,
        heads: Heads,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        bias: Tensor,
        mask: Tensor | None,
        kind: str,
    ) -> Attended:
        """Attention in the chosen kernel; fused ones get the bias as a mask of their own."""
        t, s = self.t, self.s
        bias = t.alias(bias, f"h*{self.side.length}*{heads.scores[-1]}")
        if s.attention is Attention.EAGER:
            return eager_core(t, s, heads, q, k, v, (bias, mask))
        wide = self.additive_mask(bias, kind)
        added = narrow = t.cast(wide, q.item)
        if s.attention is Attention.MATH:
            return math_core(t, s, heads, q, k, v, added)
        keys = heads.scores[-1]
        if keys in s.padded:
            added = op.pad(t, narrow, f"h*{self.side.length}*{PADDED[keys]}")
        return op.efficient_attention(t, q, k, v, heads, added), None

    def additive_mask(self, bias: Tensor, kind: str) -> Tensor:
        """The bias as a mask of its own: contiguous, and causal in the decoder."""
        if kind == "cross":
            return bias
        if self.side.decoder:
            bias = op.choose(self.t, self.t.empty("T*T", 1), bias)
        return op.copy(self.t, bias)

    def feed_forward(self, x: Tensor) -> Tensor:
        """x + dropout(Wo dropout(relu(Wi norm(x))))."""
        return op.add(self.t, x, self.feed_branch(x))

    def feed_branch(self, x: Tensor) -> Tensor:
        """The feed-forward branch with its norm and dropout."""
        normed = op.rms_norm(self.t, x, self.w["norm"], self.side.tokens)
        out = self.dense(normed)
        return op.dropout(self.t, out, self.s.dropout)

    def dense(self, x: Tensor) -> Tensor:
        """Two products with ReLU between; the class widens to the second weight's format."""
        t, s, w, rows = self.t, self.s, self.w, self.side.tokens
        h = op.linear(t, x, w["wi"], f"{rows}*f")
        h = op.keep_output(t, h)
        h = op.dropout(t, h, s.dropout)
        h = t.cast(h, t.weight_item)
        return op.linear(t, h, w["wo"], f"{rows}*d")
