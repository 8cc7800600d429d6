"""MPT (transformers' MptForCausalLM), whose class has eager attention only.

Source: transformers (models/mpt/modeling_mpt.py).
"""

from dataclasses import dataclass

from calculator.architecture import Architecture
from calculator.autograd import operations as op
from calculator.autograd.dtypes import BOOL, FLOAT32
from calculator.autograd.graph import Tensor
from calculator.autograd.mode import SEQUENCE, Attention
from calculator.autograd.sizes import ONE, at_least, size
from calculator.configuration import Configuration
from calculator.errors import InputError
from calculator.layers.attention import Attended, heads_of, joined, scores_of, weighted_sum
from calculator.layers.basic import Embedding, LayerNorm, Linear
from calculator.layers.holding import HoldingStack
from calculator.layers.stack import Block
from calculator.models.keys import read_shape
from calculator.models.model import CausalModel
from calculator.models.widths import HEAD, HEADS, HIDDEN, VOCABULARY

DISTANCES = at_least(size("positions"), SEQUENCE)


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
        distances = t.empty((HEADS, ONE, DISTANCES), FLOAT32)
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
