"""Common parts of causal language models since Llama: rotary positions and grouped heads.

A type of its own says what its blocks are and which keys it reads beside the common ones.

Source: transformers (models/llama/modeling_llama.py, masking_utils.py).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

from calculator.architecture import Architecture
from calculator.autograd import operations as op
from calculator.autograd.dtypes import BOOL, FLOAT32, DType
from calculator.autograd.graph import Recorder, Tensor
from calculator.autograd.mode import SEQUENCE, Attention
from calculator.autograd.sizes import ONE, Size, size
from calculator.configuration import LONGEST_SEQUENCE, Configuration
from calculator.errors import InputError
from calculator.layers.basic import TOKENS, Embedding, LayerNorm, RMSNorm, WeightlessNorm
from calculator.layers.decoder import DecoderBlock
from calculator.layers.feed_forward import Activation, GatedFeedForward
from calculator.layers.grouped import GroupedAttention, Heads, Mixer, Shared
from calculator.layers.layer import Unary
from calculator.layers.rotary import Rotary, Tables, positions_of
from calculator.layers.stack import LONGEST_UNIT, Block, Stack
from calculator.models.keys import own_numbers, read_shape, read_size
from calculator.models.model import CausalModel, has_part, heads_fit
from calculator.parts import Phase

HIDDEN, HEAD, FEED = (size(name) for name in ("hidden_size", "head_size", "feed_forward_size"))
FULL, SLIDING = "full_attention", "sliding_attention"
# Source: torch (aten/src/ATen/native/transformers/cuda/sdp_utils.cpp, check_head_dim_size_flash)
WIDEST_FLASH = 256
# layers of several kinds of which no few stand in turn: each is recorded, and a second is enough
# for so many
MOST_IN_TURN = 128
# kinds of rotary positions that change the numbers of the tables alone
ROPE = ("default", "linear", "dynamic", "llama3", "yarn", "su")


@dataclass(eq=False)
class Decoder(CausalModel):
    """Token embeddings, rotary tables, blocks, norm, output layer.

    Attributes:
        dropouts: the keys of its dropouts.
        default_dropout: its default for them.
        ropes: the kinds of rotary positions that it has.
        turns_part: whether it reads which part of a head is turned.
        turned_share: which part of a head is turned by default; 0 for types that turn whole heads.
        both_masks: whether it makes masks with a window and without, whatever its layers are.
        whole_mask: whether it makes one without a window, whatever its layers are.
        turn: of how many layers the last has no window by default, and the others have one.
        norm_class: its norm.
        attention_class: its attention.
        rotary_class: its tables of rotary positions.
        wide_tables: whether these are in 32 bits whatever the stream is.
        tables_apart: whether layers with a window and without have tables of their own.
        stack_class: its stack of layers.
        activation: the function in its feed-forward layers.
        biases: the flags that give biases to queries, keys and values, to attention's output, and
            to feed-forward layers.
        normed_heads: the flag that gives each head's queries and keys a norm.
        norms_before: whether norms stand before attention and feed-forward layers.
        norms_after: whether norms stand after them.
        drops_branches: whether what they add passes a dropout.
    """

    tokens: Embedding
    rotary: Rotary
    layers: Stack[Any]
    norm: Unary
    tied: bool

    in_parts = False  # whether each of several GPUs has its part of the stream
    has_reversible_class = False
    whole_layers: ClassVar[str] = ""
    dropouts: ClassVar[tuple[str, ...]] = ("attention_dropout",)
    default_dropout: ClassVar[float] = 0.0
    ropes: ClassVar[tuple[str, ...]] = ROPE
    turns_part: ClassVar[bool] = False
    turned_share: ClassVar[float] = 0.0
    both_masks: ClassVar[bool] = False
    whole_mask: ClassVar[bool] = False
    turn: ClassVar[int] = 0
    norm_class: ClassVar[type[RMSNorm | LayerNorm | WeightlessNorm]] = RMSNorm
    attention_class: ClassVar[type[GroupedAttention]] = GroupedAttention
    rotary_class: ClassVar[type[Rotary]] = Rotary
    wide_tables: ClassVar[bool] = False
    tables_apart: ClassVar[bool] = False
    stack_class: ClassVar[type[Stack[Any]]] = Stack
    activation: ClassVar[Activation] = Activation.SILU
    biases: ClassVar[tuple[str, str, str]] = ("", "", "")
    normed_heads: ClassVar[str] = ""
    norms_before: ClassVar[bool] = True
    norms_after: ClassVar[bool] = False
    drops_branches: ClassVar[bool] = False

    def __post_init__(self) -> None:
        self.head = self.tokens if self.tied else Embedding(self.tokens.rows, HIDDEN)

    # -- from a config.json to layers ----------------------------------------------------------

    @classmethod
    def read(cls, c: Configuration, name: str) -> Architecture:
        """The architecture that a config.json describes."""
        found = read_shape(cls, c, name, partial(cls._head_size, c))
        cls._check_rope(c)
        more = {"key_value_heads": cls._key_value_heads(c, found.heads), **cls.more(c)}
        pattern = of_layers(cls.pattern(c, found.layers), found.layers)
        if cls.tables_apart:  # a stage of a pipeline with layers of one kind has those of all
            more["kinds"] = len(set(pattern))
        return replace(
            found,
            rotary_size=cls.rotary_size(c, found.head_size),
            dropout=cls._dropout(c),
            pattern=pattern,
            more=tuple(more.items()),
        )

    @classmethod
    def _check_rope(cls, c: Configuration) -> None:
        check_rope(c, cls.ropes, cls.turns_part or cls.turned_share > 0)

    @classmethod
    def _dropout(cls, c: Configuration) -> float:
        if not cls.has_dropout:
            return 0.0
        first, *others = cls.dropouts
        return c.dropout(first, cls.default_dropout, *others)

    @classmethod
    def more(cls, c: Configuration) -> Mapping[str, int]:
        """The numbers and flags that this type has beside the common ones."""
        window = {"window": cls.window_of(c)} if cls.turn else {}
        return {**window, **own_numbers(cls, c)}

    @classmethod
    def rotary_size(cls, c: Configuration, head_size: int) -> int:
        """The channels of a head that are turned: all, unless the type says otherwise."""
        return part_turned(c, head_size, cls.turned_share) if cls.turned_share else head_size

    @classmethod
    def pattern(cls, c: Configuration, layers: int) -> tuple[str, ...]:
        """The kinds of layers in turn, by their attention."""
        if not cls.turn:
            return (FULL,)
        return cls.windows_in_turn(c, layers, c.size("sliding_window_pattern", cls.turn))

    @classmethod
    def windows_in_turn(cls, c: Configuration, layers: int, turn: int) -> tuple[str, ...]:
        """Layers with a window, and the last of each turn without, unless they are listed."""
        default = (SLIDING,) * min(turn - 1, layers) + (FULL,) * (turn <= layers)
        return cls.layer_types(c, layers, default)

    @staticmethod
    def window_of(c: Configuration) -> int:
        """The window; 0 for none, as null says."""
        absent = c.has_null("sliding_window")
        return 0 if absent else c.size("sliding_window", 4096, most=LONGEST_SEQUENCE)

    @staticmethod
    def layer_types(c: Configuration, layers: int, default: tuple[str, ...]) -> tuple[str, ...]:
        """The kinds that a configuration lists for its layers, in as few as stand in turn."""
        found = c.value("layer_types")
        if found is None:
            return default
        if not isinstance(found, list) or len(found) != layers:
            raise InputError("layer_types", found, f"must name the kind of each of {layers} layers")
        for kind in found:
            if kind not in (FULL, SLIDING):
                raise InputError("layer_types", kind, f"must be {FULL} or {SLIDING}")
        return in_turn(found)

    @classmethod
    def _key_value_heads(cls, c: Configuration, heads: int) -> int:
        shared = read_size(c, cls, "key_value_heads", default=heads)
        if heads % shared:
            rule = f"must divide the {heads} heads"
            raise InputError("num_key_value_heads", shared, rule)
        return shared

    @classmethod
    def _head_size(cls, c: Configuration, hidden: int, heads: int) -> int:
        found = read_size(c, cls, "head_dim", default=max(1, hidden // heads))
        if found % 2:
            raise InputError("head_dim", found, "must be even: rotary positions turn pairs")
        return found

    @classmethod
    def build(cls, architecture: Architecture, tied: bool) -> "Decoder":
        """The tree for an architecture."""
        kinds = tuple(cls.block(architecture, kind) for kind in architecture.pattern or (FULL,))
        return cls(
            Embedding(size("vocabulary_size"), HIDDEN, reads_input=True),
            cls.turning(architecture),
            cls.stack_class(kinds, architecture.layers),
            cls.norm_class(HIDDEN),
            tied,
            **cls.parts_beside(architecture),
        )

    @classmethod
    def parts_beside(cls, architecture: Architecture) -> Mapping[str, Any]:
        """Values of the fields that this type has beside the common ones."""
        return {}

    @classmethod
    def block(cls, architecture: Architecture, kind: str) -> Block:
        """One layer of a kind: attention and what stands inside it, with their norms."""
        before, after = (
            (cls.norm_class(HIDDEN), cls.norm_class(HIDDEN)) if has_norms else None
            for has_norms in (cls.norms_before, cls.norms_after)
        )
        attention, inside = cls.attention(architecture, kind), cls.inside(architecture, kind)
        scaled, dropped = cls.has_multipliers, cls.drops_branches
        return DecoderBlock(attention, inside, before, after, scaled, dropped)

    @classmethod
    def attention(cls, architecture: Architecture, kind: str) -> Mixer:
        """The attention of a layer of a kind."""
        heads = heads_of(architecture)
        normed = has_part(architecture, cls.normed_heads)
        query_norm, key_norm = (cls.norm_class(heads.width) if normed else None for _ in range(2))
        qkv_biased, output_biased, _ = (has_part(architecture, flag) for flag in cls.biases)
        return cls.attention_of(architecture, kind)(
            HIDDEN,
            heads,
            qkv_biased,
            output_biased,
            kind == SLIDING,
            query_norm,
            key_norm,
            turned_of(architecture),
        )

    @classmethod
    def attention_of(cls, architecture: Architecture, kind: str) -> type[GroupedAttention]:
        """The class of a layer's attention."""
        return cls.attention_class

    @classmethod
    def inside(cls, architecture: Architecture, kind: str) -> Unary:
        """The feed-forward layer of a kind of layer, or what stands in its place."""
        return cls.feed_forward(architecture)

    @classmethod
    def feed_forward(cls, architecture: Architecture) -> Unary:
        """The feed-forward layer."""
        biased = has_part(architecture, cls.biases[2])
        return GatedFeedForward(HIDDEN, FEED, cls.activation, biased)

    @classmethod
    def turning(cls, architecture: Architecture) -> Rotary:
        """The tables of rotary positions."""
        turned = turned_of(architecture) or HEAD
        if cls.tables_apart:
            return Rotary(turned, architecture.numbers["kinds"])
        return cls.rotary_class(turned)

    @classmethod
    def kernels_of(
        cls, architecture: Architecture, narrow: bool, length: int
    ) -> Sequence[Attention]:
        """The kernels that run: the efficient one takes no shared keys, which no mask repeats."""
        unmasked = FULL in architecture.pattern or not cls.windowed(architecture, length)
        heads = heads_of(architecture)
        refused = {
            Attention.FLASH: heads.wide or not narrow,
            Attention.EFFICIENT: not heads_fit(architecture, narrow)
            or (unmasked and heads.are_grouped and not heads.wide),
        }
        return [kernel for kernel in cls.kernels if not refused.get(kernel)]

    @classmethod
    def windowed(cls, architecture: Architecture, length: int) -> bool:
        """True if the sequence is long enough that a window masks more than the future."""
        local = any(kind.startswith(SLIDING) for kind in architecture.pattern)
        return local and 0 < architecture.numbers.get("window", 0) <= length

    @classmethod
    def masks_window(cls, architecture: Architecture, length: int) -> bool:
        """The same, or a class that makes both masks."""
        beyond = 0 < architecture.numbers.get("window", 0) <= length
        return beyond and (cls.both_masks or cls.windowed(architecture, length))

    # -- a step ----------------------------------------------------------------------------------

    def embedded(self, ids: Tensor) -> Tensor:
        """The stream before the first layer, or this GPU's part of it."""
        rows = self.tokens(ids)
        if not self.in_parts:
            return rows
        with ids.tape.setting(apart=True):
            return op.own_part(rows, TOKENS)

    def received(self, hidden: Tensor) -> Tensor:
        """The stream that a stage gets from the one before it, as its first layer does."""
        return hidden

    def entered(self, embedded: Tensor) -> Tensor:
        """The embeddings as the first layer takes them."""
        return embedded

    def hidden(self, ids: Tensor) -> Tensor:
        """The last hidden states; embeddings, places, masks and tables are held to the end."""
        t = ids.tape
        embedded = self.embedded(ids) if self.is_first else self.received(ids)
        positions = positions_of(t)
        masks = self.masks(t, embedded.dtype)
        tables = self.tables(t, positions, embedded.dtype)
        x = self.layers(self.entered(embedded), Shared(positions, tables, masks))
        if self.is_last:
            with t.setting(apart=self.in_parts):
                x = self.norm(x)
        del embedded, positions  # held until here
        return x

    def gathered(self, hidden: Tensor) -> Tensor:
        """The hidden states of all tokens."""
        return op.gathered(hidden, SEQUENCE, sums=False) if self.in_parts else hidden

    def scored(self, hidden: Tensor) -> Tensor:
        """Hidden states of all tokens, multiplied as the logits would be."""
        given = self.gathered(hidden)
        return op.scale(given) if self.scales_logits else given

    def logits(self, hidden: Tensor) -> Tensor:
        """The output layer's product, of all tokens; what scales it belongs to the loss."""
        with hidden.tape.in_layer("head", 0):
            given = self.gathered(hidden)
            logits = self.product(given)
            del given
        if not self.scales_logits:
            return logits
        hidden.tape.ledger.begin(Phase.LOSS)
        return op.scale(logits)

    def masks(self, t: Recorder, dtype: DType) -> Mapping[bool, Tensor | None]:
        """The masks of layers with a window and without, where the class makes one."""
        windows = {kind.attention.local for kind in self.layers.kinds}
        windows |= {False, True} if self.both_masks else set()
        windows |= {False} if self.whole_mask else set()
        eager = t.mode.attention is Attention.EAGER or Attention.EFFICIENT not in self.kernels
        return {local: _mask(t, dtype, local, eager) for local in sorted(windows)}

    def tables(self, t: Recorder, positions: Tensor, dtype: DType) -> Mapping[bool, Tables]:
        """The rotary tables of layers without a window and with one."""
        if self.wide_tables:
            dtype = FLOAT32
        if not self.tables_apart:
            return dict.fromkeys((False, True), self.rotary(t, positions, dtype))
        kinds = sorted({kind.attention.local for kind in self.layers.kinds})
        return {local: self.rotary(t, positions, dtype) for local in kinds}


def in_turn(kinds: Sequence[str]) -> tuple[str, ...]:
    """The fewest kinds that, taken in turn, are all of these layers.

    Raises:
        InputError: for more layers than can be recorded, of which no few stand in turn.
    """
    kinds = tuple(kinds)
    few = len(kinds) <= MOST_IN_TURN
    for turn in range(1, (len(kinds) if few else LONGEST_UNIT) + 1):
        if kinds[turn:] == kinds[:-turn]:
            return kinds[:turn]
    raise _too_many(len(kinds))


def of_layers(kinds: tuple[str, ...], layers: int) -> tuple[str, ...]:
    """Kinds that so many layers have in turn.

    Raises:
        InputError: for more layers than can be recorded, whose turn is too long to be found.
    """
    if layers <= MOST_IN_TURN or len(kinds) <= LONGEST_UNIT:
        return kinds
    if len(kinds) < layers:
        raise _too_many(layers)
    return in_turn(kinds)


def _too_many(layers: int) -> InputError:
    rule = f"must be at most {MOST_IN_TURN} where no {LONGEST_UNIT} or fewer kinds stand in turn"
    return InputError("layers", layers, rule)


def _mask(t: Recorder, dtype: DType, local: bool, eager: bool) -> Tensor | None:
    if eager:
        return t.empty((t.mode.batch, ONE, SEQUENCE, SEQUENCE), dtype)
    if local and t.mode.windowed:
        return t.empty((ONE, ONE, SEQUENCE, SEQUENCE), BOOL)
    return None


def heads_of(architecture: Architecture, prefix: str = "") -> Heads:
    """Heads of queries and of keys and values; a second kind of them has names with a prefix."""
    shared, width = prefix + "key_value_heads", prefix + "head_size"
    few = architecture.numbers[shared]
    heads = size("heads")
    keys = heads if few == architecture.heads else ONE if few == 1 else size(shared)
    return Heads(heads, keys, size(width), architecture.numbers[width] > WIDEST_FLASH)


@dataclass(eq=False)
class PartlyTurnedAttention(GroupedAttention):
    """Heads that are put together again after a part of each is turned."""

    side_by_side = True


def part_turned(c: Configuration, head_size: int, share: float) -> int:
    """The channels of a head that are turned, of types that turn such a share by default."""
    inside, beside = c.value("rope_parameters") or {}, c.value("partial_rotary_factor")
    share = inside.get("partial_rotary_factor") or beside or share
    turned = int(head_size * share) if type(share) in (int, float) and 0 < share <= 1 else 0
    if turned < 2 or turned % 2:
        rule = f"must turn an even number of the head's {head_size:,} channels"
        raise InputError("partial_rotary_factor", share, rule)
    return turned


def turned_of(architecture: Architecture) -> Size | None:
    """The part of a head that is turned, or none where that is the whole."""
    is_part = 0 < architecture.rotary_size < architecture.head_size
    return size("rotary_size") if is_part else None


def check_rope(c: Configuration, counted: tuple[str, ...] = ROPE, turns_part: bool = False) -> None:
    """Refuse rotary positions that would make tables of another size than those counted."""
    c.ignore("rope_theta")
    for key in ("rope_parameters", "rope_scaling"):
        values = c.value(key)
        if values is None:
            continue
        if not isinstance(values, dict):
            raise InputError(key, values, "must be an object")
        if {FULL, SLIDING} & values.keys():  # one for each kind of layer
            for kind in values.values():
                check_rope(Configuration({"rope_parameters": kind}), counted, turns_part)
            continue
        kind = rope_of(values)
        if kind not in counted:
            raise InputError(key, kind, f"rope_type must be one of: {', '.join(counted)}")
        if not turns_part and values.get("partial_rotary_factor") not in (None, 1.0):
            rule = "must be 1: whole heads are turned"
            raise InputError("partial_rotary_factor", values["partial_rotary_factor"], rule)


def rope_of(values: Mapping[str, Any]) -> str:
    """The kind of rotary positions that an object of a config.json asks for."""
    return str(values.get("rope_type") or values.get("type") or "default")
