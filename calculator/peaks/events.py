"""The births and deaths of a whole step in order: every layer, and which tensor each death ends.

A step is recorded with some of its equal units of layers left out (`calculator.peaks.runs`); here
each of them has the events of the unit that was recorded for it. In the forward pass they follow
it, and in the backward pass they come before it, the last one first.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

from calculator.autograd.dtypes import DType
from calculator.autograd.ledger import Ledger
from calculator.autograd.sizes import Numbers, Size, number_of
from calculator.parts import Phase
from calculator.peaks.chunks import layer_spans
from calculator.peaks.step import Step
from calculator.peaks.trace import tape_of

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
    def line(self) -> tuple[str, int]:
        """The stack and the run, which both passes have in common."""
        return self.stack, self.run

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
    tape = tape_of(step)  # held until here: what ends with it is no event of the step
    ledger = tape.ledger
    marks = {mark: at for at, mark in reversed(ledger.marks)}
    order = sorted({*marks.values(), len(ledger.events)})
    first = [at for (_, position, back), at in marks.items() if back and not position]
    outside = bytearray(b"\1") * len(ledger.events)
    for start, end in (
        *layer_spans(marks),
        *((at, _after(order, at)) for at in first),
    ):
        outside[start:end] = bytes(end - start)
    backward = [at for at, (_, _, is_backward) in ledger.marks if is_backward]
    backward += [at for at, phase in ledger.phases if phase is Phase.BACKWARD]
    found = Recording(
        tuple(ledger.sizes),
        tuple(ledger.events),
        tuple(ledger.births),
        tuple(sorted(_spans(ledger, step), key=lambda span: span.start)),
        bytes(outside),
        min(backward),
    )
    tape.drop()
    return found


def _after(order: Sequence[int], at: int) -> int:
    """The next of some places after one; the last has none."""
    return order[min(bisect_right(order, at), len(order) - 1)]


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
                    last = marks.get(stop, _after(order, start))
                    yield Span(stack, number, unit, run.repeated, is_backward, start, last)
            position = end


def in_order(recording: Recording, left_out: Sequence[int]) -> Ordered:
    """The events of the whole step, with so many units of each run that are not on the tape."""
    return _Replay(recording, left_out).run()


# of a repeated unit: the spans whose tensors it ends, with how many units later their unit is, and
# its events by the place in that list, the rank of the birth, and the number of the size
Template = tuple[list[tuple[int, int]], list[tuple[int, int, int]]]


class _Replay:
    """A recording whose left-out units are put in.

    Units are counted twice: `unit` is the place on the tape, and `depth` the place in the model; a
    repeated unit has copies from 0. Tensors are numbered by their births: `ranks` has a birth's
    number in its span, and `bases` the number before a span's first, by span and copy. Where layers
    share weights, `living` has the sizes of the living tensors.
    """

    def __init__(self, recording: Recording, left_out: Sequence[int]) -> None:
        self.events, self.births = recording.events, recording.births
        self.spans, self.outside = recording.spans, recording.outside
        self.backward, self.before = recording.backward, -1
        self.left_out = left_out
        self.owner = [-1] * len(self.events)
        self.ranks = [*accumulate(int(signed > 0) for signed in self.events)]
        for number, span in enumerate(self.spans):
            self.owner[span.start : span.end] = [number] * (span.end - span.start)
        self.alike = self._alike()
        self.bases: dict[tuple[int, int], int] = {(-1, 0): 0}
        self.born = self.ranks[-1]
        self.living: dict[int, int] | None = {} if self._shares() else None
        self.found: list[Event] = []

    def _alike(self) -> dict[int, int]:
        """For births in other units than the repeated one, those there that correspond.

        Both die as many units later, as the first of their size, or the second, and so on.
        """
        dying: dict[tuple[int, object], dict[int, list[int]]] = {}
        for at, signed in enumerate(self.events):
            birth = self.births[at]
            owner, span = self._span(birth), self._span(at)
            if signed < 0 and owner and span and owner.line == span.line:
                kind = (
                    *owner.line,
                    owner.is_backward,
                    span.is_backward,
                    span.unit - owner.unit,
                    -signed,
                )
                dying.setdefault((owner.repeated, kind), {}).setdefault(owner.unit, []).append(
                    birth
                )
        found: dict[int, int] = {}
        for (repeated, _), by_unit in dying.items():
            for births in by_unit.values():
                found.update(zip(births, by_unit.get(repeated, ()), strict=False))
        return found

    def _span(self, at: int) -> Span | None:
        return None if self.owner[at] < 0 else self.spans[self.owner[at]]

    def _shares(self) -> bool:
        """True if a repeated unit ends tensors that were not born in its run."""
        return any(
            owner is None or owner.line != span.line
            for span in self.spans
            if span.is_repeated
            for owner in map(self._span, self.births[span.start : span.end])
        )

    def run(self) -> Ordered:
        """All events."""
        at = 0
        for number, span in enumerate(self.spans):
            self._between(at, span.start)
            at = span.end
            more = self.left_out[span.run]
            if not span.is_repeated:
                self._put(span.start, at, number, 0)
                continue
            template = None if self.living is not None else self._template(number)
            for copy in range(more, -1, -1) if span.is_backward else range(more + 1):
                if template is None or not self._copy(template, number, copy, more):
                    self._put(span.start, at, number, copy)
        self._between(at, len(self.events))
        return Ordered(self.found, self.before)

    def _between(self, start: int, end: int) -> None:
        """Events of no span."""
        if self.before < 0 and self.backward <= end:
            self._put(start, self.backward, -1, 0)
            self.before, start = len(self.found), self.backward
        self._put(start, end, -1, 0)

    def _template(self, number: int) -> Template | None:
        """A repeated unit's events as copies between others of their own kind have them."""
        span = self.spans[number]
        ends: dict[tuple[int, int], int] = {(number, 0): 0}
        events = []
        for at in range(span.start, span.end):
            birth, size = self.births[at], max(self.events[at], 0)
            owner = self.spans[self.owner[birth]]
            if owner.unit != span.unit:
                if birth not in self.alike:
                    return None
                birth = self.alike[birth]
            key = self.owner[birth], owner.unit - span.unit
            events.append((ends.setdefault(key, len(ends)), self.ranks[birth], size))
        return [*ends], events

    def _copy(self, template: Template, number: int, copy: int, more: int) -> bool:
        """Put a copy's events; False if one of its neighbors is no copy of this unit."""
        ends, events = template
        if not all(0 <= copy + later <= more for _, later in ends):
            return False
        self._begin(number, copy)
        bases = [self.bases[span, copy + later] for span, later in ends]
        self.found += [
            (bases[end] + rank, size) if size else (-bases[end] - rank, 0)
            for end, rank, size in events
        ]
        return True

    def _begin(self, number: int, copy: int) -> None:
        """Numbers for the tensors that a span gives birth to."""
        span = self.spans[number]
        before = self.ranks[span.start - 1] if span.start else 0
        self.bases[number, copy] = self.born - before
        self.born += self.ranks[span.end - 1] - before

    def _put(self, start: int, end: int, number: int, copy: int) -> None:
        """Events of a span's copy, or of none."""
        if number >= 0:
            self._begin(number, copy)
        base = self.bases[number, copy]
        for at in range(start, end):
            size = self.events[at]
            if size > 0:
                self.found.append((base + self.ranks[at], size))
                if self.living is not None:
                    self.living[base + self.ranks[at]] = size
            else:
                for each in self._dying(at, number, copy):
                    self._end(each, -size)

    def _dying(self, at: int, number: int, copy: int) -> Iterator[int]:
        """The tensors that a death ends; one outside of all layers ends those of all copies."""
        birth = self.births[at]
        owner, span = self._span(birth), self._span(at)
        copies = range(1)
        if self.owner[birth] == number:
            copies = range(copy, copy + 1)
        elif owner and span and owner.line == span.line:
            more = self.left_out[span.run]
            depth = span.unit + (copy if span.is_repeated else more * (span.unit > span.repeated))
            wanted = depth + owner.unit - span.unit
            copy = min(max(wanted - owner.repeated, 0), more)
            if wanted - copy != owner.unit:  # else it is that tensor, wherever the layers are
                birth = self.alike.get(birth, birth)
            if self.spans[self.owner[birth]].is_repeated:
                copies = range(copy, copy + 1)
        elif owner and owner.is_repeated and self.outside[at]:
            copies = range(self.left_out[owner.run] + 1)
        for each in copies:
            yield self.bases[self.owner[birth], each] + self.ranks[birth]

    def _end(self, tensor: int, size: int) -> None:
        """A tensor dies; where layers share weights and it is dead, the oldest of its size."""
        if self.living is not None:
            if tensor not in self.living:
                same = (each for each, one in self.living.items() if one == size)
                tensor = next(same, 0)
            self.living.pop(tensor, None)
        if tensor:
            self.found.append((-tensor, 0))
