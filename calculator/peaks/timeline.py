"""The phases of a step and the memory in each: a trace's sizes turned into bytes."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import prod

from calculator.allocator import round_block
from calculator.autograd.sizes import Numbers
from calculator.parts import Part, Phase
from calculator.peaks.chunks import Bytes, Trace


@dataclass(frozen=True, slots=True)
class Peak:
    """Peak bytes in one phase, by part."""

    phase: Phase
    parts: tuple[int, ...]

    @property
    def total(self) -> int:
        """Sum of the parts."""
        return sum(self.parts)


def measure(
    trace: Trace, numbers: Numbers, left_out: Sequence[int], static: Sequence[int]
) -> dict[Phase, Peak]:
    """The peak of each phase.

    Args:
        trace: the recorded step.
        numbers: those of the sizes' names.
        left_out: for each run, units of layers that are not on the tape.
        static: bytes by part that live through the whole step.
    """
    sizes = bytes_of(trace.sizes, numbers, left_out)
    signed = [0, *sizes, *(-size for size in reversed(sizes))]
    highest: dict[Phase, tuple[int, int, int]] = {}
    total = 0
    changes: list[int] = []
    hills: dict[int, tuple[int, int, int]] = {}  # of chunks that share their events
    for number, chunk in enumerate(trace.chunks):
        hill = hills.get(id(chunk.events))
        if hill is None:
            levels = list(accumulate(map(signed.__getitem__, chunk.events), initial=0))
            top = max(levels)
            hill = hills[id(chunk.events)] = top, levels.index(top), levels[-1]
        top, at, change = hill
        if chunk.phase not in highest or total + top > highest[chunk.phase][0]:
            highest[chunk.phase] = (total + top, number, chunk.origins[at - 1] if at else 0)
        changes.append(change)
        total += change
        if chunk.repeats is not None:
            count, run = chunk.repeats
            total += left_out[run] * sum(changes[-count:])
    return {
        phase: Peak(phase, _parts(trace, signed, left_out, static, number, at))
        for phase, (_, number, at) in highest.items()
    }


def bytes_of(sizes: Sequence[Bytes], numbers: Numbers, left_out: Sequence[int]) -> list[int]:
    """Bytes that the allocator gives for each size."""
    named = {item for each in sizes for item in each.size.dimensions}
    value = {dimension: dimension.number(numbers) for dimension in named}.__getitem__
    return [
        round_block(each.size.factor * prod(map(value, each.size.dimensions)) * each.dtype.width)
        * (1 if each.run is None else left_out[each.run])
        for each in sizes
    ]


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
    made: dict[int, list[int]] = {}  # of chunks that have the same net
    for chunk in trace.chunks[:number]:
        change = made.get(id(chunk.net))
        if change is None:
            change = made[id(chunk.net)] = [0] * len(Part)
            for part, size, count in chunk.net:
                change[part] += count * signed[size]
        changes.append(change)
        if any(change):
            _add(parts, change, 1)
        if chunk.repeats is not None:
            repeated, run = chunk.repeats
            for change in changes[-repeated:]:
                _add(parts, change, left_out[run])
    for part, (places, changed) in enumerate(trace.chunks[number].part_events):
        parts[part] += sum(map(signed.__getitem__, changed[: bisect_right(places, at)]))
    return tuple(parts)


def _add(parts: list[int], change: Sequence[int], times: int) -> None:
    for part, size in enumerate(change):
        parts[part] += times * size
