"""CodeGen (transformers' CodeGenForCausalLM), whose class has eager attention only.

Source: transformers (models/codegen/modeling_codegen.py).
"""

from dataclasses import dataclass
from functools import partial

from calculator.architecture import Architecture
from calculator.autograd import operations as op
from calculator.autograd.dtypes import FLOAT32
from calculator.autograd.graph import Tensor
from calculator.autograd.mode import SEQUENCE
from calculator.configuration import Configuration
from calculator.errors import InputError
from calculator.layers.attention import Attended, selectively
from calculator.layers.basic import LayerNorm, Linear
from calculator.layers.layer import Buffer
from calculator.layers.stack import Block
from calculator.models.gptj import ANGLES, GPTJ, ROTARY, core, feed_forward, rotated
from calculator.models.widths import HEAD, HEADS, HIDDEN

MODEL_PARTS = 4  # the class splits the fused product as the original's accelerators did


@dataclass(eq=False)
class CodeGenBlock(Block):
    """Attention and feed-forward layer side by side after one norm.

    Heads of several parts are `copied` to stand side by side; one head a part is a view.
    """

    copied: bool

    def __post_init__(self) -> None:
        self.norm = LayerNorm(HIDDEN)
        self.angles = Buffer((ANGLES, ROTARY), FLOAT32)
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
