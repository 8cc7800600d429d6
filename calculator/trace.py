"""A tape made ready to be measured: symbolic sizes, and events in chunks that layers repeat.

A tape holds at most four layers of each run of equal layers. What one more layer of a run adds
to the living bytes, forward and backward, is added for each layer that was left out; inside the
run the total then goes straight up or down, so no layer left out can be the peak.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from math import prod

from calculator.families import programs
from calculator.families.structure import REPEATED, SIMULATED, Structure
from calculator.ledger import Ledger, Mark, Moment, Part
from calculator.tape import Tape


@dataclass(frozen=True, slots=True)
class Size:
    """A symbolic size: `factor` times the symbols, `item` bytes each.

    With `run`, that size once for each left-out layer of the run.
    """

    factor: int
    symbols: tuple[str, ...]
    item: int
    run: int | None = None


@dataclass(frozen=True, slots=True)
class Chunk:
    """Events between two boundaries, all of one moment.

    `events` are signed numbers of sizes, without the valleys that change no peak, and `origins`
    how many of all events had happened at each. `part_events` has for each part the events before
    each of its changes, and the changes as signed numbers of sizes; `net` is what is left at the
    end, as (part, size, how often). `repeats` names the chunks, from and to, that each left-out
    layer of a run repeats after it, and the run.
    """

    moment: Moment
    events: tuple[int, ...]
    origins: tuple[int, ...]
    part_events: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]
    net: tuple[tuple[int, int, int], ...]
    repeats: tuple[int, int, int] | None


@dataclass(frozen=True, slots=True)
class Trace:
    """A recorded step; sizes are numbered from 1."""

    sizes: tuple[Size, ...]
    chunks: tuple[Chunk, ...]


@lru_cache(maxsize=256)
def record(structure: Structure) -> Trace:
    """Run the family's program once on symbols."""
    tape = Tape(structure.weight_item, structure.autocast_item, structure.gradients_exist)
    programs.step(tape, structure)
    return _chunked(tape.ledger, structure)


def _chunked(ledger: Ledger, structure: Structure) -> Trace:
    marks = {mark: at for at, mark in reversed(ledger.marks)}
    moments = dict(ledger.moments)
    moments[marks["head", 0, True]] = Moment.BACKWARD
    repeats = {end: (start, end, run) for start, end, run in _repeats(marks, structure)}
    sizes = [parse_size(*size) for size in ledger.sizes]
    late = _late_deaths(ledger, marks, repeats, sizes)
    edges = {
        0,
        len(ledger.events),
        *moments,
        *repeats,
        *(start for start, _, _ in repeats.values()),
    }
    order = sorted(edges)
    place = {at: number for number, at in enumerate(order)}
    chunks = []
    moment = Moment.FORWARD
    for start, end in pairwise(order):
        moment = moments.get(start, moment)
        left_out = repeats.get(end)
        repeated = left_out and (place[left_out[0]], place[left_out[1]], left_out[2])
        events, parts = _events(ledger, late, start, end)
        peaks, origins = _without_valleys(events)
        chunks.append(Chunk(moment, peaks, origins, _by_part(parts), _net(parts), repeated))
    return Trace(tuple(sizes), tuple(chunks))


def _late_deaths(
    ledger: Ledger,
    marks: Mapping[Mark, int],
    repeats: Mapping[int, tuple[int, int, int]],
    sizes: list[Size],
) -> dict[int, int]:
    """Deaths outside of all layers, of bytes born in a layer that is repeated.

    Such bytes (autocast's copies) die for each left-out layer too; `sizes` gains one for each, and
    the result gives its number by event.
    """
    inside = [range(start, end) for start, end in _layer_spans(marks)]
    late: dict[int, int] = {}
    for at, (signed, birth) in enumerate(zip(ledger.events, ledger.births, strict=True)):
        if signed > 0 or any(at in span for span in inside):
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


def _events(
    ledger: Ledger, late: Mapping[int, int], start: int, end: int
) -> tuple[tuple[int, ...], tuple[tuple[int, int, int], ...]]:
    """The events of a chunk and their parts, with late deaths of left-out layers put in."""
    events: list[int] = []
    parts: list[tuple[int, int, int]] = []
    part_events = [event for event in ledger.part_events if start < event[0] <= end]
    shifts = []
    for at in range(start, end):
        events.append(ledger.events[at])
        if at in late:
            events.append(-late[at])
        shifts.append(len(events))
    for at, part, size in part_events:
        position = shifts[at - start - 1]
        parts.append((position, part, size))
        if size < 0 and at - 1 in late and size == ledger.events[at - 1]:
            parts.append((position, part, -late[at - 1]))
    return tuple(events), tuple(parts)


def _repeats(marks: dict[Mark, int], structure: Structure) -> Iterator[tuple[int, int, int]]:
    """Where the layer starts and ends that stands for a run's left-out layers, both ways."""
    run_number = 0
    for stack, runs in (("layers", structure.runs), ("decoder", structure.decoder_runs)):
        position = 0
        for run in runs:
            if len(run.slots) == SIMULATED:
                layer = position + REPEATED
                yield marks[stack, layer, False], marks[stack, layer + 1, False], run_number
                yield marks[stack, layer, True], marks[stack, layer - 1, True], run_number
            position += len(run.slots)
            run_number += 1


def parse_size(elements: str, item: int) -> Size:
    """``"3*N*d"`` of 2 bytes is Size(3, ("N", "d"), 2)."""
    factors = elements.split("*")
    numbers = [int(factor) for factor in factors if factor.isdecimal()]
    symbols = tuple(factor for factor in factors if not factor.isdecimal())
    return Size(prod(numbers), symbols, item)


def _net(part_events: Sequence[tuple[int, int, int]]) -> tuple[tuple[int, int, int], ...]:
    counts: Counter[tuple[int, int]] = Counter()
    for _, part, size in part_events:
        counts[part, abs(size)] += 1 if size > 0 else -1
    return tuple((part, size, count) for (part, size), count in counts.items() if count)


def _by_part(
    part_events: Sequence[tuple[int, int, int]],
) -> tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]:
    found: list[tuple[list[int], list[int]]] = [([], []) for _ in Part]
    for at, part, size in part_events:
        found[part][0].append(at)
        found[part][1].append(size)
    return tuple((tuple(places), tuple(sizes)) for places, sizes in found)


@dataclass(slots=True)
class _Slope:
    """Events that all go up or all go down, and how many had happened at its end."""

    up: bool
    sizes: Counter[int]
    end: int


def _without_valleys(events: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The events without what goes down and comes up again right after.

    Between two tops only their difference matters, so sizes that a descent and the ascent after
    it have in common are left out of both. Returns the events, and for each how many of the
    given ones had happened by the end of its slope.
    """
    slopes: list[_Slope] = []
    for at, event in enumerate(events):
        if not slopes or slopes[-1].up is not (event > 0):
            slopes.append(_Slope(event > 0, Counter(), at))
        slopes[-1].sizes[abs(event)] += 1
        slopes[-1].end = at + 1
    kept: list[_Slope] = []
    for slope in slopes:
        _append(kept, slope)
    flat = [
        (size if slope.up else -size, slope.end)
        for slope in kept
        for size in slope.sizes.elements()
    ]
    return tuple(event for event, _ in flat), tuple(end for _, end in flat)


def _append(kept: list[_Slope], slope: _Slope) -> None:
    """Put a slope after the others, cancelling it against the descent before it."""
    while slope.sizes:
        if kept and kept[-1].up is slope.up:
            before = kept.pop()
            slope = _Slope(slope.up, before.sizes + slope.sizes, slope.end)
        elif slope.up and kept and (common := kept[-1].sizes & slope.sizes):
            kept[-1].sizes -= common
            slope.sizes -= common
            if not kept[-1].sizes:
                kept.pop()
        else:
            kept.append(slope)
            return
