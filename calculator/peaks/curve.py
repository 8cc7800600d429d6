"""The memory of a step, operation by operation, with every layer in its place.

A step is recorded with some of its equal layers left out (`calculator.peaks.runs`); here each of
them stands in the curve with the events of the one that was recorded for it.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from heapq import nlargest
from itertools import pairwise
from operator import itemgetter
from typing import NamedTuple

from calculator.autograd.ledger import PartEvent, Product, part_events
from calculator.autograd.sizes import Numbers
from calculator.clock.work import Tally, tally_of
from calculator.parts import Part, Phase
from calculator.peaks.chunks import Births, Layout, layout_of
from calculator.peaks.names import Name, NamedTape
from calculator.peaks.step import Step, run_step
from calculator.peaks.timeline import bytes_of
from calculator.peaks.trace import no_collection

Layer = tuple[str, int]


class Kind(NamedTuple):
    """Tensors of one size that were made by the same operation in each layer.

    `size` is their number of elements in words; `width` the bytes of an element.
    """

    name: str
    size: str
    width: int


@dataclass(frozen=True, slots=True)
class Held:
    """Tensors of one kind that live at the same time: how many, and their bytes together."""

    kind: Kind
    count: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of the step, and the bytes by part when most of them live.

    `layer` is the stack and the number of its layer from 0, or None outside of all layers, and
    `recorded` the number of the same operation on the tape.
    """

    phase: Phase
    name: Name
    layer: Layer | None
    parts: tuple[int, ...]
    recorded: int

    @property
    def total(self) -> int:
        """Sum of the parts."""
        return sum(self.parts)


@dataclass(frozen=True, slots=True)
class _Recording:
    """A step on a tape of names, without what dies with the tape itself."""

    events: Sequence[int]
    births: Sequence[int]
    names: Sequence[Name]
    part_events: Sequence[PartEvent]
    products: Sequence[tuple[int, Product]]
    layout: Layout


@dataclass(frozen=True, slots=True)
class _Recorded:
    """An operation on the tape: its events, and the bytes by part at its top and at its end.

    Both are counted from its start; `top` is the number of the event after which most lives.
    """

    phase: Phase
    name: Name
    start: int
    end: int
    top: int
    parts_at_top: tuple[int, ...]
    parts_at_end: tuple[int, ...]


class _Turn(NamedTuple):
    """One operation of the whole step: the recorded one, and how many layers later it runs."""

    recorded: int
    later: int


@dataclass(frozen=True, slots=True)
class Curve:
    """All operations of the forward and the backward pass, in order.

    `depths` has for each stack how many layers it has.
    """

    operations: Sequence[Operation]
    depths: Mapping[str, int]
    _recording: _Recording
    _recorded: Sequence[_Recorded]
    _turns: Sequence[_Turn]
    _sizes: Sequence[int]
    _left_out: Sequence[int]

    def tallies(self) -> list[Tally]:
        """Sums over what each operation on the tape makes, by its number there.

        Operations that make the same share theirs.
        """
        tape = self._recording
        known: dict[tuple[Births, tuple[Product, ...]], Tally] = {}
        found = []
        for one in self._recorded:
            born = Counter(signed for signed in tape.events[one.start : one.end] if signed > 0)
            first, last = (bisect_left(tape.products, (at,)) for at in (one.start, one.end))
            made = tuple(born.items()), tuple(product for _, product in tape.products[first:last])
            if made not in known:
                known[made] = tally_of([(*made, 1)], tape.layout.sizes)
            found.append(known[made])
        return found

    def largest(self, places: Sequence[int], most: int) -> Iterator[list[Held]]:
        """At the top of some operations, in rising order, the kinds that take the most bytes."""
        kinds, each = self._kinds()
        after = [self._changes(kinds, one.start, one.end) for one in self._recorded]
        wanted = iter(places)
        place = next(wanted, None)
        counts = [0] * len(each)
        for number, (which, _) in enumerate(self._turns):
            if number == place:
                one = self._recorded[which]
                now = list(counts)
                _add(now, self._changes(kinds, one.start, one.top))
                living = [(n * each[kind][1], kind, n) for kind, n in enumerate(now)]
                yield [
                    Held(each[kind][0], n, size) for size, kind, n in nlargest(most, living) if size
                ]
                place = next(wanted, None)
            _add(counts, after[which])

    def _kinds(self) -> tuple[list[int], list[tuple[Kind, int]]]:
        """The number of each event's kind, and by this number the kind and its bytes."""
        numbers: dict[tuple[int, str], int] = {}
        each: list[tuple[Kind, int]] = []
        found: list[int] = []
        tape = self._recording
        for signed, birth in zip(tape.events, tape.births, strict=True):
            key = abs(signed), tape.names[birth].words
            if key not in numbers:
                size = tape.layout.sizes[key[0] - 1]
                numbers[key] = len(each)
                kind = Kind(key[1], _in_words(size.size), size.dtype.width)
                each.append((kind, self._sizes[key[0] - 1]))
            found.append(numbers[key])
        return found, each

    def _changes(self, kinds: Sequence[int], start: int, end: int) -> Counter[int]:
        """Changes in bytes of each kind after some events."""
        changes: Counter[int] = Counter()
        tape = self._recording
        for at in range(start, end):
            changes[kinds[at]] += 1 if tape.events[at] > 0 else -1
            late = tape.layout.late.get(at)
            if late is not None:
                run = tape.layout.sizes[late - 1].run
                assert run is not None
                changes[kinds[at]] -= self._left_out[run]
        return changes


@no_collection()
def curve_of(step: Step, numbers: Numbers, left_out: Sequence[int], static: Sequence[int]) -> Curve:
    """The curve of a step.

    Args:
        step: what is recorded.
        numbers: those of the sizes' names.
        left_out: for each run, units of layers that are not on the tape.
        static: bytes by part that live through the whole step.
    """
    tape = _record(step)
    sizes = bytes_of(tape.layout.sizes, numbers, left_out)
    recorded = list(_operations(tape, sizes))
    turns = list(_turns(tape, recorded, step, left_out))
    places, depths = _depths(step, left_out)
    parts = list(static)
    operations = []
    for which, later in turns:
        one = recorded[which]
        layer = one.name.layer
        if layer is not None:
            layer = layer[0], places.get(layer, layer[1]) + later
        top = tuple(map(int.__add__, parts, one.parts_at_top))
        operations.append(Operation(one.phase, one.name, layer, top, which))
        parts = list(map(int.__add__, parts, one.parts_at_end))
    return Curve(operations, depths, tape, recorded, turns, sizes, left_out)


@lru_cache(maxsize=8)
def _record(step: Step) -> _Recording:
    tape = NamedTape(step.mode)
    run_step(step, tape)
    ledger = tape.named
    return _Recording(
        tuple(ledger.events),
        tuple(ledger.births),
        tuple(ledger.names),
        part_events(ledger.events, ledger.parts, ledger.moves),
        tuple(ledger.products),
        layout_of(ledger, step),
    )


def _operations(tape: _Recording, sizes: Sequence[int]) -> Iterator[_Recorded]:
    """The operations on the tape: events of one name, none across a boundary of the layout."""
    changes = _part_changes(tape, sizes)
    phase = Phase.FORWARD
    for (start, name), (end, _) in pairwise(_bounds(tape, sizes)):
        phase = tape.layout.phases.get(start, phase)
        parts = [0] * len(Part)
        top, highest, at_top = start, 0, tuple(parts)
        for at in range(start, end):
            for part, change in changes[at]:
                parts[part] += change
            if (total := sum(parts)) > highest:
                top, highest, at_top = at + 1, total, tuple(parts)
        yield _Recorded(phase, name, start, end, top, at_top, tuple(parts))


def _bounds(tape: _Recording, sizes: Sequence[int]) -> list[tuple[int, Name]]:
    """Starts of operations, and their names; no operation starts at the end.

    A death outside of all operations belongs to the operation before, and so does what has no
    bytes: outputs that the training loop does not hold.
    """
    edges = set(tape.layout.edges)
    name = tape.names[0]
    bounds = [(0, name)]
    for at, found in enumerate(tape.names):
        is_leaving = found.is_empty and tape.events[at] < 0
        is_nothing = not sizes[abs(tape.events[at]) - 1]
        changed = not (is_leaving or is_nothing) and found != name
        if changed:
            name = found
        if at and (changed or at in edges):
            bounds.append((at, name))
    return [*bounds, (len(tape.events), name)]


def _part_changes(tape: _Recording, sizes: Sequence[int]) -> list[list[tuple[int, int]]]:
    """For each event the bytes that parts gain or lose with it."""
    changes: list[list[tuple[int, int]]] = [[] for _ in tape.events]
    late = tape.layout.late
    for after, part, signed in tape.part_events:
        at = after - 1
        size = sizes[abs(signed) - 1]
        if signed < 0 and at in late and signed == tape.events[at]:
            size += sizes[late[at] - 1]
        changes[at].append((part, size if signed > 0 else -size))
    return changes


def _turns(
    tape: _Recording, recorded: Sequence[_Recorded], step: Step, left_out: Sequence[int]
) -> Iterator[_Turn]:
    """The operations on the tape in order, those of left-out units after the one recorded."""
    units = [run.unit for _, runs in step.runs for run in runs]
    phases = sorted(tape.layout.phases.items())
    by_start = {one.start: number for number, one in enumerate(recorded)}
    number = 0
    for end in [*sorted(tape.layout.repeats), None]:
        if end is None:
            yield from (_Turn(which, 0) for which in range(number, len(recorded)))
            return
        start, _, run = tape.layout.repeats[end]
        first, last = by_start[start], by_start[end]
        yield from (_Turn(which, 0) for which in range(number, first))
        more, unit = left_out[run], units[run]
        phase = phases[bisect_right(phases, start, key=itemgetter(0)) - 1][1]
        depths = range(more, -1, -1) if phase is Phase.BACKWARD else range(more + 1)
        for depth in depths:
            yield from (_Turn(which, depth * unit) for which in range(first, last))
        number = last


def _depths(step: Step, left_out: Sequence[int]) -> tuple[Mapping[Layer, int], Mapping[str, int]]:
    """The depth of each layer on the tape, a repeated one's first; and that of each stack."""
    places: dict[Layer, int] = {}
    depths: dict[str, int] = {}
    for stack, first, runs in step.stacks():
        position = depth = 0
        for number, run in enumerate(runs, first):
            later = (run.repeated + 1) * run.unit  # the first place after what is left out
            for place in range(len(run.slots)):
                skipped = left_out[number] * run.unit if place >= later else 0
                places[stack, position + place] = depth + place + skipped
            position += len(run.slots)
            depth += len(run.slots) + left_out[number] * run.unit
        depths[stack] = depth
    return places, depths


def _add(counts: list[int], changes: Mapping[int, int]) -> None:
    for kind, change in changes.items():
        counts[kind] += change


def _in_words(size: object) -> str:
    return str(size).replace(" * ", " × ").replace("_size", "").replace("_", " ")
