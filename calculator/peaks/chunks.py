"""A tape made ready to be measured: sizes, and events in chunks that layers repeat.

What one more unit of a run (`calculator.peaks.runs`) adds to the living bytes, forward and
backward, is added for each unit that was left out; inside the run the total then goes straight up
or down, so no layer left out can be the peak.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress, pairwise
from operator import itemgetter

from calculator.autograd.dtypes import DType
from calculator.autograd.ledger import (
    ARRIVED,
    Ledger,
    Mark,
    Move,
    PartEvent,
    Product,
    part_events,
)
from calculator.autograd.sizes import Numbers, Size, number_of
from calculator.parts import Part, Phase
from calculator.peaks.step import Step, windows
from calculator.peaks.valleys import without_valleys


@dataclass(frozen=True, slots=True)
class Bytes:
    """A size in a number format; with `run`, that size once for each left-out unit of the run."""

    size: Size
    dtype: DType
    run: int | None = None


# what happens to a tensor, its elements and format
Note = tuple[str, Size, DType]
# for each part, the events before each of its changes, and the changes
ByPart = tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]
# sizes, and how many tensors of each are made
Births = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Chunk:
    """Events between two boundaries, all of one phase.

    `events` are signed numbers of sizes, without the valleys that change no peak, and `origins`
    how many of all events had happened at each. `part_events` has for each part the events before
    each of its changes, and the changes as signed numbers of sizes; `net` is what is left at the
    end, as (part, size, how often). `repeats` says that this chunk and some before it, so many
    together, are there once more for each left-out layer of a run, and names the run. `births` are
    the tensors made, as (size, how often), `products` those of matrices, and `notes` what the
    ledger has of tensors. The same chunk may stand in several places.
    """

    phase: Phase
    events: tuple[int, ...]
    origins: tuple[int, ...]
    part_events: ByPart
    net: tuple[tuple[int, int, int], ...]
    repeats: tuple[int, int] | None = None
    births: Births = ()
    products: tuple[Product, ...] = ()
    notes: tuple[Note, ...] = ()


# events, their parts, and moves between parts; all that a chunk keeps of them
Placed = tuple[tuple[int, ...], tuple[Part, ...], tuple[Move, ...]]
Shaped = tuple[tuple[int, ...], tuple[int, ...], ByPart, tuple[tuple[int, int, int], ...]]


@dataclass(frozen=True, slots=True)
class Trace:
    """A recorded step; sizes are numbered from 1."""

    sizes: tuple[Bytes, ...]
    chunks: tuple[Chunk, ...]


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


def chunked(ledger: Ledger, step: Step) -> Trace:
    """The trace of a recorded step."""
    layout = layout_of(ledger, step)
    _, chunks = chunks_of(ledger, step, layout)
    return Trace(tuple(layout.sizes), tuple(chunks))


def chunks_of(
    ledger: Ledger, step: Step, layout: Layout, cuts: Sequence[int] = ()
) -> tuple[list[int], list[Chunk]]:
    """The boundaries of all chunks, by event number, and the chunks; `cuts` are some more."""
    order = sorted({*layout.edges, *cuts, *_unit_starts(ledger, step)})
    place = {at: number for number, at in enumerate(order)}
    chunks = []
    shapes: dict[Placed, tuple[Shaped, Births]] = {}
    phase = Phase.FORWARD
    late = sorted(layout.late)
    notes = _notes(ledger, order)
    for number, (start, end) in enumerate(pairwise(order)):
        phase = layout.phases.get(start, phase)
        repeated = layout.repeats.get(end)
        count = repeated and (place[end] - place[repeated[0]], repeated[2])
        own = late[bisect_left(late, start) : bisect_left(late, end)]
        placed = _events(ledger, {at: layout.late[at] for at in own}, start, end)
        shape = shapes.get(placed)
        if shape is None:  # layers that behave alike have equal events
            shape = shapes[placed] = _shaped(*placed), _births(placed[0])
        first, last = (bisect_left(ledger.products, (at,)) for at in (start, end))
        made = tuple(product for _, product in ledger.products[first:last])
        chunks.append(Chunk(phase, *shape[0], count, shape[1], made, tuple(notes[number])))
    return order, chunks


def _notes(ledger: Ledger, order: Sequence[int]) -> list[list[Note]]:
    """The notes in each chunk; a gradient is complete before a layer ends."""
    found: list[list[Note]] = [[] for _ in order]
    for at, what, size, dtype in ledger.notes:
        bisect = bisect_left if what == ARRIVED else bisect_right
        found[bisect(order, at) - 1].append((what, size, dtype))
    return found


def chunk_of(phase: Phase, events: Sequence[int], parts: Sequence[Part]) -> Chunk:
    """A chunk of some events alone."""
    return Chunk(phase, *_shaped(events, parts, ()))


def _shaped(events: Sequence[int], parts: Sequence[Part], moves: Sequence[Move]) -> Shaped:
    peaks, origins = without_valleys(events)
    by_part = _by_part(part_events(events, parts, moves))
    return peaks, origins, by_part, _net(by_part)


def _births(events: Sequence[int]) -> Births:
    return tuple(Counter(signed for signed in events if signed > 0).items())


def noted_bytes(
    chunks: Sequence[Chunk], what: str, numbers: Numbers, left_out: Sequence[int]
) -> list[int]:
    """Bytes of each tensor to which this happens, those of left-out layers too, in order."""
    return [size for size, _ in noted(chunks, what, numbers, left_out)]


def noted(
    chunks: Sequence[Chunk], what: str, numbers: Numbers, left_out: Sequence[int]
) -> list[tuple[int, DType]]:
    """The same with the formats."""
    by_chunk = [
        [
            (number_of(size, numbers) * dtype.width, dtype)
            for name, size, dtype in chunk.notes
            if name == what
        ]
        for chunk in chunks
    ]
    found: list[tuple[int, DType]] = []
    for number, chunk in enumerate(chunks):
        found += by_chunk[number]
        if chunk.repeats is not None:
            count, run = chunk.repeats
            repeated = by_chunk[number + 1 - count : number + 1]
            found += [each for part in repeated for each in part] * left_out[run]
    return found


def _late_deaths(
    ledger: Ledger,
    marks: Mapping[Mark, int],
    repeats: Mapping[int, tuple[int, int, int]],
    sizes: list[Bytes],
) -> dict[int, int]:
    """Deaths outside of all layers, of bytes born in a layer that is repeated.

    Such bytes (autocast's copies) die for each left-out layer too, but not those that took others'
    place in that layer; `sizes` gains one for each, and the result gives its number by event.
    """
    outside = bytearray(b"\1") * len(ledger.events)
    for start, end in layer_spans(marks):
        outside[start:end] = bytes(end - start)
    late: dict[int, int] = {}
    spans = sorted(repeats.values())  # no two of them meet
    starts = [start for start, _, _ in spans]
    inside = [Counter(ledger.events[start:end]) for start, end, _ in spans]
    for at in compress(range(len(outside)), outside):
        signed, birth = ledger.events[at], ledger.births[at]
        place = bisect_right(starts, birth) - 1
        if signed > 0 or place < 0 or birth >= spans[place][1]:
            continue
        if inside[place][-signed] > inside[place][signed]:
            inside[place][signed] += 1
            sizes.append(replace(sizes[-signed - 1], run=spans[place][2]))
            late[at] = len(sizes)
    return late


def layer_spans(marks: Mapping[Mark, int]) -> Iterator[tuple[int, int]]:
    """From where to where each layer's events are, in both directions."""
    for (stack, position, backward), start in marks.items():
        following = marks.get((stack, position + (-1 if backward else 1), backward))
        if following is not None:
            yield start, following


def _events(ledger: Ledger, late: Mapping[int, int], start: int, end: int) -> Placed:
    """The events of a chunk and their parts, with its late deaths of left-out layers put in."""
    first, last = (bisect_right(ledger.moves, at, key=itemgetter(0)) for at in (start, end))
    moves = ledger.moves[first:last]
    if not late:
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
        first = one.stack, one.first, False
        if first in marks:  # only shards of a pipeline have a reduction
            yield marks[first], marks[one.stack, one.end, False], one.run
        last = one.stack, one.end - 1, True
        if last not in marks:
            continue
        begin, end = marks[last], marks[one.stack, one.first - 1, True]
        if begin < end:  # no gradient goes through frozen layers below all that is trained
            yield begin, end, one.run


def _unit_starts(ledger: Ledger, step: Step) -> Iterator[int]:
    """Starts of all units of full runs, in both directions: most of them have equal events."""
    marks = {mark: at for at, mark in reversed(ledger.marks)}
    for stack, _, runs in step.stacks():
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
