"""OPT (transformers' OPTForCausalLM).

Source: transformers (models/opt/modeling_opt.py).
"""

from dataclasses import dataclass, replace
from functools import partial

from calculator.architecture import Architecture
from calculator.autograd import operations as op
from calculator.autograd.dtypes import FLOAT32, INT64
from calculator.autograd.graph import Tensor
from calculator.autograd.mode import SEQUENCE, Attention
from calculator.autograd.sizes import ONE, plus, size
from calculator.configuration import Configuration
from calculator.layers.attention import Attended, attend, eager_core, heads_of, joined
from calculator.layers.basic import Embedding, LayerNorm, Linear
from calculator.layers.stack import Block, Stack
from calculator.models.keys import read_shape
from calculator.models.model import CausalModel
from calculator.models.widths import FEED, HEAD, HEADS, HIDDEN, POSITIONS, VOCABULARY

WORD = size("word_size")
UNUSED = 2  # the first rows of the table of positions
ROWS = plus(POSITIONS, UNUSED)


@dataclass(eq=False)
class OPTBlock(Block):
    """Attention and feed-forward layer, normed before each, or after each sum (`post_norm`)."""

    biased: bool
    post_norm: bool
    dropped: bool

    def __post_init__(self) -> None:
        self.key = Linear(HIDDEN, HEADS * HEAD, self.biased, name="k_proj")
        self.value = Linear(HIDDEN, HEADS * HEAD, self.biased, name="v_proj")
        self.query = Linear(HIDDEN, HEADS * HEAD, self.biased, name="q_proj")
        self.output = Linear(HEADS * HEAD, HIDDEN, self.biased, name="out_proj")
        self.norm_1 = LayerNorm(HIDDEN)
        self.expand = Linear(HIDDEN, FEED, self.biased, name="fc1")
        self.contract = Linear(FEED, HIDDEN, self.biased, name="fc2")
        self.norm_2 = LayerNorm(HIDDEN)

    def __call__(self, x: Tensor, mask: Tensor | None, places: Tensor) -> Tensor:
        """The residual stream after the layer; eager code's probabilities are held to its end."""
        h = x if self.post_norm else self.norm_1(x)
        h, _probabilities = self.attention(h, mask, places)
        h = op.dropout(h)
        h = op.add(x, h)
        if self.post_norm:
            h = self.norm_1(h)
        x = h
        if not self.post_norm:
            h = self.norm_2(h)
        h = self.expand(h)
        h = op.relu(h)
        h = self.contract(h)
        h = op.dropout(h)
        h = op.add(x, h)
        return self.norm_2(h) if self.post_norm else h

    def attention(self, x: Tensor, mask: Tensor | None, places: Tensor) -> Attended:
        """The weighted sum, and the probabilities; the queries are scaled before the product."""
        q = heads_of(op.scale(self.query(x)), HEADS, HEAD)
        k, v = (heads_of(layer(x), HEADS, HEAD) for layer in (self.key, self.value))
        eager = partial(eager_core, added=(mask,), wide=True)
        out, probabilities = attend(q, k, v, eager, True, self.dropped, (places,))
        out = self.output(joined(out))
        del q, k, v  # held until here
        return out, probabilities


@dataclass(eq=False)
class OPT(CausalModel):
    """Words and positions, blocks, norm, output layer; words may be narrower than the stream."""

    layers: Stack[OPTBlock]
    narrow_words: bool
    last_norm: bool
    tied: bool

    before = ("words", "positions", "inward")
    listed_first = ("words", "positions", "outward", "inward", "norm")
    after = ("norm", "outward", "head")
    names_inside = ("model.decoder", "embed_tokens", "layers", "final_layer_norm")
    positions_inside, once, last = "embed_positions", ("project_in",), ("project_out",)
    has_reversible_class = False

    def __post_init__(self) -> None:
        word = WORD if self.narrow_words else HIDDEN
        self.words = Embedding(VOCABULARY, word, reads_input=True)
        self.positions = Embedding(ROWS, HIDDEN)
        self.outward = (
            Linear(HIDDEN, WORD, biased=False, name="project_out") if self.narrow_words else None
        )
        self.inward = (
            Linear(WORD, HIDDEN, biased=False, name="project_in") if self.narrow_words else None
        )
        self.norm = LayerNorm(HIDDEN) if self.last_norm else None
        self.head = self.words if self.tied else Embedding(VOCABULARY, word)

    @classmethod
    def read(cls, c: Configuration, name: str) -> Architecture:
        """The architecture that a config.json describes."""
        found = read_shape(cls, c, name)
        dropped = c.probability("attention_dropout", 0.0) > 0
        more = {
            "word_size": c.size("word_embed_proj_dim", found.hidden_size),
            "post_norm": not c.flag("do_layer_norm_before", True),
            "biased": c.flag("enable_bias", True),
            "attention_dropout": dropped,
        }
        return replace(
            found,
            dropout=c.dropout("dropout", 0.1, *(["attention_dropout"] * dropped)),
            more=tuple((key, int(value)) for key, value in more.items()),
        )

    @classmethod
    def build(cls, architecture: Architecture, tied: bool) -> "OPT":
        """The tree for an architecture."""
        own = architecture.numbers
        post_norm = bool(own["post_norm"])
        block = OPTBlock(bool(own["biased"]), post_norm, bool(own["attention_dropout"]))
        narrow = own["word_size"] != architecture.hidden_size
        return cls(Stack((block,), architecture.layers), narrow, not post_norm, tied)

    def hidden(self, ids: Tensor) -> Tensor:
        """The last hidden states; what the embeddings are made of is held, as in the class.

        Where GPUs divide sequences, the mask and one row of places are given.
        """
        t = ids.tape
        embedded = self.begun(self.words, ids)
        given, tokens = t.mode.context > 1, (t.mode.batch, SEQUENCE)
        ones = None if given else t.empty(tokens, FLOAT32)
        places = t.constant((ONE, SEQUENCE), INT64) if given else t.empty(tokens, INT64)
        mask = None
        if t.mode.attention is Attention.EAGER:
            mask = t.empty((t.mode.batch, ONE, SEQUENCE, SEQUENCE), embedded.dtype)
        placed = self.positions(t.like(places)) if self.is_first else t.empty((), t.mode.weights)
        if self.inward is not None:
            embedded = self.begun(self.inward, embedded)
        x = self.layers.begun(partial(op.add, embedded, placed), mask, places)
        if self.norm is not None:
            x = self.ended(self.norm, x)
        if self.outward is not None:
            x = self.ended(self.outward, x)
        del ones, embedded, placed
        return x
