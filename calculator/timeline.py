"""The moments of a step and what lives at each: a trace's symbols turned into bytes."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import prod

from calculator.allocator import round_block
from calculator.ledger import Moment, Part
from calculator.trace import Size, Trace


@dataclass(frozen=True, slots=True)
class Peak:
    """The most bytes that live in one moment, by part."""

    moment: Moment
    parts: tuple[int, ...]

    @property
    def total(self) -> int:
        """Sum of the parts."""
        return sum(self.parts)


def measure(
    trace: Trace, symbols: Mapping[str, int], left_out: Sequence[int], static: Sequence[int]
) -> dict[Moment, Peak]:
    """The peak of each moment.

    Args:
        trace: the recorded step.
        symbols: elements for each symbol.
        left_out: for each run, layers that are not on the tape.
        static: bytes by part that live through the whole step.
    """
    sizes = [size_bytes(size, symbols, left_out) for size in trace.sizes]
    signed = [0, *sizes, *(-size for size in reversed(sizes))]
    highest: dict[Moment, tuple[int, int, int]] = {}
    total = 0
    changes: list[int] = []
    for number, chunk in enumerate(trace.chunks):
        levels = list(accumulate(map(signed.__getitem__, chunk.events), initial=total))
        top = max(levels)
        if chunk.moment not in highest or top > highest[chunk.moment][0]:
            at = levels.index(top)
            highest[chunk.moment] = (top, number, chunk.origins[at - 1] if at else 0)
        changes.append(levels[-1] - total)
        total = levels[-1]
        if chunk.repeats is not None:
            first, last, run = chunk.repeats
            total += left_out[run] * sum(changes[first:last])
    return {
        moment: Peak(moment, _parts(trace, signed, left_out, static, number, at))
        for moment, (_, number, at) in highest.items()
    }


def size_bytes(size: Size, symbols: Mapping[str, int], left_out: Sequence[int] = ()) -> int:
    """Bytes that the allocator gives for a size."""
    elements = size.factor * prod(map(symbols.__getitem__, size.symbols))
    times = 1 if size.run is None else left_out[size.run]
    return round_block(elements * size.item) * times


def _parts(
    trace: Trace,
    signed: Sequence[int],
    left_out: Sequence[int],
    static: Sequence[int],
    number: int,
    at: int,
) -> tuple[int, ...]:
    """Bytes by part after `at` events of chunk `number`."""
    parts = list(static)
    changes: list[list[int]] = []
    for chunk in trace.chunks[:number]:
        change = [0] * len(Part)
        for part, size, count in chunk.net:
            change[part] += count * signed[size]
        changes.append(change)
        _add(parts, change, 1)
        if chunk.repeats is not None:
            first, last, run = chunk.repeats
            for repeated in changes[first:last]:
                _add(parts, repeated, left_out[run])
    for part, (places, changed) in enumerate(trace.chunks[number].part_events):
        parts[part] += sum(map(signed.__getitem__, changed[: bisect_right(places, at)]))
    return tuple(parts)


def _add(parts: list[int], change: Sequence[int], times: int) -> None:
    for part, size in enumerate(change):
        parts[part] += times * size
