"""CodeGen (transformers' CodeGenForCausalLM), whose class has eager attention only.

Source: transformers (models/codegen/modeling_codegen.py).
"""

from dataclasses import dataclass, replace
from functools import partial

from calculator.architecture import Architecture
from calculator.autograd import operations as op
from calculator.autograd.dtypes import FLOAT32, INT64
from calculator.autograd.graph import Parameter, Tensor
from calculator.autograd.mode import SEQUENCE, Attention
from calculator.autograd.sizes import ONE, size
from calculator.configuration import Configuration
from calculator.errors import InputError
from calculator.layers.attention import Attended, scores_of, selectively, weighted_sum
from calculator.layers.basic import Embedding, LayerNorm, Linear
from calculator.layers.holding import HoldingStack
from calculator.layers.layer import Buffer
from calculator.layers.stack import Block
from calculator.models.gptj import ANGLES, GPTJ, HEAD, HEADS, HIDDEN, ROTARY, FeedForward, rotated
from calculator.models.model import CausalModel

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
        self.feed_forward = FeedForward()

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
        out, probabilities = selectively(partial(core, mask=mask), *turned)
        out = op.copy(op.transpose(out, 1, 2))
        out = self.output(op.view(out, *x.shape[:-1], HEADS * HEAD))
        out = op.dropout(out)
        # held until here
        del parts, fused, sines, q, k, v, turned_q, turned_k, turned_parts
        return out, probabilities


def core(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Attended:
    """Scores in 32 bits where autocast lets them, softmax, weighted sum."""
    q, k = op.cast(q, FLOAT32), op.cast(k, FLOAT32)
    scores = scores_of(q, k)
    scores = op.add(scores, mask)
    scores = op.scale(scores)
    scores = op.softmax(scores)
    scores = op.cast(scores, v.dtype)
    scores = op.dropout(scores)
    return weighted_sum(scores, v), scores


@dataclass(eq=False)
class CodeGen(CausalModel):
    """Token embeddings, blocks, norm, output layer with a bias."""

    layers: HoldingStack[CodeGenBlock]
    tied: bool

    title = "CodeGen"
    counted = "CodeGenForCausalLM"
    lora_targets = ("qkv_proj",)
    kernels = (Attention.EAGER, Attention.SDPA)
    has_reversible_class = False

    def __post_init__(self) -> None:
        self.tokens = Embedding(size("vocabulary_size"), HIDDEN, reads_input=True)
        self.norm = LayerNorm(HIDDEN)
        self.head = self.tokens if self.tied else Embedding(self.tokens.rows, HIDDEN)
        self.head_bias = Parameter((self.tokens.rows,))

    @classmethod
    def read(cls, c: Configuration, name: str) -> Architecture:
        """The architecture that a config.json describes: GPT-J's keys."""
        found = GPTJ.read(c, name)
        if found.heads % MODEL_PARTS:
            raise InputError("n_head", found.heads, f"must be a multiple of {MODEL_PARTS}")
        return replace(found, family="codegen")

    @classmethod
    def build(cls, architecture: Architecture, tied: bool) -> "CodeGen":
        """The tree for an architecture."""
        block = CodeGenBlock(architecture.heads > MODEL_PARTS)
        return cls(HoldingStack((block,), architecture.layers), tied)

    def hidden(self, ids: Tensor) -> Tensor:
        """The last hidden states; embeddings, places and mask are held to the end."""
        t = ids.tape
        embedded = self.begun(self.tokens, ids)
        places = t.empty((ONE, SEQUENCE), INT64)
        mask = t.empty((t.mode.batch, ONE, SEQUENCE, SEQUENCE), embedded.dtype)
        x = self.begun(op.dropout, embedded)
        x, probabilities = self.layers.after(x, mask, places)
        x = self.ended(self.norm, x)
        del embedded, probabilities
        return x
