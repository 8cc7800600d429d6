"""GPT-Neo (transformers' GPTNeoForCausalLM), whose class has eager attention only.

Source: transformers (models/gpt_neo/modeling_gpt_neo.py).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from calculator.architecture import Architecture
from calculator.autograd import operations as op
from calculator.autograd.dtypes import BOOL, FLOAT32
from calculator.autograd.graph import Tensor
from calculator.autograd.mode import SEQUENCE, Attention
from calculator.autograd.sizes import ONE
from calculator.configuration import Configuration
from calculator.errors import InputError
from calculator.layers.attention import (
    Attended,
    heads_of,
    joined,
    scores_of,
    selectively,
    weighted_sum,
)
from calculator.layers.basic import Linear
from calculator.layers.heads import Heads
from calculator.layers.holding import HoldingStack
from calculator.layers.layer import Buffer, Layer
from calculator.models.gpt2 import GPT2, GPT2Block
from calculator.models.widths import HEAD, HEADS, HIDDEN, POSITIONS


@dataclass(eq=False)
class SelfAttention(Layer):
    """Causal self-attention, whose table says for all places which others they see."""

    def __post_init__(self) -> None:
        self.seen = Buffer((ONE, ONE, POSITIONS, POSITIONS), BOOL)
        self.key = Linear(HIDDEN, HEADS * HEAD, biased=False, name="k_proj")
        self.value = Linear(HIDDEN, HEADS * HEAD, biased=False, name="v_proj")
        self.query = Linear(HIDDEN, HEADS * HEAD, biased=False, name="q_proj")
        self.output = Linear(HEADS * HEAD, HIDDEN, name="out_proj")

    def __call__(self, x: Tensor, mask: Tensor, handed: tuple[Tensor, ...]) -> Attended:
        """The weighted sum and the probabilities."""
        q, k, v = (layer(x) for layer in (self.query, self.key, self.value))
        q, k, v = (heads_of(each, HEADS, HEAD) for each in (q, k, v))
        out, probabilities = selectively(partial(core, mask=mask), q, k, v)
        out = op.copy(out)  # heads side by side
        out = self.output(joined(out))
        return op.dropout(out), probabilities


def core(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Attended:
    """Scores in 32 bits where autocast lets them, masked twice, softmax, weighted sum."""
    t = q.tape
    q, k = op.cast(q, FLOAT32), op.cast(k, FLOAT32)
    scores = scores_of(q, k)
    least = t.empty((), scores.dtype)
    scores = op.masked_fill(scores, t.constant((ONE, ONE, SEQUENCE, SEQUENCE), BOOL))
    scores = op.add(scores, mask)
    scores = op.softmax(scores)
    scores = op.cast(scores, v.dtype)
    scores = op.dropout(scores)
    out = weighted_sum(scores, v)
    del least  # held until here
    return out, scores


@dataclass(eq=False)
class GPTNeoBlock(GPT2Block):
    """GPT-2's layer with other attention, and weights that are not transposed."""

    attention_class = SelfAttention
    linear = Linear


@dataclass(eq=False)
class GPTNeo(GPT2):
    """GPT-2's embeddings, norm and output layer around blocks of its own.

    Layers with a window and without have tables of the same size.
    """

    block_class = GPTNeoBlock
    stack_class = HoldingStack
    heads: ClassVar[Heads] = GPT2.heads
    layers_get_mask = False
    kernels = (Attention.EAGER, Attention.SDPA)
    has_reversible_class = False

    @classmethod
    def read(cls, c: Configuration, name: str) -> Architecture:
        """The architecture that a config.json describes; all layers have a kind."""
        found = super().read(c, name)
        turns = c.value("attention_types") or [[["global", "local"], 12]]
        if _layers_of(turns) != found.layers:
            rule = f"must name {found.layers} layers, in turns of global and local ones"
            raise InputError("attention_types", turns, rule)
        return found

    @classmethod
    def values(cls, architecture: Architecture) -> dict[str, Any]:
        """None: the catalog has no architecture of this type."""
        return {}

    def ran(self, first: Callable[[], Tensor], mask: Tensor | None, positions: Tensor) -> Tensor:
        """The last hidden states; the last layer's probabilities are held beside the norm."""
        assert isinstance(self.layers, HoldingStack)
        x, probabilities = self.layers.after(first(), mask)
        x = self.ended(self.norm, x)
        del probabilities  # held until here
        return x


def _layers_of(turns: Any) -> int:
    """The number of layers that have a kind; 0 for what is no list of turns and their number."""
    try:
        known = all({*kinds} <= {"global", "local"} for kinds, _ in turns)
        return sum(len(kinds) * times for kinds, times in turns) if known else 0
    except (TypeError, ValueError):
        return 0
