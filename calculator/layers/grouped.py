"""Causal self-attention whose heads may share keys and values, with rotary positions.

Source: transformers (models/llama/modeling_llama.py, integrations/sdpa_attention.py), torch
(aten/src/ATen/native/transformers/cuda/sdp_utils.cpp).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from calculator.autograd import operations as op
from calculator.autograd.dtypes import FLOAT32
from calculator.autograd.graph import Tensor
from calculator.autograd.mode import Attention, Mode
from calculator.autograd.sizes import ONE, Size, rounded_up
from calculator.layers.attention import (
    Attended,
    fused_core,
    joined,
    math_core,
    padded_flash,
    scores_of,
    selectively,
    weighted_sum,
)
from calculator.layers.basic import Linear
from calculator.layers.layer import Layer, Unary
from calculator.layers.ring import ring_attention
from calculator.layers.rotary import Tables, rotated

# a row of a mask must start at a multiple of this many elements for the efficient kernel
MASK_MULTIPLE = 8


@dataclass(frozen=True, slots=True)
class Heads:
    """Heads of queries, heads of keys and values (the same size where none is shared), width.

    Flash takes no `wide` heads, and transformers repeats the keys and values that they share.
    """

    queries: Size
    keys: Size
    width: Size
    wide: bool = False

    @property
    def are_grouped(self) -> bool:
        """True if heads share keys and values."""
        return self.keys is not self.queries


@dataclass(frozen=True, slots=True)
class Held:
    """Inputs of a layer: positions, rotary tables, and its mask.

    A checkpointed layer keeps the places too, which its code does not use, where it is handed them.
    """

    positions: Tensor | None
    tables: Tables
    mask: Tensor | None


@dataclass(frozen=True, slots=True)
class Shared:
    """Tensors that layers share: positions, and rotary tables and masks with and without window."""

    positions: Tensor | None
    tables: Mapping[bool, Tables]
    masks: Mapping[bool, Tensor | None]

    def of(self, local: bool) -> Held:
        """The inputs of a layer with or without a window; FSDP narrows what a layer is given."""
        tables = self.tables[local]
        mode = tables[0].tape.mode
        if mode.narrows_shards:
            tables = op.cast(tables[0], mode.weights), op.cast(tables[1], mode.weights)
        return Held(self.positions, tables, self.masks[local])


class Mixer(Layer, ABC):
    """The part of a layer that mixes tokens; a `local` one looks back no further than a window."""

    local: bool

    @abstractmethod
    def __call__(self, x: Tensor, held: Held) -> Attended:
        """(batch, length, hidden) -> the same and, in eager code, the probabilities."""

    def handed(self, shared: Shared) -> Held:
        """The part that it needs of the tensors that all layers share."""
        return shared.of(self.local)


@dataclass(eq=False)
class GroupedAttention(Mixer):
    """Projections, rotary positions, the core, and the output's projection.

    Attributes:
        hidden: the width of the stream.
        heads: of queries, and of keys and values.
        biased: whether the projections of queries, keys and values have biases.
        output_biased: whether the output's has.
        local: whether it looks back no further than a window.
        query_norm: of each head's queries, or none.
        key_norm: of each head's keys.
        turned_part: how much of a head is turned, where that is not the whole.
        side_by_side: whether turned heads are whole tensors of their own, head after head.
        output_name: the module's name of the output's projection.
    """

    hidden: Size
    heads: Heads
    biased: bool = False
    output_biased: bool = False
    local: bool = False
    query_norm: Unary | None = None
    key_norm: Unary | None = None
    turned_part: Size | None = None

    side_by_side: ClassVar[bool] = False
    output_name: ClassVar[str] = "o_proj"
    caps: ClassVar[tuple[Callable[[Tensor], Tensor], ...]] = ()  # of a soft cap of the scores

    def __post_init__(self) -> None:
        queries, keys, width = self.heads.queries, self.heads.keys, self.heads.width
        self.query = Linear(self.hidden, queries * width, self.biased, name="q_proj")
        self.key = Linear(self.hidden, keys * width, self.biased, name="k_proj")
        self.value = Linear(self.hidden, keys * width, self.biased, name="v_proj")
        self.output = Linear(
            queries * width, self.hidden, self.output_biased, name=self.output_name
        )

    def __call__(self, x: Tensor, held: Held) -> Attended:
        """The weighted sum and, in eager code, the probabilities."""
        q, k, v = self.projected(x, held)
        q, k = self.turned(q, k, held)
        return self.attended(q, k, v, held)

    def attended(self, q: Tensor, k: Tensor, v: Tensor, held: Held) -> Attended:
        """The same of heads at their places, which are held until it returns."""
        out, probabilities = selectively(partial(self.core, held=self.kept(held)), q, k, v)
        return self.finished(joined(out)), probabilities

    def finished(self, x: Tensor) -> Tensor:
        """The output's projection of all heads side by side."""
        return self.output(x)

    def kept(self, held: Held) -> Held:
        """The part held until the core is computed again; others turn heads by these tables."""
        return held

    def projected(self, x: Tensor, held: Held) -> tuple[Tensor, Tensor, Tensor]:
        """Heads of queries, keys and values."""
        queries, keys = self.heads.queries, self.heads.keys
        q = self.heads_of(self.query(x), queries, self.query_norm)
        k = self.heads_of(self.key(x), keys, self.key_norm)
        v = self.heads_of(self.value(x), keys, copied=self.copies(x.tape.mode, held.mask))
        return q, k, v

    def copies(self, mode: Mode, mask: Tensor | None) -> bool:
        """True if the values' gradient has a different layout than a fused kernel's has."""
        return (
            mode.context > 1
            or self.repeats(mask)
            or self.kernel(mode, mask) in (Attention.EAGER, Attention.MATH)
        )

    def repeats(self, mask: Tensor | None) -> bool:
        """True if keys and values are repeated for each head, as fused kernels do not do it.

        Source: transformers (integrations/sdpa_attention.py, use_gqa_in_sdpa)
        """
        return self.heads.are_grouped and (mask is not None or self.heads.wide)

    def turned(self, q: Tensor, k: Tensor, held: Held) -> tuple[Tensor, Tensor]:
        """Queries and keys at their places."""
        part = self.turned_part
        return rotated(q, held.tables, part), rotated(k, held.tables, part)

    def heads_of(
        self, x: Tensor, heads: Size, norm: Unary | None = None, copied: bool = True
    ) -> Tensor:
        """(batch, length, heads * width) -> (batch, heads, length, width), normed if asked."""
        regrouped = op.regrouped if copied and heads is not ONE else op.view
        x = regrouped(x, *x.shape[:-1], heads, self.heads.width)
        return op.transpose(x if norm is None else norm(x), 1, 2)

    def kernel(self, mode: Mode, mask: Tensor | None) -> Attention:
        """The kernel of the plan, or the one that PyTorch picks."""
        grouped = self.heads.are_grouped and not self.repeats(mask)
        return mode.kernel(mask is not None, grouped, self.heads.wide)

    def core(self, q: Tensor, k: Tensor, v: Tensor, held: Held) -> Attended:
        """Attention in the kernel of the plan, or in the one that PyTorch picks."""
        mask = held.mask
        kernel = self.kernel(q.tape.mode, mask)
        if kernel is Attention.EAGER:
            return self.eager(q, k, v, mask)
        shared, repeats = self.heads.are_grouped, self.repeats(mask)
        if repeats:
            k, v = self.repeated(k, q), self.repeated(v, q)
        narrow_q, narrow_k, narrow_v = (q.tape.lower(x) for x in (q, k, v))
        added = None if mask is None else additive(mask, narrow_q)
        if q.tape.mode.context > 1:
            return ring_attention(narrow_q, narrow_k, narrow_v), None
        whole = self.side_by_side and not repeats  # the kernel repeats keys itself
        if kernel is Attention.MATH:
            if added is None:
                added = q.tape.empty((q.shape[2], q.shape[2]), FLOAT32)
            grouped, seen = shared and not repeats, repeats and self.heads.keys is ONE
            return math_core(narrow_q, narrow_k, narrow_v, added, whole, grouped, repeats, seen)
        if kernel is Attention.FLASH and self.side_by_side:
            return head_by_head(narrow_q, narrow_k, narrow_v), None
        if added is not None and (keys := k.shape[2]) not in q.tape.mode.aligned:
            unpadded = added
            added = op.pad(unpadded, *unpadded.shape[:-1], rounded_up(keys, MASK_MULTIPLE))
            del unpadded  # dies here
        if kernel is Attention.EFFICIENT:
            rows = rounded_up(q.shape[2], 32)
            return op.efficient_attention(narrow_q, narrow_k, narrow_v, rows, added), None
        return fused_core(narrow_q, narrow_k, narrow_v), None

    def eager(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Attended:
        """Scores, mask, softmax in 32 bits and weighted sum in plain operations."""
        grouped = self.heads.are_grouped
        if grouped:
            k, v = self.repeated(k, q), self.repeated(v, q)
        # one head for all is copied by the cast of autocast, or by the product
        repeated = grouped and self.heads.keys is not ONE
        cast = grouped and q.tape.autocast is not None
        alone = grouped and not (repeated or cast)
        scores = scores_of(q, k, self.side_by_side and not alone, repeated or cast)
        scores = op.scale(scores)
        for step in self.caps:
            scores = step(scores)
        if mask is not None:
            scores = op.add(scores, mask)
        probabilities = op.softmax(scores, FLOAT32)
        scores = op.cast(probabilities, q.dtype)
        del probabilities
        scores = op.dropout(scores)
        out = op.copy(weighted_sum(scores, v, repeated))
        del k, v  # held until here
        return out, scores

    def repeated(self, x: Tensor, q: Tensor) -> Tensor:
        """Keys or values for every head that shares them; a single head is seen, not copied."""
        return op.expand(x, *q.shape) if self.heads.keys is ONE else op.repeated(x, *q.shape)


def head_by_head(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Flash of queries that lie head by head: so does its output, whose tokens are then joined."""
    q, k, v = (q.tape.lower(x) for x in (q, k, v))
    if q.tape.mode.padded_heads:
        return padded_flash(q, k, v)
    return op.copy(op.flash_attention(q, k, v, copied=1))


def additive(mask: Tensor, q: Tensor) -> Tensor:
    """Zeros where a mask is true, else minus infinity, in the queries' format, for each sequence.

    Source: torch (aten/src/ATen/native/transformers/attention.cpp, convert_boolean_attn_mask)
    """
    return q.tape.empty((q.shape[0], *mask.shape[1:]), q.dtype)
