"""BLOOM and MPT (BloomForCausalLM, MptForCausalLM): distances lower the scores (ALiBi).

Both classes have eager attention only.

Source: transformers (models/bloom/modeling_bloom.py, models/mpt/modeling_mpt.py).
"""

from dataclasses import dataclass, replace

from calculator.architecture import Architecture
from calculator.autograd import operations as op
from calculator.autograd.dtypes import BOOL, FLOAT32
from calculator.autograd.graph import Gradients, Tensor
from calculator.autograd.mode import SEQUENCE, Attention
from calculator.autograd.sizes import ONE
from calculator.configuration import Configuration
from calculator.errors import InputError
from calculator.layers.attention import Attended, heads_of, joined, scores_of, weighted_sum
from calculator.layers.basic import Embedding, LayerNorm, Linear
from calculator.layers.holding import HoldingStack
from calculator.layers.stack import Block
from calculator.models.keys import read_shape
from calculator.models.model import CausalModel
from calculator.models.widths import HEAD, HEADS, HIDDEN, POSITIONS, VOCABULARY

OWN_LENGTH = 2048  # no key of the config says so; the published models were trained with it


def tanh_part(x: Tensor) -> Tensor:
    """tanh(0.79788456 x (1 + 0.044715 x x)), without history."""
    return op.tanh(op.multiply(op.scale(x), op.shift(op.multiply(op.scale(x), x))))


def gelu(x: Tensor) -> Tensor:
    """BLOOM's GELU, a function with a backward of its own: keeps x and computes all again."""
    t, shape, dtype = x.tape, x.shape, x.dtype

    def backward(gradients: Gradients) -> Gradients:
        (gradient,) = gradients
        assert gradient is not None
        with t.setting(recording=False):
            x = t.alias(gradient)
            turned = tanh_part(x)
            near = op.scale(x)
            rest = op.shift(op.multiply(turned, turned))
            near = op.multiply(near, op.multiply(rest, op.shift(op.multiply(op.scale(x), x))))
            del rest
            slope = op.add(near, op.scale(op.shift(turned)))
            del near
            return [op.multiply(slope, gradient)]

    with t.setting(recording=False):
        half = op.scale(x)
        rest = op.shift(tanh_part(x))
    out = t.operation([x], shape, dtype, saves=[x], special=backward)
    del half, rest  # alive until the product is made
    return out


@dataclass(eq=False)
class BloomBlock(Block):
    """Norm and attention, norm and feed-forward layer; distances lower the scores (ALiBi)."""

    normed_residual: bool

    def __post_init__(self) -> None:
        self.norm_1 = LayerNorm(HIDDEN)
        self.query_key_value = Linear(HIDDEN, 3 * HEADS * HEAD, name="query_key_value")
        self.output = Linear(HEADS * HEAD, HIDDEN, name="self_attention.dense")
        self.norm_2 = LayerNorm(HIDDEN)
        self.expand = Linear(HIDDEN, 4 * HIDDEN, name="dense_h_to_4h")
        self.contract = Linear(4 * HIDDEN, HIDDEN, name="dense_4h_to_h")

    def run(self, x: Tensor, distances: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """The residual stream after the layer, and the probabilities."""
        normed = self.norm_1(x)
        residual = normed if self.normed_residual else x
        attended, probabilities = self.attention(normed, residual, distances, mask)
        normed = self.norm_2(attended)
        residual = normed if self.normed_residual else attended
        h = gelu(self.expand(normed))
        h = self.contract(h)
        return op.add(residual, op.dropout(h)), probabilities

    def attention(
        self, x: Tensor, residual: Tensor, distances: Tensor, mask: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The sum with the residual stream, and the probabilities."""
        fused = self.query_key_value(x)
        heads = (*x.shape[:-1], HEADS, HEAD)
        parts = (op.part(fused, *heads) for _ in range(3))
        q, k, v = (op.transpose(part, 1, 2) for part in parts)
        if not x.tape.mode.one_sequence:
            q, k, v = op.copy(q), op.copy(k), op.copy(v)
        scores = op.biased_matmul(distances, q, op.transpose(k, 2, 3))
        masked = op.add(scores, mask)
        probabilities = op.cast(op.softmax(masked, FLOAT32), q.dtype)
        probabilities = op.dropout(probabilities)
        out = op.matmul(probabilities, v)
        if not x.tape.mode.one_sequence:
            out = op.regrouped(out, *out.shape)
        out = op.copy(op.transpose(out, 1, 2))
        dense = self.output(op.view(out, *x.shape[:-1], HEADS * HEAD))
        summed = op.add(residual, op.dropout(dense))
        del fused, scores, masked, out, dense  # held until here
        return summed, probabilities


@dataclass(eq=False)
class Bloom(CausalModel):
    """Words and their norm, blocks, norm, output layer."""

    layers: HoldingStack[BloomBlock]
    tied: bool

    before = ("words", "first_norm")
    names_inside = ("transformer", "word_embeddings", "h", "ln_f")
    once = ("word_embeddings_layernorm",)
    kernels = (Attention.EAGER, Attention.SDPA)
    has_attention_core = False
    has_reversible_class = False

    def __post_init__(self) -> None:
        self.words = Embedding(VOCABULARY, HIDDEN, reads_input=True)
        self.first_norm = LayerNorm(HIDDEN)
        self.norm = LayerNorm(HIDDEN)
        self.head = self.words if self.tied else Embedding(VOCABULARY, HIDDEN)

    @classmethod
    def read(cls, c: Configuration, name: str) -> Architecture:
        """The architecture that a config.json describes."""
        return replace(read_shape(cls, c, name), sequence_length=OWN_LENGTH)

    @classmethod
    def build(cls, architecture: Architecture, tied: bool) -> "Bloom":
        """The tree for an architecture."""
        block = BloomBlock(architecture.has("apply_residual_connection_post_layernorm"))
        return cls(HoldingStack((block,), architecture.layers), tied)

    def hidden(self, ids: Tensor) -> Tensor:
        """The last hidden states; the embeddings and what stands for distances are held."""
        t = ids.tape
        embedded = self.begun(self.words, ids)
        first = [self.begun(self.first_norm, embedded)]  # held by the first layer alone
        slopes = t.empty((HEADS,), FLOAT32)
        distances = t.empty((t.mode.batch, HEADS, ONE, SEQUENCE), first[0].dtype)
        mask = t.empty((t.mode.batch, ONE, SEQUENCE, SEQUENCE), embedded.dtype)
        x, probabilities = self.layers.after(first.pop(), distances, mask)
        x = self.ended(self.norm, x)
        del slopes, probabilities
        return x


@dataclass(eq=False)
class MptBlock(Block):
    """Norm and attention, norm and feed-forward layer; distances lower the scores (ALiBi)."""

    def __post_init__(self) -> None:
        self.norm_1 = LayerNorm(HIDDEN, biased=False)
        self.query_key_value = Linear(HIDDEN, 3 * HEADS * HEAD, biased=False, name="Wqkv")
        self.output = Linear(HEADS * HEAD, HIDDEN, biased=False, name="out_proj")
        self.norm_2 = LayerNorm(HIDDEN, biased=False)
        self.expand = Linear(HIDDEN, 4 * HIDDEN, biased=False, name="up_proj")
        self.contract = Linear(4 * HIDDEN, HIDDEN, biased=False, name="down_proj")

    def run(self, x: Tensor, distances: Tensor, mask: Tensor) -> Attended:
        """The residual stream after the layer, and the probabilities."""
        normed = self.norm_1(x)
        attended, probabilities = self.attention(normed, distances, mask)
        x = op.add(attended, x)
        normed = self.norm_2(x)
        h = op.gelu(self.expand(normed))
        out = self.contract(h)
        x = op.add(out, x)
        del h, out  # held until here
        return x, probabilities

    def attention(self, x: Tensor, distances: Tensor, mask: Tensor) -> Attended:
        """The weighted sum and the probabilities; distances in 32 bits make the scores so too."""
        fused = self.query_key_value(x)
        parts = op.split(fused, *[HEADS * HEAD] * 3)
        q, k, v = (heads_of(part, HEADS, HEAD) for part in parts)
        del parts
        scores = op.scale(scores_of(q, k))
        scores = op.add(scores, op.part(distances, HEADS, ONE, SEQUENCE))
        scores = op.masked_fill(scores, mask)
        probabilities = op.cast(op.softmax(op.cast(scores, FLOAT32)), v.dtype)
        out = op.copy(weighted_sum(probabilities, v))
        out = self.output(joined(out))
        del fused, q, k, v, scores  # held until here
        return out, probabilities


@dataclass(eq=False)
class Mpt(CausalModel):
    """Token embeddings, blocks, norm, output layer; no biases, and no dropout as published."""

    layers: HoldingStack[MptBlock]
    tied: bool

    names_inside = ("transformer", "wte", "blocks", "norm_f")
    kernels = (Attention.EAGER, Attention.SDPA)
    has_attention_core = False
    has_dropout = False
    has_reversible_class = False

    def __post_init__(self) -> None:
        self.tokens = Embedding(VOCABULARY, HIDDEN, reads_input=True)
        self.norm = LayerNorm(HIDDEN, biased=False)
        self.head = self.tokens if self.tied else Embedding(VOCABULARY, HIDDEN)

    @classmethod
    def read(cls, c: Configuration, name: str) -> Architecture:
        """The architecture that a config.json describes."""
        _check_attention(c)
        return read_shape(cls, c, name)

    @classmethod
    def build(cls, architecture: Architecture, tied: bool) -> "Mpt":
        """The tree for an architecture."""
        return cls(HoldingStack((MptBlock(),), architecture.layers), tied)

    def hidden(self, ids: Tensor) -> Tensor:
        """The last hidden states; embeddings, distances and mask are held to the end."""
        t = ids.tape
        embedded = self.begun(self.tokens, ids)
        distances = t.empty((HEADS, ONE, POSITIONS), FLOAT32)
        mask = t.empty((t.mode.batch, ONE, SEQUENCE, SEQUENCE), BOOL)
        x, probabilities = self.layers.after(embedded, distances, mask)
        x = self.ended(self.norm, x)
        del embedded, probabilities
        return x


def _check_attention(c: Configuration) -> None:
    """Refuse what the class does on top, where ``attn_config`` asks for it."""
    values = c.value("attn_config")
    if values is None:
        return
    if not isinstance(values, dict):
        raise InputError("attn_config", values, "must be an object")
    for key in ("attn_pdrop", "clip_qkv"):
        if values.get(key):
            raise InputError(key, values[key], "must be 0 or absent: nothing else is counted")
