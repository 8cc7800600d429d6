"""The births and deaths of a whole step in order: every layer, and which tensor each death ends.

A step is recorded with some of its equal units of layers left out (`calculator.peaks.runs`); here
each of them has the events of the unit that was recorded for it. In the forward pass they follow
it, and in the backward pass they come before it, the last one first.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from calculator.autograd.dtypes import DType
from calculator.autograd.ledger import Ledger
from calculator.autograd.sizes import Numbers, Size, number_of
from calculator.parts import Phase
from calculator.peaks.chunks import layer_spans
from calculator.peaks.step import Step, run_step

# a tensor's number, negative when it dies; and the number of its size, 0 when it dies
Event = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Ordered:
    """The events of a step in order; so many come `before` the backward pass."""

    events: list[Event]
    before: int


@dataclass(frozen=True, slots=True)
class Span:
    """Recorded events of one unit of a run in one direction, from `start` to `end`.

    `unit` is its number among those on the tape, of which number `repeated` stands for those left
    out as well.
    """

    stack: str
    run: int
    unit: int
    repeated: int
    is_backward: bool
    start: int
    end: int

    @property
    def is_repeated(self) -> bool:
        """True if the unit stands for those left out."""
        return self.unit == self.repeated


@dataclass(frozen=True, slots=True)
class Recording:
    """All events of a recorded step: signed numbers of sizes, the births they belong to, and spans.

    `outside` has a 1 for each event that is outside of all layers, and `backward` is the event
    before which the backward pass begins.
    """

    sizes: tuple[tuple[Size, DType], ...]
    events: tuple[int, ...]
    births: tuple[int, ...]
    spans: tuple[Span, ...]
    outside: bytes
    backward: int

    def bytes(self, numbers: Numbers) -> list[int]:
        """Bytes that a tensor of each size asks for, numbered from 1."""
        return [0, *(number_of(size, numbers) * dtype.width for size, dtype in self.sizes)]


@lru_cache(maxsize=64)
def recording_of(step: Step) -> Recording:
    """The events of a step, without what ends with the tape itself."""
    tape = run_step(step)
    ledger = tape.ledger
    marks = {mark: at for at, mark in reversed(ledger.marks)}
    order = sorted({*marks.values(), len(ledger.events)})
    first = [at for (_, position, back), at in marks.items() if back and not position]
    outside = bytearray(b"\1") * len(ledger.events)
    for start, end in (
        *layer_spans(marks),
        *((at, order[bisect_right(order, at)]) for at in first),
    ):
        outside[start:end] = bytes(end - start)
    backward = [at for at, (_, _, is_backward) in ledger.marks if is_backward]
    backward += [at for at, phase in ledger.phases if phase is Phase.BACKWARD]
    return Recording(
        tuple(ledger.sizes),
        tuple(ledger.events),
        tuple(ledger.births),
        tuple(sorted(_spans(ledger, step), key=lambda span: span.start)),
        bytes(outside),
        min(backward),
    )


def _spans(ledger: Ledger, step: Step) -> Iterator[Span]:
    """The spans of all units of runs that may leave out some."""
    marks = {mark: at for at, mark in reversed(ledger.marks)}
    order = sorted({*marks.values(), len(ledger.events)})
    for stack, first_run, runs in step.stacks():
        position = 0
        for number, run in enumerate(runs, first_run):
            end = position + len(run.slots)
            for unit, first in enumerate(range(position, end, run.unit) if run.is_full else ()):
                after = first + run.unit
                for begin, stop, is_backward in (
                    ((stack, first, False), (stack, after, False), False),
                    ((stack, after - 1, True), (stack, first - 1, True), True),
                ):
                    if begin not in marks:
                        continue
                    start = marks[begin]
                    last = marks.get(stop, order[bisect_right(order, start)])
                    yield Span(stack, number, unit, run.repeated, is_backward, start, last)
            position = end


def in_order(recording: Recording, left_out: Sequence[int]) -> Ordered:
    """The events of the whole step, with so many units of each run that are not on the tape."""
    return _Replay(recording, left_out).run()


class _Replay:
    """A recording whose left-out units are put in.

    Units are counted twice: `unit` is the place on the tape, and `depth` the place in the model. A
    tensor is known by the event of its birth and, in a repeated unit, by which copy of the unit it
    is from, counted from 0.
    """

    def __init__(self, recording: Recording, left_out: Sequence[int]) -> None:
        self.events, self.births = recording.events, recording.births
        self.spans, self.outside = recording.spans, recording.outside
        self.backward, self.before = recording.backward, -1
        self.left_out = left_out
        self.owner: list[Span | None] = [None] * len(self.events)
        for span in recording.spans:
            self.owner[span.start : span.end] = [span] * (span.end - span.start)
        self.alike = self._alike()
        self.living: dict[tuple[int, int], int] = {}
        self.born = 0
        self.found: list[Event] = []

    def run(self) -> Ordered:
        """All events."""
        at = 0
        for span in self.spans:
            self._between(at, span.start)
            at = span.end
            more = self.left_out[span.run]
            if not span.is_repeated:
                self._put(span.start, at, span, span.unit + more * (span.unit > span.repeated))
                continue
            for copy in range(more, -1, -1) if span.is_backward else range(more + 1):
                self._put(span.start, at, span, span.unit + copy)
        self._between(at, len(self.events))
        return Ordered(self.found, self.before)

    def _between(self, start: int, end: int) -> None:
        """Events of no span."""
        if self.before < 0 and self.backward <= end:
            self._put(start, self.backward, None, 0)
            self.before, start = len(self.found), self.backward
        self._put(start, end, None, 0)

    def _put(self, start: int, end: int, span: Span | None, depth: int) -> None:
        """Events of a span as the unit at a depth runs them, or of none."""
        copy = depth - span.unit if span is not None and span.is_repeated else 0
        events, births, living, found = self.events, self.births, self.living, self.found
        for at in range(start, end):
            signed, birth = events[at], births[at]
            if signed > 0:
                self.born += 1
                living[at, copy] = self.born
                found.append((self.born, signed))
            elif start <= birth:
                self._end((birth, copy))
            else:
                for tensor in self._dying(at, span, depth):
                    self._end(tensor)

    def _dying(self, at: int, span: Span | None, depth: int) -> Iterator[tuple[int, int]]:
        """The tensors that a death ends; one outside of all layers ends those of all copies."""
        birth = self.births[at]
        owner = self.owner[birth]
        if owner is None:
            yield birth, 0
        elif span is not None and (owner.stack, owner.run) == (span.stack, span.run):
            wanted = depth + owner.unit - span.unit
            copy = min(max(wanted - owner.repeated, 0), self.left_out[owner.run])
            unit = wanted - copy
            same = birth if unit == owner.unit else self.alike.get(birth, birth)
            yield same, copy if unit == owner.repeated else 0
        else:
            all_copies = owner.is_repeated and self.outside[at]
            copies = self.left_out[owner.run] + 1 if all_copies else 1
            yield from ((birth, copy) for copy in range(copies))

    def _end(self, tensor: tuple[int, int]) -> None:
        """A tensor dies; where layers share weights and it is dead, the oldest of its size."""
        if tensor not in self.living:
            size = self.events[tensor[0]]
            same = (each for each in self.living if self.events[each[0]] == size)
            tensor = next(same, tensor)
        if tensor in self.living:
            self.found.append((-self.living.pop(tensor), 0))

    def _alike(self) -> dict[int, int]:
        """For births in other units than the repeated one, those there that correspond.

        Both die as many units later, as the first of their size, or the second, and so on.
        """
        dying: dict[tuple[object, ...], dict[int, list[int]]] = {}
        repeated: dict[tuple[object, ...], int] = {}
        for at, signed in enumerate(self.events):
            birth = self.births[at]
            owner, span = self.owner[birth], self.owner[at]
            if signed > 0 or owner is None or span is None or owner.run != span.run:
                continue
            passes = owner.stack, owner.run, owner.is_backward, span.is_backward
            kind = (*passes, span.unit - owner.unit, -signed)
            repeated[kind] = owner.repeated
            dying.setdefault(kind, {}).setdefault(owner.unit, []).append(birth)
        found: dict[int, int] = {}
        for passed, by_unit in dying.items():
            for births in by_unit.values():
                found.update(zip(births, by_unit.get(repeated[passed], ()), strict=False))
        return found
