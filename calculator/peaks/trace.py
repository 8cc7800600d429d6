"""A tape made ready to be measured: sizes, and events in chunks that layers repeat.

What one more unit of a run (`calculator.peaks.runs`) adds to the living bytes, forward and
backward, is added for each unit that was left out; inside the run the total then goes straight up
or down, so no layer left out can be the peak.
"""

import gc
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import compress, groupby, pairwise
from operator import itemgetter
from typing import Any

from calculator.allocator import round_block
from calculator.autograd.dtypes import DType
from calculator.autograd.ledger import Ledger, Mark, Move, PartEvent, part_events
from calculator.autograd.mode import watched
from calculator.autograd.sizes import Numbers, Size, number_of
from calculator.autograd.tape import Tape
from calculator.parts import Part, Phase
from calculator.peaks.step import Begun, Step, begin, finish, living, run_step, windows


@dataclass(frozen=True, slots=True)
class Bytes:
    """A size in a number format; with `run`, that size once for each left-out unit of the run."""

    size: Size
    dtype: DType
    run: int | None = None


# for each part, the events before each of its changes, and the changes
ByPart = tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]


@dataclass(frozen=True, slots=True)
class Chunk:
    """Events between two boundaries, all of one phase.

    `events` are signed numbers of sizes, without the valleys that change no peak, and `origins`
    how many of all events had happened at each. `part_events` has for each part the events before
    each of its changes, and the changes as signed numbers of sizes; `net` is what is left at the
    end, as (part, size, how often). `repeats` names the chunks, from and to, that each left-out
    layer of a run repeats after it, and the run.
    """

    phase: Phase
    events: tuple[int, ...]
    origins: tuple[int, ...]
    part_events: ByPart
    net: tuple[tuple[int, int, int], ...]
    repeats: tuple[int, int, int] | None


# events, their parts, and moves between parts; all that a chunk keeps of them
Placed = tuple[tuple[int, ...], tuple[Part, ...], tuple[Move, ...]]
Shaped = tuple[tuple[int, ...], tuple[int, ...], ByPart, tuple[tuple[int, int, int], ...]]
# a chunk, and the elements and format of a tensor of which something is noted in it
Noted = tuple[int, Size, DType]


@dataclass(frozen=True, slots=True)
class Trace:
    """A recorded step; sizes are numbered from 1.

    `arrivals` are the weights' gradients in the order in which they are complete: the chunk, the
    elements, and their format. `moved` are tensors that go to RAM, and `exchanged` those that
    several GPUs exchange, by the name of the collective, named in the same way.
    """

    sizes: tuple[Bytes, ...]
    chunks: tuple[Chunk, ...]
    arrivals: tuple[Noted, ...] = ()
    moved: tuple[Noted, ...] = ()
    exchanged: tuple[tuple[str, tuple[Noted, ...]], ...] = ()


@lru_cache(maxsize=256)
def record(step: Step) -> Trace:
    """Run a step once; sizes stay names.

    Steps of one model have the same trace if their modes differ only in what nothing asked for.
    """
    trace = _recorded(step)
    if trace is None:
        with _no_collection():
            tape, asked = _run(step)
            trace = _chunked(tape.ledger, step)
        settings = {name: getattr(step.mode, name) for name in asked}
        _known(step.structure, step.runs, step.turns).append((settings, trace))
    return trace


def _run(step: Step) -> tuple[Tape, set[str]]:
    """The tape of a step, and the settings that were asked for."""
    if step.turns:
        mode, asked = watched(step.mode)
        return run_step(replace(step, mode=mode)), asked
    begun, asked = _begun.pop(step) if step in _begun else _begin(step)
    return finish(begun), asked


def bytes_after_forward(step: Step, numbers: Numbers, left_out: Sequence[int]) -> int:
    """Bytes that live between the two passes, of a step that is not recorded; else 0.

    The peak is no lower, so a search records only the forward pass of most that do not fit.
    """
    after = _after_forward(step)
    return sum(
        count
        * round_block(number_of(size, numbers) * dtype.width)
        * (1 if run is None else 1 + left_out[run])
        for size, dtype, run, count in after
    )


# the step of which only the forward pass is on a tape, which the backward pass may follow
_begun: dict[Step, tuple[Begun, set[str]]] = {}


@contextmanager
def tentatively() -> Iterator[None]:
    """A step that is begun inside is finished inside too, or dropped.

    Its tape is gone before Python searches for cycles again, and would look at all of it.
    """
    with _no_collection():
        try:
            yield
        finally:
            _begun.clear()


def _begin(step: Step) -> tuple[Begun, set[str]]:
    """The forward pass of a step, and the settings that have been asked for, which grow."""
    mode, asked = watched(step.mode)
    return begin(replace(step, mode=mode)), asked


@lru_cache(maxsize=256)
def _after_forward(step: Step) -> tuple[tuple[Size, DType, int | None, int], ...]:
    """The tensors that live after the forward pass: size, format, the run if one, how many."""
    if _recorded(step) is not None:
        return ()
    begun = _begun[step] = _begin(step)
    ledger = begun[0].tape.ledger
    shapes = list(ledger.sizes)
    return tuple(
        (*shapes[number - 1], run, count) for (number, run), count in living(ledger, step).items()
    )


def _recorded(step: Step) -> Trace | None:
    """The trace of a step of the same model whose mode differs in nothing that was asked for."""
    for asked, trace in _known(step.structure, step.runs, step.turns):
        if all(getattr(step.mode, name) == value for name, value in asked.items()):
            return trace
    return None


@lru_cache(maxsize=256)
def _known(_structure: Any, _runs: Any, _turns: Any) -> list[tuple[Mapping[str, object], Trace]]:
    """The traces of a model's steps so far, each with what was asked of its mode."""
    return []


@contextmanager
def _no_collection() -> Iterator[None]:
    """Put off Python's search for cycles: a step makes none, and its many tuples set it off."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@dataclass(frozen=True, slots=True)
class Layout:
    """Positions of phases, repeats and boundaries in a ledger, by event number.

    `repeats` has by its end a stretch that each left-out unit of a run repeats: start, end, run.
    `sizes` are the ledger's, numbered from 1, and one more for each of the deaths in `late`.
    """

    phases: Mapping[int, Phase]
    repeats: Mapping[int, tuple[int, int, int]]
    sizes: Sequence[Bytes]
    late: Mapping[int, int]
    edges: Sequence[int]


def layout_of(ledger: Ledger, step: Step) -> Layout:
    """Read a recorded step's marks."""
    marks = {mark: at for at, mark in reversed(ledger.marks)}
    phases = dict(ledger.phases)
    heads = (at for (name, _, back), at in marks.items() if back and name.startswith("head"))
    phases |= dict.fromkeys(heads, Phase.BACKWARD)
    repeats = {end: (start, end, run) for start, end, run in _repeats(marks, step)}
    sizes = [Bytes(*size) for size in ledger.sizes]
    late = _late_deaths(ledger, marks, repeats, sizes)
    starts = {start for start, _, _ in repeats.values()}
    edges = sorted({0, len(ledger.events), *phases, *repeats, *starts})
    return Layout(phases, repeats, sizes, late, edges)


def _chunked(ledger: Ledger, step: Step) -> Trace:
    layout = layout_of(ledger, step)
    order = sorted({*layout.edges, *_unit_starts(ledger, step)})
    place = {at: number for number, at in enumerate(order)}
    chunks = []
    shapes: dict[Placed, Shaped] = {}
    phase = Phase.FORWARD
    for start, end in pairwise(order):
        phase = layout.phases.get(start, phase)
        left_out = layout.repeats.get(end)
        repeated = left_out and (place[left_out[0]], place[left_out[1]], left_out[2])
        placed = _events(ledger, layout.late, start, end)
        shape = shapes.get(placed)
        if shape is None:  # layers that behave alike have equal events
            shape = shapes[placed] = _shaped(*placed)
        chunks.append(Chunk(phase, *shape, repeated))
    arrivals = ((bisect_left(order, at) - 1, size, dtype) for at, size, dtype in ledger.arrivals)

    def placed_in_chunks(noted: Sequence[Noted]) -> tuple[Noted, ...]:
        return tuple((bisect_right(order, at) - 1, size, dtype) for at, size, dtype in noted)

    moved = placed_in_chunks(ledger.moved)
    exchanged = tuple((name, placed_in_chunks(each)) for name, each in ledger.exchanged.items())
    return Trace(tuple(layout.sizes), tuple(chunks), tuple(arrivals), moved, exchanged)


def _shaped(events: Sequence[int], parts: Sequence[Part], moves: Sequence[Move]) -> Shaped:
    peaks, origins = _without_valleys(events)
    by_part = _by_part(part_events(events, parts, moves))
    return peaks, origins, by_part, _net(by_part)


def bytes_in_order(
    trace: Trace, noted: Sequence[Noted], numbers: Numbers, left_out: Sequence[int]
) -> list[int]:
    """Bytes of each tensor that was noted, those of left-out layers too, in order."""
    by_chunk: list[list[int]] = [[] for _ in trace.chunks]
    for place, size, dtype in noted:
        by_chunk[place].append(number_of(size, numbers) * dtype.width)
    found: list[int] = []
    for number, chunk in enumerate(trace.chunks):
        found += by_chunk[number]
        if chunk.repeats is not None:
            first, last, run = chunk.repeats
            found += [each for part in by_chunk[first:last] for each in part] * left_out[run]
    return found


def _late_deaths(
    ledger: Ledger,
    marks: Mapping[Mark, int],
    repeats: Mapping[int, tuple[int, int, int]],
    sizes: list[Bytes],
) -> dict[int, int]:
    """Deaths outside of all layers, of bytes born in a layer that is repeated.

    Such bytes (autocast's copies) die for each left-out layer too; `sizes` gains one for each, and
    the result gives its number by event.
    """
    outside = bytearray(b"\1") * len(ledger.events)
    for start, end in _layer_spans(marks):
        outside[start:end] = bytes(end - start)
    late: dict[int, int] = {}
    for at in compress(range(len(outside)), outside):
        signed, birth = ledger.events[at], ledger.births[at]
        if signed > 0:
            continue
        for start, end, run in repeats.values():
            if start <= birth < end:
                sizes.append(replace(sizes[-signed - 1], run=run))
                late[at] = len(sizes)
    return late


def _layer_spans(marks: Mapping[Mark, int]) -> Iterator[tuple[int, int]]:
    for (stack, position, backward), start in marks.items():
        following = marks.get((stack, position + (-1 if backward else 1), backward))
        if following is not None:
            yield start, following


def _events(ledger: Ledger, late: Mapping[int, int], start: int, end: int) -> Placed:
    """The events of a chunk and their parts, with late deaths of left-out layers put in."""
    first, last = (bisect_right(ledger.moves, at, key=itemgetter(0)) for at in (start, end))
    moves = ledger.moves[first:last]
    if not any(start <= at < end for at in late):
        placed = tuple((at - start, old, new, size) for at, old, new, size in moves)
        return tuple(ledger.events[start:end]), tuple(ledger.parts[start:end]), placed
    events: list[int] = []
    parts: list[Part] = []
    shifts = [0]
    for at in range(start, end):
        events.append(ledger.events[at])
        parts.append(ledger.parts[at])
        if at in late:
            events.append(-late[at])
            parts.append(ledger.parts[at])
        shifts.append(len(events))
    placed = tuple((shifts[at - start], old, new, size) for at, old, new, size in moves)
    return tuple(events), tuple(parts), placed


def _repeats(marks: dict[Mark, int], step: Step) -> Iterator[tuple[int, int, int]]:
    """Start and end of the unit that stands for a run's left-out units, in both directions."""
    for one in windows(step):
        yield marks[one.stack, one.first, False], marks[one.stack, one.end, False], one.run
        yield marks[one.stack, one.end - 1, True], marks[one.stack, one.first - 1, True], one.run


def _unit_starts(ledger: Ledger, step: Step) -> Iterator[int]:
    """Starts of all units of full runs, in both directions: most of them have equal events."""
    marks = {mark: at for at, mark in reversed(ledger.marks)}
    for stack, runs in step.runs:
        position = 0
        for run in runs:
            end = position + len(run.slots)
            for first in range(position, end + 1, run.unit) if run.is_full else ():
                for mark in ((stack, first, False), (stack, first - 1, True)):
                    if mark in marks:
                        yield marks[mark]
            position = end


def _net(
    by_part: Sequence[tuple[Sequence[int], Sequence[int]]],
) -> tuple[tuple[int, int, int], ...]:
    """Part, size and how many more came than went, where that is not none."""
    found = []
    for part, (_, sizes) in zip(Part, by_part, strict=True):
        counts: dict[int, int] = {}
        for size in sizes:
            number = abs(size)
            counts[number] = counts.get(number, 0) + (1 if size > 0 else -1)
        found += [(part, size, count) for size, count in counts.items() if count]
    return tuple(found)


def _by_part(changes: Sequence[PartEvent]) -> ByPart:
    found: list[tuple[list[int], list[int]]] = [([], []) for _ in Part]
    for at, part, size in changes:
        found[part][0].append(at)
        found[part][1].append(size)
    return tuple((tuple(places), tuple(sizes)) for places, sizes in found)


@dataclass(slots=True)
class _Slope:
    """Events that all go up or all go down, by size, and how many had happened at its end."""

    up: bool
    sizes: dict[int, int]
    end: int


def _without_valleys(events: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The events without what goes down and comes up again right after.

    Between two tops only their difference matters, so sizes that a descent and the ascent after
    it have in common are left out of both. Returns the events, and for each how many of the
    given ones had happened by the end of its slope.
    """
    kept: list[_Slope] = []
    at = 0
    for up, group in groupby(events, (0).__lt__):
        sizes: dict[int, int] = {}
        for event in group:
            size = event if up else -event
            sizes[size] = sizes.get(size, 0) + 1
            at += 1
        _append(kept, _Slope(up, sizes, at))
    peaks: list[int] = []
    ends: list[int] = []
    for slope in kept:
        for size, count in slope.sizes.items():
            peaks += [size if slope.up else -size] * count
            ends += [slope.end] * count
    return tuple(peaks), tuple(ends)


def _append(kept: list[_Slope], slope: _Slope) -> None:
    """Put a slope after the others, cancelling it against the descent before it."""
    while slope.sizes:
        before = kept[-1] if kept else None
        if before and before.up is slope.up:
            for size, count in slope.sizes.items():
                before.sizes[size] = before.sizes.get(size, 0) + count
            before.end = slope.end
            slope = kept.pop()
        elif before and slope.up and _cancel(before.sizes, slope.sizes):
            if not before.sizes:
                kept.pop()
        else:
            kept.append(slope)
            return


def _cancel(down: dict[int, int], up: dict[int, int]) -> bool:
    """Leave out of both what they have in common; False if that is nothing."""
    common = down.keys() & up.keys()
    for size in common:
        count = min(down[size], up[size])
        for sizes in (down, up):
            sizes[size] -= count
            if not sizes[size]:
                del sizes[size]
    return bool(common)
