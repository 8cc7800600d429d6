"""Gemma 4's text models (transformers' Gemma4ForCausalLM).

Source: transformers (models/gemma4/modeling_gemma4.py).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from calculator.architecture import Architecture
from calculator.autograd import operations as op
from calculator.autograd import selection as pick
from calculator.autograd.dtypes import FLOAT32, DType
from calculator.autograd.graph import Parameter, Recorder, Tensor
from calculator.autograd.mode import SEQUENCE, Attention
from calculator.autograd.sizes import ONE, Size, constant, size
from calculator.configuration import LONGEST_SEQUENCE, Configuration
from calculator.errors import InputError
from calculator.layers.basic import Embedding, Linear, RMSNorm
from calculator.layers.experts import Experts, Routed, Router
from calculator.layers.feed_forward import Activation, GatedFeedForward
from calculator.layers.grouped import GroupedAttention, Held, Shared
from calculator.layers.layer import Buffer, Layer
from calculator.layers.rotary import Rotary, Tables, positions_of, rotated
from calculator.layers.stack import Block
from calculator.models.decoder import FEED, FULL, HEAD, HIDDEN, ROPE, SLIDING, heads_of, in_turn
from calculator.models.gemma import Gemma2
from calculator.models.keys import declared, own_numbers, read_size
from calculator.models.model import KERNELS
from calculator.models.sparse import CHOICE, INNER, SparseDecoder, check_rows, experts_of

LAYERS, EACH = size("layers"), size("per_layer_size")
GLOBAL_HEAD = size("global_head_size")
# what a layer does with keys and values, after the kind of its attention
STORED, REUSED = " that stores", " that reuses"
MULTIPLE = 8


def normed(x: Tensor) -> Tensor:
    """x times (mean(x^2) + eps)^(-1/2), by a power, in 32 bits."""
    wide = op.cast(x, FLOAT32)
    variance = op.shift(op.mean_of_rows(op.power(wide)))
    out = op.multiply(wide, op.power(variance))
    del variance  # held until here
    return out


@dataclass(eq=False)
class PowerNorm(RMSNorm):
    """The same times a weight, in 32 bits too."""

    def __call__(self, x: Tensor) -> Tensor:
        """(..., width) -> (..., width)."""
        wide = normed(x)
        factor = op.cast(x.tape.weight(self.weight), FLOAT32)
        return op.cast(op.multiply(wide, factor), x.dtype)


@dataclass(frozen=True, slots=True)
class Given(Held):
    """Inputs of a layer: also its own inputs, and keys and values that layers share."""

    own: Tensor | None
    kept: dict[bool, tuple[Tensor, Tensor]]


@dataclass(frozen=True, slots=True)
class Together(Shared):
    """Tensors that all layers share: also the inputs of each, and keys and values by kind."""

    inputs: Tensor | None
    kept: dict[bool, tuple[Tensor, Tensor]]

    def of(self, local: bool) -> Given:
        """Inputs of a layer with or without a window: a slice of the inputs is its own."""
        x = self.inputs
        own = None if x is None else op.part(x, *x.shape[:2], x.shape[3])
        return Given(self.positions, self.tables[local], self.masks[local], own, self.kept)


@dataclass(eq=False)
class SharedAttention(GroupedAttention):
    """Normed heads, turned before they are transposed; keys and values may be another layer's.

    Attributes:
        alike: whether values are the keys before their norm.
        stores: whether later layers use its keys and values.
        reuses: whether it uses those of an earlier one.
    """

    alike: bool = False
    stores: bool = False
    reuses: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self.queries = PowerNorm(self.heads.width)
        self.keys = None if self.reuses else PowerNorm(self.heads.width)
        if self.reuses:
            del self.key
        if self.reuses or self.alike:
            del self.value

    def projected(self, x: Tensor, held: Held) -> tuple[Tensor, Tensor, Tensor]:
        """Heads of queries, keys and values at their places."""
        assert isinstance(held, Given)
        q = self.at_places(self.queries(self.apart(self.query(x), self.heads.queries)), held)
        if self.reuses:
            return (q, *held.kept[self.local])
        key = self.apart(self.key(x), self.heads.keys)
        value = key if self.alike else self.apart(self.value(x), self.heads.keys)
        assert self.keys is not None
        key = self.keys(key)
        k = self.at_places(key, held)
        del key  # dies here
        v = op.transpose(op.cast(normed(value), value.dtype), 1, 2)
        if self.stores:
            held.kept[self.local] = k, v
        return q, k, v

    def apart(self, x: Tensor, heads: Size) -> Tensor:
        """(batch, length, heads * width) -> (batch, length, heads, width)."""
        return op.regrouped(x, *x.shape[:-1], heads, self.heads.width)

    def at_places(self, x: Tensor, held: Held) -> Tensor:
        """(batch, length, heads, width) -> (batch, heads, length, width), turned."""
        shape = (ONE, SEQUENCE, ONE, self.heads.width)
        cosines, sines = (op.view(table, *shape) for table in held.tables)
        return op.transpose(rotated(x, (cosines, sines)), 1, 2)

    def turned(self, q: Tensor, k: Tensor, held: Held) -> tuple[Tensor, Tensor]:
        """Both are at their places."""
        return q, k


@dataclass(eq=False)
class NormedRouter(Router):
    """Scores of normed tokens; each expert scales its shares."""

    def __post_init__(self) -> None:
        self.product = Linear(self.hidden, self.choice.experts, biased=False, name="proj")
        self.scale = Parameter((self.hidden,))
        self.each = Parameter((self.choice.experts,))

    def __call__(self, x: Tensor) -> Routed:
        """(batch, length, hidden) -> (..., experts), (..., chosen), (..., chosen)."""
        weight = x.tape.weight
        x = op.cast(normed(x), x.dtype)
        x = op.scale(op.multiply(x, weight(self.scale)))
        scores = self.product(x)
        probabilities = op.softmax(scores, FLOAT32)
        shares, chosen = pick.largest(probabilities, self.choice.chosen)
        shares = pick.divide(shares, pick.sum_of_rows(shares))
        each = pick.rows_at(weight(self.each), chosen, *chosen.shape)
        shares = op.multiply(shares, each)
        del x, scores  # held until here
        return probabilities, shares, chosen


@dataclass(eq=False)
class GeluExperts(Experts):
    """Experts gated by GELU."""

    def gated(self, x: Tensor) -> Tensor:
        """gelu(gate) * up of both, side by side in one tensor."""
        gate, up = op.split(x, self.inner, self.inner)
        return op.multiply(op.gelu(gate), up)


@dataclass(eq=False)
class SideExperts(Layer):
    """Experts of what the feed-forward layer reads, added to what it returns; norms around all."""

    def __post_init__(self) -> None:
        self.router = NormedRouter(HIDDEN, CHOICE)
        self.experts = GeluExperts(HIDDEN, INNER, CHOICE)
        self.dense_norm, self.before, self.after = (PowerNorm(HIDDEN) for _ in range(3))

    def __call__(self, residual: Tensor, dense: Tensor, held: list[Tensor | None]) -> list[Tensor]:
        """The sum, and what is held beside it; what attention has `held` dies once tokens go."""
        first = self.dense_norm(dense)
        logits, shares, chosen = self.router(residual)
        held.clear()
        second = self.before(residual)
        second = self.experts(second, shares, chosen)
        second = self.after(second)
        return [op.add(first, second), first, second, logits, shares, chosen]


@dataclass(eq=False)
class Gemma4Block(Block):
    """Norms on both sides of both branches; perhaps experts beside, and inputs of its own."""

    attention: SharedAttention
    feed_forward: GatedFeedForward
    beside: SideExperts | None
    has_inputs: bool

    def __post_init__(self) -> None:
        self.norms = tuple(PowerNorm(HIDDEN) for _ in range(4))
        self.scalar = Buffer((ONE,), None)
        if self.has_inputs:
            self.gate = Linear(HIDDEN, EACH, biased=False, name="per_layer_input_gate")
            self.projection = Linear(EACH, HIDDEN, biased=False, name="per_layer_projection")
            self.last_norm = PowerNorm(HIDDEN)

    def __call__(self, x: Tensor, held: Given) -> Tensor:
        """The residual stream after the layer; the probabilities are held until experts are."""
        residual = x
        x = self.norms[0](x)
        x, *probabilities = self.attention(x, held)
        x = self.norms[1](x)
        x = op.add(residual, x)
        residual = x
        x = self.norms[2](x)
        x = self.feed_forward(x)
        if self.beside is not None:
            x, *_others = self.beside(residual, x, probabilities)  # held until the end
        x = self.norms[3](x)
        x = op.add(residual, x)
        if held.own is not None:
            residual = x
            x = self.gate(x)
            x = op.gelu(x)
            x = op.multiply(x, held.own)
            x = self.projection(x)
            x = self.last_norm(x)
            x = op.add(residual, x)
        return scale_in_place(x)

    def recomputed(self, t: Recorder, held: Given) -> Callable[[Tensor], Tensor]:
        """Inputs of its own are kept or moved as the stream is: both are given by place."""
        own, rest = held.own, replace(held, own=None)
        if own is None:
            return super().recomputed(t, held)
        given = [own]
        return lambda x: t.checkpoint(
            lambda x, own: self(x, replace(rest, own=own)), x, given.pop()
        )

    def handed(self, shared: Together) -> tuple[Given]:
        """The tables, the mask and the inputs of its own alone."""
        return (shared.of(self.attention.local),)


def scale_in_place(x: Tensor) -> Tensor:
    """x times a table's number, which is kept, in x's own bytes; its gradient is new bytes."""
    out = x.tape.alias(x)
    kept = x.tape.empty((constant(0),), x.dtype)  # without bytes of its own
    out.node, out.index = x.tape.record([x], saves=[kept]), 0
    return out


@dataclass(eq=False)
class LayerInputs(Layer):
    """Inputs of every layer: a second embedding of the tokens, and a product with the first."""

    def __post_init__(self) -> None:
        self.tokens = Embedding(size("per_layer_vocabulary_size"), LAYERS * EACH)
        self.scale = Buffer((), FLOAT32)
        self.projection = Linear(
            HIDDEN, LAYERS * EACH, biased=False, name="per_layer_model_projection"
        )
        self.norm = PowerNorm(EACH)

    def __call__(self, ids: Tensor, embedded: Tensor) -> Tensor:
        """(batch, length) and (batch, length, hidden) -> (batch, length, layers, width)."""
        shape = (*ids.shape, LAYERS, EACH)
        tokens = op.view(op.scale(self.tokens(ids)), *shape)
        projected = op.view(op.scale(self.projection(embedded)), *shape)
        projected = self.norm(projected)
        return op.scale(op.add(projected, tokens))


@dataclass(eq=False)
class Gemma4(Gemma2):
    """Heads of two widths; layers with inputs of their own, shared keys and values, or experts."""

    global_rotary: Rotary | None = None
    layer_inputs: LayerInputs | None = None

    is_inner = True
    kernels = KERNELS
    norm_class = PowerNorm
    ropes = (*ROPE, "proportional")
    turns_part = True

    @classmethod
    def read(cls, c: Configuration, name: str) -> Architecture:
        """The architecture that a config.json describes, with a note on experts."""
        found, note = super().read(c, name), declared(SparseDecoder, "note")
        for key, value in (("head_dim", HEAD), ("global_head_dim", GLOBAL_HEAD)):
            width = found.numbers[str(value)]
            if width % MULTIPLE:
                raise InputError(key, width, f"must be a multiple of {MULTIPLE} to be counted")
        local = any(kind.startswith(SLIDING) for kind in found.pattern)
        more = (*found.more, ("local", int(local)))  # a stage of other layers has their tables too
        return replace(found, more=more, note=note if found.has("experts") else found.note)

    @classmethod
    def more(cls, c: Configuration) -> Mapping[str, int]:
        """The second width of heads, the layers' own inputs, and which parts a layer has."""
        c.text("use_bidirectional_attention", "vision", ["vision"])  # of pictures' tokens alone
        heads = read_size(c, cls, "heads")
        shared = read_size(c, cls, "key_value_heads")
        alike = c.flag("attention_k_eq_v", False)
        found = c.size("num_global_key_value_heads", shared)
        wide = found if alike else shared
        if heads % wide:
            raise InputError("num_global_key_value_heads", wide, f"must divide the {heads} heads")
        experts = {} if not c.flag("enable_moe_block", False) else cls._experts(c)
        c.ignore(*(key for key, _ in declared(cls, "experts")))
        return {
            "window": c.size("sliding_window", 512, most=LONGEST_SEQUENCE),
            "final": c.value("final_logit_softcapping") is not None,
            **own_numbers(cls, c),
            "global_key_value_heads": wide,
            "alike": alike,
            "per_layer_size": c.count("hidden_size_per_layer_input", 256),
            "doubled": c.flag("use_double_wide_mlp", False),
            **experts,
        }

    @classmethod
    def _experts(cls, c: Configuration) -> Mapping[str, int]:
        for key, _ in declared(cls, "experts"):
            if c.value(key) is None:
                raise InputError(key, None, "must be given where enable_moe_block is true")
        check_rows("hidden_size", read_size(c, cls, "hidden_size"))
        return experts_of(c, declared(cls, "experts"))

    @classmethod
    def pattern(cls, c: Configuration, layers: int) -> tuple[str, ...]:
        """Five layers with a window and one without; the last layers may reuse keys and values."""
        default = (SLIDING,) * 5 + (FULL,)
        turn = cls.layer_types(c, layers, default)
        kinds = [turn[place % len(turn)] for place in range(layers - 1)] + [FULL]
        reusing = c.count("num_kv_shared_layers", 0)
        first = max(0, layers - reusing)
        if reusing and {*kinds[:first]} != {*kinds}:
            rule = "must leave a layer of each kind that has keys and values of its own"
            raise InputError("num_kv_shared_layers", reusing, rule)
        for kind in {*kinds} if reusing else ():
            last = max(place for place in range(first) if kinds[place] == kind)
            kinds[last] += STORED
        return in_turn([*kinds[:first], *(kind + REUSED for kind in kinds[first:])])

    @classmethod
    def kernels_of(
        cls, architecture: Architecture, narrow: bool, length: int
    ) -> Sequence[Attention]:
        """Flash takes no wide heads, the efficient kernel no shared keys, which no mask repeats."""
        full, local = (cls.attention(architecture, kind).heads for kind in (FULL, SLIDING))
        unmasked = [full] if cls.windowed(architecture, length) else [full, local]
        refused = {
            Attention.FLASH: full.wide or local.wide or not narrow,
            Attention.EFFICIENT: any(heads.are_grouped and not heads.wide for heads in unmasked),
        }
        return [kernel for kernel in cls.kernels if not refused.get(kernel)]

    @classmethod
    def attention(cls, architecture: Architecture, kind: str) -> SharedAttention:
        """Heads of the width of their kind."""
        local = kind.startswith(SLIDING)
        biased = architecture.has("attention_bias")
        return SharedAttention(
            HIDDEN,
            heads_of(architecture, "" if local else "global_"),
            biased,
            biased,
            local,
            alike=architecture.has("alike") and not local,
            stores=kind.endswith(STORED),
            reuses=kind.endswith(REUSED),
        )

    @classmethod
    def block(cls, architecture: Architecture, kind: str) -> Gemma4Block:
        """One layer; those that reuse keys and values may have a wider feed-forward layer."""
        attention = cls.attention(architecture, kind)
        inner = 2 * FEED if architecture.has("doubled") and attention.reuses else FEED
        return Gemma4Block(
            attention,
            GatedFeedForward(HIDDEN, inner, Activation.GELU_TANH),
            SideExperts() if architecture.has("experts") else None,
            architecture.has("per_layer_size"),
        )

    @classmethod
    def turning(cls, architecture: Architecture) -> Rotary:
        """The tables of layers with a window, where the whole model has such."""
        return Rotary(HEAD, architecture.numbers["local"])

    @classmethod
    def parts_beside(cls, architecture: Architecture) -> Mapping[str, Any]:
        """Tables of the second width, and inputs of every layer."""
        return {
            **super().parts_beside(architecture),
            "global_rotary": Rotary(GLOBAL_HEAD),
            "layer_inputs": LayerInputs() if architecture.has("per_layer_size") else None,
        }

    @classmethod
    def reads_others(cls, stage: Architecture) -> str:
        """Inputs of layers are made of token ids; some layers read keys and values of others."""
        if stage.has("per_layer_size"):
            return "every layer has inputs made of token ids, which later stages do not have"
        stored, reused = (
            {kind.removesuffix(what) for kind in stage.pattern if kind.endswith(what)}
            for what in (STORED, REUSED)
        )
        return "" if reused <= stored else "layers reuse keys and values of another stage"

    def hidden(self, ids: Tensor) -> Tensor:
        """The last hidden states; embeddings, places, masks and tables are held to the end."""
        t = ids.tape
        embedded = self.begun(self.embedded, ids)
        inputs = None if self.layer_inputs is None else self.layer_inputs(ids, embedded)
        positions = positions_of(t)
        masks = self.masks(t, embedded.dtype)
        tables = self.tables(t, positions, embedded.dtype)
        shared = Together(positions, tables, masks, inputs, {})
        x = self.layers(embedded, shared)
        x = self.ended(self.norm, x)
        del embedded, positions, inputs, shared  # held until here
        return x

    def tables(self, t: Recorder, positions: Tensor, dtype: DType) -> Mapping[bool, Tables]:
        """A pair for each kind of layer."""
        assert self.global_rotary is not None
        made = (self.global_rotary, self.rotary)[: 1 + self.rotary.kinds]
        return {bool(local): each(t, positions, dtype) for local, each in enumerate(made)}
