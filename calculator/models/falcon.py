"""Falcon (transformers' FalconForCausalLM), whose class makes a mask for every sequence.

Source: transformers (models/falcon/modeling_falcon.py).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from calculator.architecture import Architecture
from calculator.autograd import operations as op
from calculator.autograd.dtypes import BOOL, INT64
from calculator.autograd.graph import Gradients, Tensor
from calculator.autograd.mode import SEQUENCE, Attention, Mode
from calculator.autograd.sizes import ONE, Size, plus, size, together
from calculator.configuration import Configuration
from calculator.errors import InputError
from calculator.layers.attention import (
    Attended,
    joined,
    scores_of,
    weighted_sum,
    without_dropout,
)
from calculator.layers.basic import LayerNorm, Linear
from calculator.layers.grouped import GroupedAttention, Heads, Held
from calculator.layers.holding import HoldingStack
from calculator.layers.rotary import positions_of
from calculator.layers.stack import Block
from calculator.models.decoder import FEED, HEAD, HIDDEN, Decoder, check_rope
from calculator.models.keys import read_shape
from calculator.models.model import NO_SHARES, heads_fit

HEADS, SHARED = size("heads"), size("key_value_heads")
ALIKE = Heads(HEADS, HEADS, HEAD)


@dataclass(eq=False)
class TurnedLinear(Linear):
    """x @ W.T without a bias: autocast's copy is that of a view, and is not cached."""

    biased: bool = False

    def product(self, x: Tensor) -> Tensor:
        """(..., inputs) -> (..., outputs)."""
        lower = x.tape.lower
        return op.matmul(lower(x), lower(_turned(x.tape.weight(self.weight))))


def _turned(weight: Tensor) -> Tensor:
    """A weight with its axes exchanged; so its gradient is a view of another."""
    turned = op.transpose(weight, 0, 1)

    def back(gradients: Gradients) -> Gradients:
        (gradient,) = gradients
        assert gradient is not None
        return [Tensor(weight.tape, gradient.storage, weight.shape, gradient.dtype, is_view=True)]

    turned.node = weight.tape.record([weight], special=back)
    return turned


@dataclass(eq=False)
class FalconAttention(GroupedAttention):
    """Attention with one product for all; one head of keys and values, or groups of them.

    A single head is seen by all others, which only the reference kernel can do; the keys and values
    of groups are copied for each head before they are turned.
    """

    single: bool = False

    def __post_init__(self) -> None:
        outputs = plus(HEADS, 2) if self.single else together(HEADS, 2 * SHARED)
        self.query_key_value = TurnedLinear(HIDDEN, outputs * HEAD, name="query_key_value")
        self.output = TurnedLinear(HEADS * HEAD, HIDDEN, name="self_attention.dense")

    def __call__(self, x: Tensor, held: Held) -> Attended:
        """The weighted sum and, in eager code, the probabilities."""
        fused = self.query_key_value(x)
        q, k, v = self.single_head(fused) if self.single else self.groups(fused)
        q, k = self.turned(q, k, held)
        out, probabilities = without_dropout(partial(self.core, held=held))(q, k, v)
        if self.kernel(x.tape.mode, held.mask) is Attention.EAGER:
            out = op.copy(out)
        out = self.output(joined(out))
        del fused, q, k, v  # held until here
        return out, probabilities

    def single_head(self, fused: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """A slice of queries; keys and values are picked by a list of one index, which copies."""
        q = op.part(fused, *fused.shape[:-1], HEADS, HEAD)
        k, v = (picked(fused, *fused.shape[:-1], ONE, HEAD) for _ in range(2))
        return op.transpose(q, 1, 2), op.transpose(k, 1, 2), op.transpose(v, 1, 2)

    def groups(self, fused: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The queries of all groups in one tensor; keys and values once for each of its queries."""
        whole, few = (*fused.shape[:-1], HEADS, HEAD), (*fused.shape[:-1], SHARED, HEAD)
        q = op.part(fused, *whole)
        k, v = picked(fused, *few), picked(fused, *few)
        q, k, v = op.copy(q), op.repeated(k, *whole), op.repeated(v, *whole)
        return op.transpose(q, 1, 2), op.transpose(k, 1, 2), op.transpose(v, 1, 2)

    def kernel(self, mode: Mode, mask: Tensor | None) -> Attention:
        """The kernel of the plan, or the one that PyTorch picks."""
        if mode.attention is Attention.SDPA and self.single:
            return Attention.MATH
        return super().kernel(mode, mask)

    def eager(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Attended:
        """Scores, mask, softmax in the stream's format and weighted sum; nothing is dropped."""
        assert mask is not None
        if self.single:
            k = op.expand(k, *q.shape)
        scores = scores_of(q, k)  # scaled in place
        masked = op.add(scores, mask)
        scores = op.softmax(masked, mask.dtype)
        del masked
        if self.single:
            v = op.expand(v, *q.shape)
        return weighted_sum(scores, v), scores


def picked(x: Tensor, *shape: Size) -> Tensor:
    """Rows picked by a list of indices: keeps the list; the gradient is as large as x."""
    index = x.tape.empty((ONE,), INT64)
    return x.tape.operation([x], shape, x.dtype, saves=[index])


@dataclass(eq=False)
class FalconBlock(Block):
    """Attention and feed-forward layer side by side, after one norm or a norm each."""

    attention: FalconAttention
    two_norms: bool

    def __post_init__(self) -> None:
        self.norm = LayerNorm(HIDDEN)
        self.feed_norm = LayerNorm(HIDDEN) if self.two_norms else None
        self.expand = TurnedLinear(HIDDEN, FEED, name="dense_h_to_4h")
        self.contract = TurnedLinear(FEED, HIDDEN, name="dense_4h_to_h")

    def run(self, x: Tensor, held: Held) -> Attended:
        """The residual stream after the layer, and the probabilities."""
        normed = self.norm(x)
        feed_normed = normed if self.feed_norm is None else self.feed_norm(x)
        attended, probabilities = self.attention(normed, held)
        h = self.expand(feed_normed)
        h = op.gelu(h)
        h = self.contract(h)
        h = op.add_in_place(h, attended)
        return op.add(x, op.dropout(h)), probabilities


@dataclass(eq=False)
class Falcon(Decoder):
    """Token embeddings, rotary tables, blocks, norm, output layer."""

    layers: HoldingStack[FalconBlock]

    names_inside = ("transformer", "word_embeddings", "h", "ln_f")
    whole_layers = NO_SHARES
    has_attention_core = False
    norm_class = LayerNorm
    stack_class = HoldingStack

    @classmethod
    def read(cls, c: Configuration, name: str) -> Architecture:
        """The architecture that a config.json describes."""
        # the first is read where alibi is true, or layers follow each other, the second by no code
        c.ignore("attention_dropout", "apply_residual_connection_post_layernorm")
        check_rope(c)
        found = read_shape(cls, c, name)
        if found.head_size % 2:
            hidden = found.hidden_size
            raise InputError("hidden_size", hidden, "must give an even head: pairs are turned")
        return replace(found, more=tuple(cls.shape(c, found.heads).items()))

    @classmethod
    def shape(cls, c: Configuration, heads: int) -> Mapping[str, int]:
        """Heads of keys and values, and whether both layers have a norm of their own."""
        grouped = c.flag("new_decoder_architecture", False)
        c.only("parallel_attn", True)
        shared = c.size("num_kv_heads", heads)
        if not grouped:
            c.only("multi_query", True)
            c.only("num_ln_in_parallel_attn", 1)
            return {"key_value_heads": 1, "two_norms": 0, "single": 1}
        c.ignore("multi_query")
        if heads % shared:
            raise InputError("num_kv_heads", shared, f"must divide the {heads} heads")
        norms = c.size("num_ln_in_parallel_attn", 2, most=2)
        return {"key_value_heads": shared, "two_norms": norms - 1, "single": 0}

    @classmethod
    def block(cls, architecture: Architecture, kind: str) -> Block:
        """One layer; all are of one kind."""
        attention = FalconAttention(HIDDEN, ALIKE, single=architecture.has("single"))
        return FalconBlock(attention, architecture.has("two_norms"))

    @classmethod
    def kernels_of(
        cls, architecture: Architecture, narrow: bool, length: int
    ) -> Sequence[Attention]:
        """The kernels that take a mask; the efficient one wants as many heads of keys."""
        fits = heads_fit(architecture, narrow) and not architecture.has("single")
        efficient = [Attention.EFFICIENT] if fits else []
        return [Attention.EAGER, Attention.SDPA, *efficient, Attention.MATH]

    def hidden(self, ids: Tensor) -> Tensor:
        """The last hidden states; embeddings, places, mask and tables are held to the end."""
        t = ids.tape
        embedded = self.begun(self.tokens, ids)
        positions = positions_of(t)
        eager = t.mode.attention is Attention.EAGER
        batch, dtype = (t.mode.batch, embedded.dtype) if eager else (ONE, BOOL)
        mask = t.empty((batch, ONE, SEQUENCE, SEQUENCE), dtype)
        tables = self.rotary(t, positions, embedded.dtype)
        x, probabilities = self.layers.after(embedded, Held(positions, tables, mask))
        x = self.ended(self.norm, x)
        del embedded, positions, probabilities  # held until here
        return x
