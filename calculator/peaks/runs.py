"""Runs of equal layers: which of them are put on the tape, and how many are left out.

A run is a unit of one or more consecutive layers that is repeated: a layer whose equals follow it,
or a local and a global one in turn. Layers are compared by their structures and by whether they are
the first or the last to use their weights: the first makes their 16-bit copy, the last one (the
first in the backward pass) makes their gradient.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from calculator.layers.stack import LONGEST_UNIT, Stack

# at most this many units of a run are put on the tape, and one of them stands for those left out:
# the first two and the last may differ from the rest (what all layers share ends with the second)
SIMULATED = 4
# one less of units of three layers and more, since those first ones are all in the first unit, and
# where other layers come first; not of weights in shards, where each layer gathers the one before
SIMULATED_UNITS = 3


@dataclass(frozen=True, slots=True)
class Run:
    """Layers on the tape, by the slots of their weights, in units that behave alike.

    At `most` so many units are put there. Their gradients may be `made_before`, by another stage of
    a pipeline that uses the same weights.
    """

    slots: tuple[int, ...]
    unit: int = 1
    most: int = SIMULATED
    made_before: bool = False

    @property
    def is_full(self) -> bool:
        """True if more units may be left out."""
        return len(self.slots) == self.most * self.unit

    @property
    def repeated(self) -> int:
        """The unit on the tape that stands for those left out: the last but one."""
        return self.most - 2


def _simulated(unit: int, place: int, sharded: bool) -> int:
    """At most how many units of this many layers are put on the tape, of a run at that place."""
    return SIMULATED if sharded or (unit < 3 and not place) else SIMULATED_UNITS


Arranged = tuple[tuple[Run, ...], tuple[int, ...]]


def layer_runs(layers: int, groups: int, own_last: bool) -> Arranged:
    """The runs of equal layers that use `groups` distinct weights cyclically.

    Returns the runs and, for each, how many layers are left out.
    """
    shared = layers - int(own_last)
    single = min(groups, shared - groups) if groups < shared else shared
    counts = [single]  # layers that make a copy of their weights, which others use later
    if groups < shared:
        counts += [abs(shared - 2 * groups), single]
    runs = []
    for number, count in enumerate(counts):
        # weights used only once in a stack stand between those used first and those used last
        once = number == 1 and shared < 2 * groups
        cycle = SIMULATED if once else min(single, SIMULATED)
        slots = (place % cycle + once * SIMULATED for place in range(min(count, SIMULATED)))
        runs.append((Run(tuple(slots), most=SIMULATED), max(0, count - SIMULATED)))
    if own_last:
        runs.append((Run((2 * SIMULATED,)), 0))
    runs = [(run, left_out) for run, left_out in runs if run.slots]
    return tuple(run for run, _ in runs), tuple(left_out for _, left_out in runs)


def unit_runs(keys: Sequence[Any], sharded: bool = False) -> Arranged:
    """The runs of layers that share no weights, in units of the fewest layers.

    Each layer on the tape has a slot of its own.
    """
    runs: list[Run] = []
    left_out: list[int] = []
    place = slot = 0
    while place < len(keys):
        unit, count = _longest(keys, place, sharded)
        most = _simulated(unit, place, sharded)
        units = min(count, most)
        kept = units * unit
        runs.append(Run(tuple(range(slot, slot + kept)), unit, most))
        left_out.append(count - units)
        place += count * unit
        slot += kept
    return tuple(runs), tuple(left_out)


def _longest(keys: Sequence[Any], place: int, sharded: bool) -> tuple[int, int]:
    """The unit that begins at a place and how often it is there: the one that covers most."""
    best = (1, _count(keys, place, 1))
    for unit in range(2, LONGEST_UNIT + 1):
        count = _count(keys, place, unit)
        if count > _simulated(unit, place, sharded) and count * unit > best[0] * best[1]:
            best = (unit, count)
    return best


def _count(keys: Sequence[Any], place: int, unit: int) -> int:
    count, first = 1, keys[place : place + unit]
    while first == keys[place + count * unit : place + (count + 1) * unit]:
        count += 1
    return count


def arrange(
    stack: Stack[Any],
    groups: int,
    own_last: bool,
    keeping: Sequence[bool] = (),
    sharded: bool = False,
    shared: Sequence[int] = (),
) -> tuple[Stack[Any], Arranged]:
    """The stack with the layers that are put on the tape, its runs, and what they leave out.

    Layer i uses the weights of layer i modulo `groups`, but for a last one of its own. Where some
    layers are `keeping` their activations under checkpointing, none may share weights. Their
    weights may be in shards (`sharded`). Where a GPU's stages share weights, `shared` has slots.
    """
    layers, kinds = stack.layers, stack.kinds
    kept: tuple[bool, ...] = ()
    if len({kind.structure for kind in kinds}) == 1 and not any(keeping) and not shared:
        runs, left_out = layer_runs(layers, groups, own_last)
        used = kinds[:1]
    elif groups >= layers and not shared:
        each = [kinds[place % len(kinds)] for place in range(layers)]
        keeping = keeping or (False,) * layers
        keys = [(kind.structure, keeps) for kind, keeps in zip(each, keeping, strict=True)]
        runs, left_out = unit_runs(keys, sharded)
        taped = _taped(runs, left_out)
        used = tuple(each[place] for place in taped)
        kept = tuple(keeping[place] for place in taped) if any(keeping) else ()
    else:  # layers of several kinds, or stages, that share weights: all are put on the tape
        slots = [*shared] or [place % groups for place in range(layers)]
        used = tuple(kinds[slot % len(kinds)] for slot in slots)
        runs, left_out = tuple(Run((slot,)) for slot in slots), (0,) * layers
        kept = tuple(keeping[slot] for slot in slots) if any(keeping) else ()
    slots_used = tuple(slot for run in runs for slot in run.slots)
    short = stack.altered(kinds=used, layers=len(slots_used), slots=slots_used, keeping=kept)
    return short, (runs, left_out)


def _taped(runs: Sequence[Run], left_out: Sequence[int]) -> list[int]:
    """The places of the layers that are put on the tape."""
    taped: list[int] = []
    place = 0
    for run, more in zip(runs, left_out, strict=True):
        taped += range(place, place + len(run.slots))
        place += len(run.slots) + more * run.unit
    return taped
