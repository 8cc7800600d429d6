"""GPT-J and CodeGen (GPTJForCausalLM, CodeGenForCausalLM), whose classes have eager attention only.

Source: transformers (models/gptj/modeling_gptj.py, models/codegen/modeling_codegen.py).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from calculator.architecture import Architecture
from calculator.autograd import operations as op
from calculator.autograd.dtypes import FLOAT32, INT64
from calculator.autograd.graph import Parameter, Recorder, Tensor
from calculator.autograd.mode import SEQUENCE, Attention
from calculator.autograd.sizes import ONE, divided, size, without
from calculator.configuration import Configuration
from calculator.errors import InputError
from calculator.layers.attention import (
    Attended,
    joined,
    scores_of,
    selectively,
    weighted_sum,
)
from calculator.layers.basic import Embedding, LayerNorm, Linear
from calculator.layers.feed_forward import FeedForward
from calculator.layers.holding import HoldingStack
from calculator.layers.layer import Buffer, Layer, weights_of
from calculator.layers.reversible import Coupling
from calculator.layers.stack import Block
from calculator.models.keys import read_shape
from calculator.models.model import CausalModel
from calculator.models.widths import FEED, HEAD, HEADS, HIDDEN, POSITIONS

ROTARY = size("rotary_size")
# rows of the table of rotary angles


@dataclass(eq=False)
class SelfAttention(Layer):
    """Causal self-attention with rotary positions in the first channels of each head."""

    def __post_init__(self) -> None:
        self.angles = Buffer((POSITIONS, ROTARY), FLOAT32)
        self.key = Linear(HIDDEN, HEADS * HEAD, biased=False, name="k_proj")
        self.value = Linear(HIDDEN, HEADS * HEAD, biased=False, name="v_proj")
        self.query = Linear(HIDDEN, HEADS * HEAD, biased=False, name="q_proj")
        self.output = Linear(HEADS * HEAD, HIDDEN, biased=False, name="out_proj")

    def __call__(self, x: Tensor, mask: Tensor) -> Attended:
        """The weighted sum and the probabilities."""
        t = x.tape
        q, k, v = (
            op.view(layer(x), *x.shape[:-1], HEADS, HEAD)
            for layer in (self.query, self.key, self.value)
        )
        # held: the table, which stays in 32 bits, copied for this layer, and its repeated indices
        table = t.empty((POSITIONS, ROTARY), FLOAT32)
        repeated = t.empty((SEQUENCE, ROTARY), INT64)
        sines = t.empty((SEQUENCE, ROTARY), FLOAT32)
        sines = op.cast(sines, k.dtype)
        turned_k, turned_q, parts = rotated(k, q, sines)
        turned = (op.transpose(tensor, 1, 2) for tensor in (turned_q, turned_k, v))
        out, probabilities = selectively(partial(core, mask=mask), *turned)
        out = op.copy(out)  # heads side by side
        out = self.output(joined(out))
        out = op.dropout(out)
        del table, repeated, sines, q, k, v, turned_q, turned_k, parts
        return out, probabilities


def rotated(k: Tensor, q: Tensor, sines: Tensor) -> tuple[Tensor, Tensor, list[Tensor]]:
    """Both with their first r channels turned; and these channels, which the class holds too."""
    split = [op.split(x, ROTARY, without(HEAD, ROTARY)) for x in (k, q)]
    parts = [turned_channels(first, sines) for first, _ in split]
    turned_k, turned_q = (
        op.concatenate([part, op.cast(rest, part.dtype)], *k.shape)
        for part, (_, rest) in zip(parts, split, strict=True)
    )
    return turned_k, turned_q, parts


def turned_channels(first: Tensor, sines: Tensor) -> Tensor:
    """Channels turned by their places: x cos + (x turned by a quarter) sin."""
    t = first.tape
    table = (ONE, SEQUENCE, ONE, ROTARY)
    sine, cosine = t.empty(table, sines.dtype), t.empty(table, sines.dtype)
    near = op.multiply(first, cosine)
    halves = op.split(first, ROTARY, ROTARY)
    negative = t.empty((*first.shape[:-1], divided(ROTARY, 2)), first.dtype)
    quarter = op.concatenate([first], *first.shape)
    del negative, halves
    far = op.multiply(quarter, sine)
    del quarter
    return op.add(near, far)


def core(q: Tensor, k: Tensor, v: Tensor, mask: Tensor, masked_first: bool = False) -> Attended:
    """Scores in 32 bits where autocast lets them, scaled and masked, softmax, weighted sum."""
    q, k = op.cast(q, FLOAT32), op.cast(k, FLOAT32)
    scores = scores_of(q, k)
    for masked in (masked_first, not masked_first):
        scores = op.add(scores, mask) if masked else op.scale(scores)
    scores = op.softmax(scores)
    scores = op.cast(scores, v.dtype)
    scores = op.dropout(scores)
    return weighted_sum(scores, v), scores


def feed_forward() -> FeedForward:
    """Two products with GELU between."""
    return FeedForward(HIDDEN, FEED, ("fc_in", "fc_out"), op.gelu_new)


@dataclass(eq=False)
class GPTJBlock(Block):
    """Attention and feed-forward side by side after one norm."""

    def __post_init__(self) -> None:
        self.norm = LayerNorm(HIDDEN)
        self.attention = SelfAttention()
        self.feed_forward = feed_forward()

    def run(self, x: Tensor, mask: Tensor, _positions: Tensor) -> Attended:
        """The residual stream after the layer, and the probabilities.

        The places are handed on without need.
        """
        normed = self.norm(x)
        attended, probabilities = self.attention(normed, mask)
        forwarded = self.feed_forward(normed)
        return op.add(op.add(attended, forwarded), x), probabilities

    def couplings(self, t: Recorder, mask: Tensor, _positions: Tensor) -> Sequence[Coupling]:
        """Both branches, which share the layer's one norm."""
        return [
            Coupling(
                lambda x: self.attention(self.norm(x), mask)[0],
                weights_of(t, self.norm, self.attention),
            ),
            Coupling(
                lambda x: self.feed_forward(self.norm(x)),
                weights_of(t, self.norm, self.feed_forward),
            ),
        ]


def _rotary_size(c: Configuration, head_size: int) -> int:
    """Channels of a head that are rotated, in pairs."""
    rotated = c.size("rotary_dim", 64)
    rule = f"must be an even number up to the head's {head_size:,} channels"
    if c.has_null("rotary_dim"):  # the one null that is a value: the class would rotate all heads
        raise InputError("rotary_dim", "null", rule)
    if rotated % 2 or rotated > head_size:
        raise InputError("rotary_dim", rotated, rule)
    return rotated


@dataclass(eq=False)
class GPTJ(CausalModel):
    """Token embeddings, blocks, norm, output layer with a bias."""

    tokens: Embedding
    layers: HoldingStack[Any]
    norm: LayerNorm
    tied: bool

    names_inside = ("transformer", "wte", "h", "ln_f")
    once = ("drop",)
    kernels = (Attention.EAGER, Attention.SDPA)
    has_reversible_class = False

    def __post_init__(self) -> None:
        self.head = self.tokens if self.tied else Embedding(self.tokens.rows, HIDDEN)
        self.head_bias = Parameter((self.tokens.rows,))

    @classmethod
    def read(cls, c: Configuration, name: str) -> Architecture:
        """The architecture that a config.json describes."""
        found = read_shape(cls, c, name)
        return replace(found, rotary_size=_rotary_size(c, found.head_size))

    @classmethod
    def build(cls, architecture: Architecture, tied: bool) -> "GPTJ":
        """The tree for an architecture."""
        return cls(
            Embedding(size("vocabulary_size"), HIDDEN, reads_input=True),
            HoldingStack((cls.block(architecture),), architecture.layers),
            LayerNorm(HIDDEN),
            tied,
        )

    @classmethod
    def block(cls, architecture: Architecture) -> Block:
        """One layer."""
        return GPTJBlock()

    def hidden(self, ids: Tensor) -> Tensor:
        """The last hidden states; positions are only held, as in the class's own code."""
        t = ids.tape
        embedded = self.begun(self.tokens, ids)
        positions = t.empty((ONE, SEQUENCE), INT64)
        mask = t.empty((t.mode.batch, ONE, SEQUENCE, SEQUENCE), embedded.dtype)
        x = self.begun(op.dropout, embedded)
        x, probabilities = self.layers.after(x, mask, positions)
        x = self.ended(self.norm, x)
        del embedded, positions, probabilities  # held until here
        return x


MODEL_PARTS = 4  # the class splits the fused product as the original's accelerators did


@dataclass(eq=False)
class CodeGenBlock(Block):
    """Attention and feed-forward layer side by side after one norm.

    Heads of several parts are `copied` to stand side by side; one head a part is a view.
    """

    copied: bool

    def __post_init__(self) -> None:
        self.norm = LayerNorm(HIDDEN)
        self.angles = Buffer((POSITIONS, ROTARY), FLOAT32)
        self.query_key_value = Linear(HIDDEN, 3 * HEADS * HEAD, biased=False, name="qkv_proj")
        self.output = Linear(HEADS * HEAD, HIDDEN, biased=False, name="out_proj")
        self.feed_forward = feed_forward()

    def run(self, x: Tensor, mask: Tensor, places: Tensor) -> Attended:
        """The residual stream after the layer, and the probabilities."""
        del places  # handed on by the class, which a checkpointed layer keeps
        normed = self.norm(x)
        attended, probabilities = self.attention(normed, mask)
        forwarded = self.feed_forward(normed)
        return op.add(op.add(attended, forwarded), x), probabilities

    def attention(self, x: Tensor, mask: Tensor) -> Attended:
        """The weighted sum and the probabilities."""
        t = x.tape
        fused = self.query_key_value(x)
        parts = op.split(fused, *[HEADS * HEAD] * 3)
        if self.copied:
            parts = [op.copy(part) for part in parts]
        q, v, k = (op.view(part, *x.shape[:-1], HEADS, HEAD) for part in parts)
        sines = t.empty((SEQUENCE, ROTARY), FLOAT32)
        turned_k, turned_q, turned_parts = rotated(k, q, sines)
        turned = (op.transpose(tensor, 1, 2) for tensor in (turned_q, turned_k, v))
        out, probabilities = selectively(partial(core, mask=mask, masked_first=True), *turned)
        out = op.copy(op.transpose(out, 1, 2))
        out = self.output(op.view(out, *x.shape[:-1], HEADS * HEAD))
        out = op.dropout(out)
        # held until here
        del parts, fused, sines, q, k, v, turned_q, turned_k, turned_parts
        return out, probabilities


@dataclass(eq=False)
class CodeGen(GPTJ):
    """GPT-J's embeddings, norm and output layer around blocks of its own."""

    @classmethod
    def read(cls, c: Configuration, name: str) -> Architecture:
        """The architecture that a config.json describes: GPT-J's keys."""
        found = super().read(c, name)
        if found.heads % MODEL_PARTS:
            raise InputError("n_head", found.heads, f"must be a multiple of {MODEL_PARTS}")
        return found

    @classmethod
    def block(cls, architecture: Architecture) -> Block:
        """One layer."""
        return CodeGenBlock(architecture.heads > MODEL_PARTS)
