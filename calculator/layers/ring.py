"""Attention of queries to the keys and values of all GPUs among which a sequence is divided.

Each GPU has two chunks of a sequence of which there are 2 N: its i-th from the front and its i-th
from the end. Keys and values come from one GPU after another. The second GPU's turn is counted, of
two the first's: it has both a turn in which all of its queries see half of what came, and turns in
which half of its queries see all. After each turn the outputs so far are merged with the turn's in
32 bits. In the backward pass the gradients of keys and values go round with them, in 32 bits.

Source: context_parallel, torch (distributed/tensor/experimental/_context_parallel/_attention.py,
_templated_ring_attention, _templated_ring_attention_backward)
"""

from dataclasses import dataclass
from functools import partial
from typing import Final

from calculator.autograd import operations as op
from calculator.autograd.dtypes import FLOAT32, INT64, DType
from calculator.autograd.graph import Gradients, Made, Recorder, Tensor
from calculator.autograd.ledger import CONTEXT_ALL_GATHER, CONTEXT_ALL_TO_ALL
from calculator.autograd.mode import Costly
from calculator.autograd.scratch import flash_width
from calculator.autograd.sizes import (
    ONE,
    Shape,
    constant,
    divided,
    elements_of,
    rounded_up,
)

PAIR: Final = constant(2)
RANDOM: Final = (Made((PAIR,), INT64), Made((), INT64))


def place_of(gpus: int) -> int:
    """The GPU that holds the most, counted from 0.

    >>> [place_of(gpus) for gpus in (2, 3, 64)]
    [0, 1, 1]
    """
    return min(1, gpus - 2)


def ring_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Flash in turns, and a copy of the output in the order of the tokens.

    Heads of other widths than multiples of 8 are padded before the first turn.
    """
    return op.copy(_trimmed(q, k, v) if q.tape.mode.padded_heads else _attended(q, k, v))


def _trimmed(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    wide = rounded_up(q.shape[3], 8)
    out = _attended(*(op.pad(x, *x.shape[:3], wide) for x in (q, k, v)))
    return op.part(out, *q.shape)


def _attended(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    t = q.tape
    merger: _Merger | None = None
    last: list[Tensor] = []
    if not t.has_results:  # a checkpoint that keeps results has those of all turns
        merger, last = _turns(q, k, v)
        merger.rows = None  # they are kept beside the output
    out = t.operation(
        [q, k, v],
        q.shape,
        q.dtype,
        saves=[q, k, v],
        keeps=True,
        beside=[Made(q.shape[:3], FLOAT32), *RANDOM],
        special=partial(_backward, t, q.shape, k.shape, q.dtype),
        costly=Costly.ATTENTION,
    )
    del merger, last  # held until here
    return out


@dataclass(eq=False)
class _Rotater:
    """Keys and values, or their gradients, of the other GPUs: all at once, or of one after another.

    What is sent is held until something has come.
    """

    t: Recorder
    shape: Shape
    dtype: DType
    at_once: bool
    sent: Tensor | None = None
    buffer: Tensor | None = None

    def joined(self) -> Tensor:
        """Both in one tensor, as they are sent."""
        return self.t.empty(self.shape, self.dtype)

    def send(self, both: Tensor) -> None:
        """Begin to receive those of the others."""
        if not self.at_once:
            self.t.ledger.remark(CONTEXT_ALL_TO_ALL, elements_of(self.shape), self.dtype)
            self.sent, self.buffer = both, self.joined()
        elif self.buffer is None:
            whole = (constant(self.t.mode.context), *self.shape)
            self.t.ledger.remark(CONTEXT_ALL_GATHER, elements_of(whole), self.dtype)
            self.sent, self.buffer = both, self.t.empty(whole, self.dtype)

    def received(self) -> Tensor:
        """Those of the next GPU."""
        assert self.buffer is not None
        self.sent = None
        return self.buffer


def _side_by_side(x: Tensor) -> Tensor:
    """A copy head by head; a single head lies so already."""
    return x if x.shape[1] is ONE else x.tape.like(x)


def _halved(shape: Shape) -> Shape:
    return (*shape[:2], divided(shape[2], 2), shape[3])


def _turns(q: Tensor, k: Tensor, v: Tensor) -> tuple["_Merger", list[Tensor]]:
    """The outputs of all turns as one, and the last one's."""
    t, gpus = q.tape, q.tape.mode.context
    key, value = _side_by_side(k), _side_by_side(v)
    rotater = _Rotater(t, (PAIR, *k.shape), q.dtype, at_once=not t.mode.rotates)
    merger = _Merger(t)
    last: list[Tensor] = []
    read: tuple[Tensor, ...] = ()
    for turn in range(gpus):
        if turn:
            key = value = rotater.received()
        if turn < gpus - 1:
            rotater.send(rotater.joined())
        read = key, value  # those of the turn before are held until here
        is_half = turn > place_of(gpus)
        rows = _halved(q.shape) if is_half else q.shape
        last = [t.empty(rows, q.dtype), t.empty(rows[:3], FLOAT32), *(t.empty(*x) for x in RANDOM)]
        merger.add(last[0], last[1], is_half)
    del read, key, value
    return merger, last


@dataclass(eq=False)
class _Merger:
    """The output of the turns so far, in 32 bits, and the logarithms of its rows."""

    t: Recorder
    out: Tensor | None = None
    rows: Tensor | None = None

    def add(self, narrow: Tensor, rows: Tensor, is_half: bool) -> None:
        """A turn's output, perhaps of half of the queries."""
        t = self.t
        block = t.like(narrow, FLOAT32)
        if self.out is None or self.rows is None:
            self.out, self.rows = block, rows
            return
        share = self._of_difference(rows)
        change = t.like(block)
        shared = t.like(block)
        del share, change
        out = t.like(block)
        del shared
        share = self._of_difference(rows)
        merged = t.like(rows)
        del share
        if is_half:  # joined with the other half
            self.rows = t.like(self.rows)
            self.out = t.like(self.out)
        else:
            self.rows, self.out = merged, out
        del merged, out, block  # held until here

    def _of_difference(self, rows: Tensor) -> Tensor:
        """The logistic function of a difference, or its logarithm."""
        difference = self.t.like(rows)
        made = self.t.like(rows)
        del difference
        return made


def _backward(t: Recorder, q: Shape, k: Shape, dtype: DType, gradients: Gradients) -> Gradients:
    """The gradients of queries, and of keys and values, which are parts of one tensor."""
    gpus, place, single = t.mode.context, place_of(t.mode.context), k[1] is ONE
    dq = t.empty(q, FLOAT32)
    parts: list[Tensor] = [t.empty(k, FLOAT32) for _ in range(2)]
    given = [] if single else [t.empty(k, dtype) for _ in range(2)]
    keys = _Rotater(t, (PAIR, *k), dtype, at_once=not t.mode.rotates)
    sums = _Rotater(t, (PAIR, *k), FLOAT32, at_once=False)
    sent: Tensor | None = None
    read: list[Tensor] = []
    rows: Tensor | None = None
    block: list[Tensor] = []
    both: Tensor | None = None
    for turn in range(gpus):
        if turn:
            given = [keys.received()]
        if turn < gpus - 1:
            sent = keys.joined()
            keys.send(sent)
        read = given  # those of the turn before are held until here
        is_half, sees_half = turn > place, 0 < turn <= place
        if is_half:
            rows = t.empty(_halved(q)[:3], FLOAT32)
        queries, seen = _halved(q) if is_half else q, _halved(k) if sees_half else k
        block = _flash_backward(t, queries, seen, dtype, is_half)
        if turn:
            both = sums.received()
            parts = [both]
        if sees_half:  # added to half of each, which is joined with the other
            parts = [t.empty(k, FLOAT32), parts[0]]
            parts = [parts[0], t.empty(k, FLOAT32)]
        both = _joined(sums, copied=turn == 0 and not single)
        sums.send(both)
        if is_half:
            dq = t.empty(q, FLOAT32)
    narrow = t.empty(q, dtype)
    del dq
    both = sums.received()
    whole = t.empty(sums.shape, dtype)
    del sent, read, rows, block, both, parts, gradients  # held until here
    return [narrow, *(Tensor(t, whole.storage, k, dtype) for _ in range(2))]


def _joined(sums: _Rotater, copied: bool) -> Tensor:
    """Gradients of keys and values in one tensor; the first ones are copied head by head."""
    copies = [sums.t.empty(sums.shape[1:], FLOAT32) for _ in range(2)] if copied else []
    both = sums.joined()
    del copies
    return both


def _flash_backward(t: Recorder, q: Shape, k: Shape, dtype: DType, is_half: bool) -> list[Tensor]:
    """The gradients of one turn; the kernel's own temporaries go at once.

    The kernel copies the output, whose heads lie one after another, and its gradient where that has
    gaps.
    """
    batch, heads, length, width = q
    has_gaps = t.mode.padded_heads or (is_half and not t.mode.one_sequence)
    lines = rounded_up(length, 128)
    made = [Made((batch, heads, lines), FLOAT32)]
    made += [Made((batch, lines, heads, flash_width(width)), FLOAT32)]
    made += [Made(q, dtype)] * (1 + has_gaps)
    if k[1] is not heads:  # those of keys and values, for every head that shares them
        made += [Made((batch, heads, k[2], width), dtype)] * 2
    temporaries = [t.empty(*one) for one in made]
    block = [t.empty(shape, dtype) for shape in (q, k, k)]
    del temporaries
    return block
