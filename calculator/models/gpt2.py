"""GPT-2 (transformers' GPT2LMHeadModel), which serves GPT-3's sizes too.

Source: transformers (models/gpt2/modeling_gpt2.py, integrations/sdpa_attention.py).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

from calculator.architecture import Architecture
from calculator.autograd import operations as op
from calculator.autograd.dtypes import INT64
from calculator.autograd.graph import Recorder, Tensor
from calculator.autograd.mode import SEQUENCE, Attention
from calculator.autograd.sizes import ONE, size
from calculator.configuration import Configuration
from calculator.layers.attention import Attended, attend, eager_core, heads_of, joined
from calculator.layers.basic import Conv1D, Embedding, LayerNorm, Projection
from calculator.layers.feed_forward import FeedForward
from calculator.layers.heads import EachToken, Heads, LastToken
from calculator.layers.layer import Layer, weights_of
from calculator.layers.pairs import task_heads
from calculator.layers.reversible import Coupling
from calculator.layers.stack import Block, Stack
from calculator.models.keys import read_shape
from calculator.models.model import CausalModel
from calculator.models.widths import FEED, HEAD, HEADS, HIDDEN, POSITIONS

# GELU's names in a config.json: written in plain operations, and as one
PLAIN, FUSED = "gelu_new", ("gelu", "gelu_pytorch_tanh")


@dataclass(eq=False)
class SelfAttention(Layer):
    """Causal self-attention with one product for queries, keys and values."""

    def __post_init__(self) -> None:
        self.query_key_value = Conv1D(HIDDEN, 3 * HEADS * HEAD, name="c_attn")
        self.output = Conv1D(HEADS * HEAD, HIDDEN, name="attn.c_proj")

    def __call__(
        self, x: Tensor, mask: Tensor | None, handed: tuple[Tensor, ...]
    ) -> tuple[Tensor, Tensor | None]:
        """The weighted sum, and eager code's probabilities."""
        parts = op.split(self.query_key_value(x), *[HEADS * HEAD] * 3)
        q, k, v = (heads_of(part, HEADS, HEAD) for part in parts)
        del parts
        eager = partial(eager_core, added=(mask,), cast_back=True)
        out, probabilities = attend(q, k, v, eager, causal=True, handed=handed)
        out = self.output(joined(out))
        return op.dropout(out), probabilities


@dataclass(eq=False)
class GPT2Block(Block):
    """Norm before attention, norm before the feed-forward layer, whose GELU may be `fused`."""

    fused: bool

    attention_class: ClassVar[type[Layer]] = SelfAttention
    linear: ClassVar[type[Projection]] = Conv1D

    def __post_init__(self) -> None:
        self.norm_1 = LayerNorm(HIDDEN)
        self.attention: Any = self.attention_class()
        self.norm_2 = LayerNorm(HIDDEN)
        self.feed_forward = FeedForward(
            HIDDEN,
            FEED,
            ("c_fc", "mlp.c_proj"),
            op.gelu if self.fused else op.gelu_new,
            linear=self.linear,
        )

    def __call__(self, x: Tensor, mask: Tensor | None, positions: Tensor) -> Tensor:
        """The residual stream after the layer; the places are handed on without need."""
        return self.run(x, mask, positions)[0]

    def run(self, x: Tensor, mask: Tensor | None, *handed: Tensor) -> Attended:
        """The same, and the probabilities."""
        normed = self.norm_1(x)  # held, as in the class's own code
        attended, probabilities = self.attention(normed, mask, handed)
        x = op.add(attended, x)
        normed = self.norm_2(x)
        return op.add(x, self.feed_forward(normed)), probabilities

    def couplings(self, t: Recorder, mask: Tensor | None, _positions: Tensor) -> Sequence[Coupling]:
        """Attention and feed-forward, each with its norm."""
        return [
            Coupling(
                lambda x: self.attention(self.norm_1(x), mask, ())[0],
                weights_of(t, self.norm_1, self.attention),
            ),
            Coupling(
                lambda x: self.feed_forward(self.norm_2(x)),
                weights_of(t, self.norm_2, self.feed_forward),
            ),
        ]


@dataclass(eq=False)
class GPT2(CausalModel):
    """Token and learned position embeddings, blocks, norm, output layer."""

    tokens: Embedding
    positions: Embedding
    layers: Stack[Any]
    norm: LayerNorm
    tied: bool

    block_class: ClassVar[type[GPT2Block]] = GPT2Block
    stack_class: ClassVar[type[Stack[Any]]] = Stack

    heads: ClassVar[Heads] = task_heads(
        lambda _: LastToken(), tokens=lambda _: EachToken(dropped=True)
    )
    layers_get_mask = True
    before = ("tokens", "positions")
    names_inside = ("transformer", "wte", "h", "ln_f")
    positions_inside, once = "wpe", ("drop",)

    def __post_init__(self) -> None:
        self.head = self.tokens if self.tied else Embedding(self.tokens.rows, HIDDEN)

    @classmethod
    def read(cls, c: Configuration, name: str) -> Architecture:
        """The architecture that a config.json describes."""
        activation = c.text("activation_function", PLAIN, [PLAIN, *FUSED])
        more = (("fused_gelu", 1),) if activation in FUSED else ()
        return replace(read_shape(cls, c, name), more=more)

    @classmethod
    def values(cls, architecture: Architecture) -> dict[str, Any]:
        """The keys of a config.json for an architecture of the catalog."""
        return {
            "model_type": "gpt2",
            "n_positions": architecture.positions,
            "n_embd": architecture.hidden_size,
            "n_layer": architecture.layers,
            "n_head": architecture.heads,
        }

    @classmethod
    def build(cls, architecture: Architecture, tied: bool) -> "GPT2":
        """The tree for an architecture."""
        block = cls.block_class(architecture.has("fused_gelu"))
        return cls(
            Embedding(size("vocabulary_size"), HIDDEN, reads_input=True),
            Embedding(POSITIONS, HIDDEN),
            cls.stack_class((block,), architecture.layers),
            LayerNorm(HIDDEN),
            tied,
        )

    def hidden(self, ids: Tensor) -> Tensor:
        """The last hidden states; the embeddings' parts are held, as in the class's own code."""
        t = ids.tape
        embedded = self.tokens(ids) if self.is_first else ids
        positions = t.empty((ONE, SEQUENCE), INT64)
        # a later stage adds a zero in their place, and drops nothing out
        places = self.positions(positions) if self.is_first else t.empty((), t.mode.weights)
        x = op.add(embedded, places)
        mask = None
        if t.mode.attention is Attention.EAGER or Attention.EFFICIENT not in self.kernels:
            mask = t.empty((t.mode.batch, ONE, SEQUENCE, SEQUENCE), embedded.dtype)
        first = [op.dropout(x) if self.is_first else x]
        del x  # the first layer may let go of its input
        return self.ran(first.pop, mask, positions)

    def ran(self, first: Callable[[], Tensor], mask: Tensor | None, positions: Tensor) -> Tensor:
        """The last hidden states of what `first` makes."""
        x = self.layers.begun(first, mask, positions)
        return self.ended(self.norm, x)
