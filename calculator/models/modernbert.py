"""ModernBERT (transformers' ModernBertForMaskedLM), without unpadding, as the class is today.

Source: transformers (models/modernbert/modeling_modernbert.py, masking_utils.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from calculator.architecture import Architecture
from calculator.autograd import operations as op
from calculator.autograd.dtypes import BOOL, FLOAT32, INT64, DType
from calculator.autograd.graph import Recorder, Tensor
from calculator.autograd.mode import SEQUENCE, Attention
from calculator.autograd.sizes import ONE, rounded_up
from calculator.configuration import LONGEST_SEQUENCE, Configuration
from calculator.errors import InputError
from calculator.layers.attention import (
    Attended,
    eager_core,
    fused_core,
    heads_of,
    joined,
    math_core,
    selectively,
)
from calculator.layers.basic import Embedding, LayerNorm, Linear
from calculator.layers.grouped import MASK_MULTIPLE, Held, Shared, additive
from calculator.layers.heads import EachToken, FirstToken, Heads, Predicted, Span
from calculator.layers.layer import Layer
from calculator.layers.pairs import task_heads
from calculator.layers.rotary import Rotary, Tables, half_turned, positions_of
from calculator.layers.stack import Block, Stack
from calculator.models.decoder import FULL, SLIDING, Decoder, check_rope, of_layers
from calculator.models.masked import MaskedModel
from calculator.models.widths import FEED, HEAD, HEADS, HIDDEN, VOCABULARY

FLAGS = ("norm_bias", "attention_bias", "mlp_bias", "classifier_bias")


@dataclass(eq=False)
class SelfAttention(Layer):
    """Attention with one product for all, turned in 32 bits; a `local` one has a window."""

    biased: bool
    local: bool

    def __post_init__(self) -> None:
        self.query_key_value = Linear(HIDDEN, 3 * HEADS * HEAD, self.biased, name="Wqkv")
        self.output = Linear(HEADS * HEAD, HIDDEN, self.biased, name="attn.Wo")

    def __call__(self, x: Tensor, held: Held) -> Attended:
        """The weighted sum and, in eager code, the probabilities."""
        fused = self.query_key_value(x)
        q, k, v = (heads_of(part, HEADS, HEAD) for part in op.split(fused, *[HEADS * HEAD] * 3))
        turned_q, turned_k = turned(q, held.tables), turned(k, held.tables)
        q, k = op.cast(turned_q, q.dtype), op.cast(turned_k, k.dtype)
        del turned_q, turned_k

        def core(q: Tensor, k: Tensor, v: Tensor) -> Attended:
            return attended(q, k, v, held.mask)

        out, probabilities = selectively(core, q, k, v)
        out = op.dropout(self.output(joined(out)))
        del fused, q, k, v  # held until here
        return out, probabilities


def turned(x: Tensor, tables: Tables) -> Tensor:
    """x cos + (x turned by a quarter) sin, of a copy in 32 bits each."""
    cosines, sines = tables
    near = op.multiply(op.cast(x, FLOAT32), cosines)
    far = op.multiply(half_turned(op.cast(x, FLOAT32)), sines)
    return op.add(near, far)


def attended(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Attended:
    """Attention to both sides in the kernel of the plan, or in the one that PyTorch picks."""
    mode = q.tape.mode
    if mode.attention is Attention.EAGER:
        return eager_core(q, k, v, (mask,), wide=True)
    q, k, v = (q.tape.lower(x) for x in (q, k, v))
    added = None if mask is None else additive(mask, q)
    if mode.kernel(masked=mask is not None) is Attention.MATH:
        return math_core(q, k, v, added)
    if added is not None and SEQUENCE not in mode.aligned:
        unpadded = added
        added = op.pad(unpadded, *unpadded.shape[:-1], rounded_up(SEQUENCE, MASK_MULTIPLE))
        del unpadded  # dies here
    return fused_core(q, k, v, added), None


@dataclass(eq=False)
class FeedForward(Layer):
    """Two halves of one product, the first through GELU, times each other; a product."""

    biased: bool

    def __post_init__(self) -> None:
        self.expand = Linear(HIDDEN, 2 * FEED, self.biased, name="Wi")
        self.contract = Linear(FEED, HIDDEN, self.biased, name="mlp.Wo")

    def __call__(self, x: Tensor) -> Tensor:
        """(batch, length, hidden) -> the same."""
        first, gate = op.split(self.expand(x), FEED, FEED)
        return self.contract(op.dropout(op.multiply(op.gelu(first), gate)))


@dataclass(eq=False)
class ModernBertBlock(Block):
    """Norm and attention, norm and feed-forward layer; the first layer's first norm is missing."""

    local: bool
    normed: bool
    norm_biased: bool
    attention_biased: bool
    feed_biased: bool

    def __post_init__(self) -> None:
        self.norm_1 = LayerNorm(HIDDEN, self.norm_biased) if self.normed else None
        self.attention = SelfAttention(self.attention_biased, self.local)
        self.norm_2 = LayerNorm(HIDDEN, self.norm_biased)
        self.feed_forward = FeedForward(self.feed_biased)

    def __call__(self, x: Tensor, held: Held) -> Tensor:
        """The residual stream after the layer; the probabilities are held until its end."""
        out, _probabilities = self.attention(x if self.norm_1 is None else self.norm_1(x), held)
        x = op.add(x, out)
        return op.add(x, self.feed_forward(self.norm_2(x)))

    def handed(self, shared: Shared) -> tuple[Held]:
        """The tables and the mask of its own attention alone."""
        return (shared.of(self.local),)


@dataclass(eq=False)
class ModernBert(MaskedModel):
    """Words and their norm, blocks, norm, and the masked-language-model head."""

    first: Stack[ModernBertBlock]
    layers: Stack[ModernBertBlock]
    rotary: Rotary
    norm_biased: bool
    dense_biased: bool
    decoder_biased: bool
    pools_mean: bool

    heads: ClassVar[Heads] = task_heads(
        lambda model: FirstToken(model.predicted(), mean=model.pools_mean),
        tokens=lambda model: EachToken(model.predicted()),
        questions=lambda model: Span(model.predicted()),
    )
    transform = "head.dense"
    wide_loss = True

    def __post_init__(self) -> None:
        self.words = Embedding(VOCABULARY, HIDDEN, reads_input=True)
        self.word_norm = LayerNorm(HIDDEN, self.norm_biased)
        self.last_norm = LayerNorm(HIDDEN, self.norm_biased)
        self.make_head(self.words, self.dense_biased, self.norm_biased, self.decoder_biased)

    @classmethod
    def read(cls, c: Configuration, name: str) -> Architecture:
        """The architecture that a config.json describes."""
        check_rope(c)
        found = super().read(c, name)
        if found.head_size % 2:
            hidden = found.hidden_size
            raise InputError("hidden_size", hidden, "must give an even head: pairs are turned")
        return replace(
            found,
            pattern=cls.pattern(c, found.layers),
            more=tuple(cls.more(c).items()),
            note=found.note.replace(".", ", without padding."),
        )

    @classmethod
    def more(cls, c: Configuration) -> Mapping[str, int]:
        """The window to one side, which layers have biases, and what a classifier reads."""
        window = c.size("local_attention", 128, most=LONGEST_SEQUENCE) // 2
        flags = {key: int(c.flag(key, False)) for key in FLAGS}
        mean = c.text("classifier_pooling", "cls", ["cls", "mean"]) == "mean"
        flags |= {"decoder_bias": int(c.flag("decoder_bias", True)), "mean_pooling": int(mean)}
        return {"window": window, **flags}

    @classmethod
    def pattern(cls, c: Configuration, layers: int) -> tuple[str, ...]:
        """The first layer's kind, which has no norm, and those that stand in turn after it."""
        turn = c.size("global_attn_every_n_layers", 3)
        default = (FULL, *[SLIDING] * min(turn - 1, layers - 1))
        kinds = of_layers(Decoder.layer_types(c, layers, default), layers)
        return f"{kinds[0]} without a norm", *kinds[1:], kinds[0]

    @classmethod
    def build(cls, architecture: Architecture, tied: bool) -> "ModernBert":
        """The tree for an architecture."""
        flags = [architecture.has(key) for key in FLAGS]

        def block(kind: str, normed: bool) -> ModernBertBlock:
            return ModernBertBlock(kind.startswith(SLIDING), normed, *flags[:3])

        first, *rest = architecture.pattern
        kinds = {kind.split()[0] for kind in architecture.pattern[: architecture.layers]}
        return cls(
            tied,
            Stack((block(first, normed=False),), 1, "first"),
            Stack(tuple(block(kind, normed=True) for kind in rest), architecture.layers - 1),
            Rotary(HEAD, len(kinds)),
            flags[0],
            flags[3],
            architecture.has("decoder_bias"),
            architecture.has("mean_pooling"),
        )

    @classmethod
    def windowed(cls, architecture: Architecture, length: int) -> bool:
        """True if the sequence is as long as one side of the window, which then needs a mask."""
        local = any(kind.startswith(SLIDING) for kind in architecture.pattern)
        return local and architecture.numbers["window"] <= length

    def predicted(self) -> Predicted:
        """The layers that its classifiers have, too, before their own."""
        return Predicted(self.dense_biased, self.norm_biased)

    def hidden(self, ids: Tensor, held: list[Tensor]) -> Tensor:
        """The last hidden states; embeddings, places, masks and tables are held to the end."""
        t = ids.tape
        positions = positions_of(t)
        x = self.words(ids)
        embedded = op.dropout(self.word_norm(x))
        masks = {False: None, True: mask(t, embedded.dtype)}
        kinds = {block.local for block in (*self.first.kinds, *self.layers.kinds)}
        tables = {local: self.rotary(t, positions, embedded.dtype) for local in sorted(kinds)}
        shared = Shared(None, tables, masks)
        x = self.first(embedded, shared)
        given = [x]
        del x  # held by the second layer alone
        x = self.layers.begun(given.pop, shared)
        x = self.last_norm(x)
        del embedded, positions  # held until here
        return x


def mask(t: Recorder, dtype: DType) -> Tensor | None:
    """The mask of layers with a window, for a sequence that is longer, from all distances."""
    if not t.mode.windowed:
        return None
    square = (ONE, ONE, SEQUENCE, SEQUENCE)
    distances = t.empty(square, INT64)
    absolute = t.empty(square, INT64)
    del distances, absolute
    hidden = t.empty(square, BOOL)
    if t.mode.attention is not Attention.EAGER:
        return hidden
    return t.empty((t.mode.batch, *square[1:]), dtype)
