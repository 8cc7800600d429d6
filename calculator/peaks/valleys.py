"""Events without what goes down and comes up again right after."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(slots=True)
class _Slope:
    """Events that all go up or all go down, by size, and how many had happened at its end."""

    up: bool
    sizes: dict[int, int]
    end: int


def without_valleys(events: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The events without what goes down and comes up again right after.

    Between two tops only their difference matters, so sizes that a descent and the ascent after
    it have in common are left out of both. Returns the events, and for each how many of the
    given ones had happened by the end of its slope.
    """
    kept: list[_Slope] = []
    up, sizes = True, dict[int, int]()
    for at, event in enumerate(events):
        if (event > 0) is not up:
            _append(kept, _Slope(up, sizes, at))
            up, sizes = not up, {}
        size = event if up else -event
        sizes[size] = sizes.get(size, 0) + 1
    _append(kept, _Slope(up, sizes, len(events)))
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
