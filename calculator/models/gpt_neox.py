"""GPT-NeoX, Pythia, Phi 1 to 2, StableLM (GPTNeoX-, Phi- and StableLmForCausalLM).

A part of each head is turned; attention and feed-forward layer may read the same input.

Source: transformers (models/gpt_neox/modeling_gpt_neox.py, models/phi/modeling_phi.py,
models/stablelm/modeling_stablelm.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

from calculator.architecture import Architecture
from calculator.autograd import operations as op
from calculator.autograd.graph import Parameter, Tensor
from calculator.autograd.sizes import size, without
from calculator.configuration import Configuration
from calculator.errors import InputError
from calculator.layers.attention import Attended, joined, selectively
from calculator.layers.basic import LayerNorm, Linear
from calculator.layers.feed_forward import FeedForward, GatedFeedForward
from calculator.layers.grouped import GroupedAttention, Heads, Held, Mixer, Shared
from calculator.layers.rotary import Rotary, Tables, positions_of, rotated
from calculator.layers.stack import Block
from calculator.models.decoder import FEED, HEAD, HIDDEN, Decoder, rope_of
from calculator.models.model import ALWAYS, LLAMAS

HEADS, ROTARY = size("heads"), size("rotary_size")
ALIKE = Heads(HEADS, HEADS, HEAD)
NAMES = ("dense_h_to_4h", "dense_4h_to_h")


@dataclass(eq=False)
class PartialAttention(GroupedAttention):
    """Attention of which the first channels of each head are turned; perhaps one `fused` product.

    What was turned is put beside the rest in new tensors, head after head.
    """

    fused: bool = False

    output_name = "dense"
    side_by_side = True

    def __post_init__(self) -> None:
        if self.fused:
            self.query_key_value = Linear(
                HIDDEN, 3 * HEADS * HEAD, self.biased, name="query_key_value"
            )
            self.output = Linear(HEADS * HEAD, HIDDEN, self.output_biased, name="attention.dense")
        else:
            super().__post_init__()

    def __call__(self, x: Tensor, held: Held) -> Attended:
        """The weighted sum and, in eager code, the probabilities."""
        q, k, v = self.parts(x)
        parts = q, k  # what is not turned are views of them
        turned_q, turned_k = turned(q, held.tables), turned(k, held.tables)
        q = whole(turned_q, q)
        if self.fused:  # a function of its own, which has let go of it
            turned_q = q
        k = whole(turned_k, k)
        if self.fused:
            turned_k = k
        out, probabilities = selectively(partial(self.core, held=held), q, k, v)
        out = self.output(joined(out))
        del q, k, v, parts, turned_q, turned_k  # held until here
        return out, probabilities

    def parts(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values."""
        if self.fused:
            fused = op.regrouped(self.query_key_value(x), *x.shape[:-1], HEADS, 3 * HEAD)
            q, k, v = op.split(op.transpose(fused, 1, 2), HEAD, HEAD, HEAD)
            return q, k, v
        q, k = self.heads_of(self.query(x), self.heads.queries), self.key(x)
        k, v = self.heads_of(k, self.heads.keys), self.value(x)
        return q, k, self.heads_of(v, self.heads.keys, copied=self.copies(x.tape.mode, None))


def turned(x: Tensor, tables: Tables) -> Tensor:
    """The first channels of each head, turned."""
    return rotated(op.part(x, *x.shape[:-1], ROTARY), tables)


def whole(first: Tensor, x: Tensor) -> Tensor:
    """The channels that were turned beside the rest of x, in the wider one's format."""
    rest = op.part(x, *x.shape[:-1], without(HEAD, ROTARY))
    return op.concatenate([first, op.cast(rest, first.dtype)], *x.shape)


@dataclass(eq=False)
class PartialDecoder(Decoder):
    """Token embeddings with dropout, rotary tables, blocks, norm, output layer.

    Attributes:
        turned: the key of the share of each head that is turned, and its default.
        dropouts: the keys of its dropouts, which are zero by default.
    """

    turned: ClassVar[tuple[str, float]] = ("", 1.0)
    dropouts: ClassVar[tuple[str, ...]] = ()
    whole_tokens = LLAMAS
    norm_class = LayerNorm

    @classmethod
    def read(cls, c: Configuration, name: str) -> Architecture:
        """The architecture that a config.json describes; all layers are of one kind."""
        c.only("is_encoder_decoder", False)
        return replace(super().read(c, name), pattern=())

    @classmethod
    def _check_rope(cls, c: Configuration) -> None:
        """Left to the channels that are turned."""

    @classmethod
    def _head_size(cls, c: Configuration, hidden: int, heads: int) -> int:
        return c.head_size(hidden, heads)

    @classmethod
    def _key_value_heads(cls, c: Configuration, heads: int) -> int:
        return heads

    @classmethod
    def rotary_size(cls, c: Configuration, head_size: int) -> int:
        """Channels of a head that are turned, in pairs."""
        key, factor = cls.turned
        factor = c.value(key) or factor
        c.ignore("rope_theta", "rotary_emb_base")
        for name in ("rope_parameters", "rope_scaling"):
            values = c.value(name)
            if values is None:
                continue
            if not isinstance(values, dict) or rope_of(values) != "default":
                raise InputError(name, values, "must be an object whose rope_type is default")
            given = values.get("partial_rotary_factor")
            factor = factor if given is None else given
        if type(factor) not in (int, float) or not 0 < factor <= 1:
            raise InputError(key, factor, "must be a number above 0, of at most 1")
        rotary = int(head_size * factor)
        if rotary < 2 or rotary % 2:
            rule = f"must turn an even number of the head's {head_size:,} channels"
            raise InputError(key, factor, rule)
        return rotary

    @classmethod
    def turning(cls, architecture: Architecture) -> Rotary:
        """Tables of the channels that are turned."""
        return Rotary(ROTARY)

    def hidden(self, ids: Tensor) -> Tensor:
        """The last hidden states; embeddings, places, masks and tables are held to the end."""
        t = ids.tape
        embedded = self.begun(self.tokens, ids)
        positions = positions_of(t)
        masks = self.masks(t, embedded.dtype)
        x = self.begun(op.dropout, embedded)
        tables = self.rotary(t, positions, x.dtype)
        x = self.layers(x, Held(positions, tables, masks[False]))
        del embedded, positions  # held until here
        return self.ended(self.norm, x)


@dataclass(eq=False)
class NeoXBlock(Block):
    """Attention and feed-forward layer with a norm each, on the same input if `side_by_side`."""

    side_by_side: bool
    biased: bool

    def __post_init__(self) -> None:
        self.norm_1 = LayerNorm(HIDDEN)
        self.norm_2 = LayerNorm(HIDDEN)
        self.attention = PartialAttention(HIDDEN, ALIKE, self.biased, self.biased, fused=True)
        self.feed_forward = FeedForward(HIDDEN, FEED, NAMES, op.gelu, dropped=False)

    def __call__(self, x: Tensor, held: Held) -> Tensor:
        """The residual stream after the layer; the probabilities are held until its end."""
        attended, _probabilities = self.attention(self.norm_1(x), held)
        attended = op.dropout(attended)
        if not self.side_by_side:
            attended = op.add(attended, x)
        forwarded = self.feed_forward(self.norm_2(x if self.side_by_side else attended))
        forwarded = op.dropout(forwarded)
        total = op.add(forwarded, attended)
        return op.add(total, x) if self.side_by_side else total


@dataclass(eq=False)
class GPTNeoX(PartialDecoder):
    """GPT-NeoX, whose output layer has weights of its own by default."""

    names_inside = ("gpt_neox", "embed_in", "layers", "final_layer_norm")
    once = ("emb_dropout",)
    turned = ("rotary_pct", 0.25)
    dropouts = ("hidden_dropout", "attention_dropout")
    side_by_side = "use_parallel_residual"

    @classmethod
    def block(cls, architecture: Architecture, kind: str) -> Block:
        """One layer."""
        return NeoXBlock(cls.is_side_by_side(architecture), architecture.has("attention_bias"))


@dataclass(eq=False)
class PhiBlock(Block):
    """Attention and feed-forward layer side by side after one norm."""

    def __post_init__(self) -> None:
        self.norm = LayerNorm(HIDDEN)
        self.attention = PartialAttention(HIDDEN, ALIKE, biased=True, output_biased=True)
        self.feed_forward = FeedForward(HIDDEN, FEED, ("fc1", "fc2"), op.gelu_new, dropped=False)

    def __call__(self, x: Tensor, held: Held) -> Tensor:
        """The residual stream after the layer; the probabilities are held until its end."""
        normed = self.norm(x)
        attended, _probabilities = self.attention(normed, held)
        attended = op.dropout(attended)
        forwarded = op.dropout(self.feed_forward(normed))
        return op.add(op.add(attended, forwarded), x)


@dataclass(eq=False)
class Phi(PartialDecoder):
    """Phi, whose output layer has a bias."""

    names_inside = ("model", "embed_tokens", "layers", "final_layernorm")
    once = ("embed_dropout",)
    turned = ("partial_rotary_factor", 0.5)
    dropouts = ("resid_pdrop", "embd_pdrop", "attention_dropout")
    side_by_side = ALWAYS

    def __post_init__(self) -> None:
        super().__post_init__()
        self.head_bias = Parameter((self.tokens.rows,))

    @classmethod
    def more(cls, c: Configuration) -> Mapping[str, int]:
        """Nothing of its own; no head shares keys and values, and none is normed."""
        c.only("qk_layernorm", False)
        c.only("num_key_value_heads", c.size("num_attention_heads", 32))
        return {}

    @classmethod
    def block(cls, architecture: Architecture, kind: str) -> Block:
        """One layer."""
        return PhiBlock()


class StableLmAttention(PartialAttention):
    """Heads that may share keys and values."""

    output_name = "o_proj"


@dataclass(eq=False)
class StableLmBlock(Block):
    """Attention and a gated feed-forward layer, on the same input if `side_by_side`."""

    attention: Mixer
    side_by_side: bool

    def __post_init__(self) -> None:
        self.norm_1 = LayerNorm(HIDDEN)
        self.norm_2 = None if self.side_by_side else LayerNorm(HIDDEN)
        self.feed_forward = GatedFeedForward(HIDDEN, FEED)

    def __call__(self, x: Tensor, held: Held) -> Tensor:
        """The residual stream after the layer; what attention adds is held until its end."""
        normed = self.norm_1(x)
        attended, _probabilities = self.attention(normed, held)
        residual = op.add(x, attended)
        forwarded = self.feed_forward(normed if self.norm_2 is None else self.norm_2(residual))
        forwarded = op.dropout(forwarded)
        return op.add(residual, forwarded)

    def handed(self, shared: Shared) -> tuple[Held]:
        """The tables and the mask."""
        return (shared.of(False),)


@dataclass(eq=False)
class StableLm(Decoder):
    """StableLM: a quarter of each head is turned; norms with biases."""

    norm_class = LayerNorm
    attention_class = StableLmAttention
    turned_share = 0.25
    dropouts = ("attention_dropout", "hidden_dropout")
    biases = ("use_qkv_bias", "", "")
    side_by_side = "use_parallel_residual"

    @classmethod
    def block(cls, architecture: Architecture, kind: str) -> Block:
        """One layer."""
        return StableLmBlock(cls.attention(architecture, kind), cls.is_side_by_side(architecture))
