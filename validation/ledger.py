"""Allocations alive on the device during one step, from the log of its allocator.

Nothing watches the operations themselves: the log has births and deaths, and what bytes are for
follows from a few marks (the phases of the step, the gradients' hooks) and from what is known
before the step (weights, states, inputs).
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate

import torch

from validation.counting_device import Entry, Log, Place
from validation.storage import Event, Part, Peak, Phase, Storage, block_bytes

FOREVER = 1 << 62


@dataclass(slots=True)
class Marks:
    """Places in the log at which a step went on to something else."""

    phases: list[tuple[int, Phase]] = field(default_factory=list)
    micro_steps: list[int] = field(default_factory=list)
    forward_ends: list[int] = field(default_factory=list)
    gradients: list[tuple[int, int]] = field(default_factory=list)  # place, block
    backward_done: int = 0

    def phase(self, at: int) -> Phase:
        """The phase at a place."""
        return self.phases[bisect_right(self.phases, at, key=lambda item: item[0]) - 1][1]


class Ledger:
    """Marks the log of one device while steps run, and reads it afterwards."""

    def __init__(self, place: Place) -> None:
        self.log = Log()
        self.place = place
        self._first = self.log.blocks + 1  # older blocks belong to somebody else
        self._known: dict[int, Part] = {}

    def enter(self, tensors: Iterable[torch.Tensor], part: Part) -> None:
        """Say what bytes that exist already are for."""
        for tensor in tensors:
            if block := self.log.block(getattr(tensor, "_local_tensor", tensor)):
                self._known[block] = part

    def alive(self) -> dict[int, int]:
        """Bytes asked for of every block on the device; what nobody entered are tables that stay.

        A first forward pass leaves tables behind; they count as weights.
        """
        return {
            block: size
            for block, (size, place) in self.log.alive().items()
            if place is self.place and block >= self._first
        }

    def part(self, block: int) -> Part:
        """Part of a block that existed before the step."""
        return self._known.get(block, Part.WEIGHTS)

    def total(self, part: Part) -> int:
        """Bytes alive now, between two steps, for one purpose."""
        blocks = self.alive().items()
        return sum(block_bytes(size) for block, size in blocks if self.part(block) is part)

    def counts(self, entry: Entry) -> bool:
        """True if a birth is one on the device.

        In this machine's own memory Python's numbers, as in ``x * 0.5``, and the state of the
        random generator that checkpointing saves are births too, outside of any operation; beside
        a GPU they lie in RAM.
        """
        return entry.place is self.place and (self.place is Place.GPU or bool(entry.operation))

    def start(self) -> None:
        """A step begins."""
        self.before = self.alive()
        self.host_before = self._host()
        self.marks = Marks()
        self.log.start()

    def stop(self) -> "Step":
        """The step is over."""
        self.log.stop()
        return Step(self, self.log.entries())

    def _host(self) -> int:
        """Bytes in RAM beside the device."""
        found = self.log.alive().items()
        return sum(
            size
            for block, (size, place) in found
            if place is not self.place and block >= self._first
        )

    # -- what the step reports ---------------------------------------------------------------

    def start_micro_step(self) -> None:
        """A forward pass begins."""
        self.marks.micro_steps.append(self.log.size)
        self.start_phase(Phase.FORWARD)

    def start_phase(self, phase: Phase) -> None:
        """A phase begins; what is alive now belongs to it too."""
        self.marks.phases.append((self.log.size, phase))

    @property
    def phase(self) -> Phase:
        """The phase that the step is in."""
        return self.marks.phases[-1][1]

    def keep(self) -> None:
        """Forward is over: what lives now is kept for backward."""
        self.marks.forward_ends.append(self.log.size)

    def gradient(self, parameter: torch.Tensor) -> None:
        """A gradient is complete."""
        assert parameter.grad is not None
        gradient = getattr(parameter.grad, "_local_tensor", parameter.grad)
        self.marks.gradients.append((self.log.size, self.log.block(gradient)))

    def backward_done(self) -> None:
        """All gradients exist."""
        self.marks.backward_done = self.log.size


class Step:
    """One step read from the log: every storage of the device, and the peaks."""

    def __init__(self, ledger: Ledger, entries: list[Entry]) -> None:
        self.marks = ledger.marks
        self.entries = entries
        self._ledger = ledger
        self._modules = sorted(ledger.log.modules, key=lambda item: item[0])

    @cached_property
    def storages(self) -> list[Storage]:
        """Everything that was alive at some time of the step."""
        births: dict[int, int] = dict.fromkeys(self._ledger.before, -1)
        deaths: dict[int, int] = {}
        copies = set()
        for at, entry in enumerate(self.entries):
            if entry.bytes > 0 and self._ledger.counts(entry):
                births[entry.block] = at
            elif entry.block not in births:
                continue
            elif entry.bytes < 0:
                deaths[entry.block] = at
            elif self._is_copy_of_weight(at, entry):
                copies.add(entry.block)
        gradients: dict[int, int] = {}
        for at, block in self.marks.gradients:
            gradients.setdefault(block, at)
        return [
            self._storage(block, born, deaths.get(block, FOREVER), block in copies, gradients)
            for block, born in births.items()
        ]

    def _is_copy_of_weight(self, at: int, entry: Entry) -> bool:
        """Autocast's 16-bit copies are casts of weights."""
        known = self._ledger.before
        if entry.other not in known or self.marks.phase(at) is Phase.UPDATE:
            return False
        return self._ledger.part(entry.other) is Part.WEIGHTS

    def _storage(
        self, block: int, born: int, died: int, is_copy: bool, gradients: dict[int, int]
    ) -> Storage:
        parts = [(born, self._part(block, born, died, is_copy))]
        if block in gradients and parts[0][1] is not Part.GRADIENTS:
            parts.append((gradients[block], Part.GRADIENTS))
        if born < 0:
            size = self._ledger.before[block]
            return Storage(size, block_bytes(size), "", "", "", "", tuple(parts), born, died)
        entry = self.entries[born]
        return Storage(
            entry.bytes,
            block_bytes(entry.bytes),
            entry.operation,
            self._module(entry),
            entry.node,
            entry.shape,
            tuple(parts),
            born,
            died,
        )

    def _part(self, block: int, born: int, died: int, is_copy: bool) -> Part:
        if born < 0:
            return self._ledger.part(block)
        if is_copy:
            return Part.COPIES
        for start, end in zip(self.marks.micro_steps, self.marks.forward_ends, strict=True):
            if start <= born < end <= died:
                return Part.ACTIVATIONS
        return Part.TEMPORARIES

    def _module(self, entry: Entry) -> str:
        """The module of an entry; in backward, the one that made the node."""
        if entry.module or entry.sequence < 0:
            return entry.module
        place = bisect_right(self._modules, entry.sequence, key=lambda item: item[0])
        return self._modules[place - 1][1]

    @cached_property
    def totals(self) -> list[int]:
        """Bytes alive on the device after each entry."""
        changes = dict.fromkeys(range(-1, len(self.entries)), 0)
        for item in self.storages:
            changes[item.born] += item.bytes
            if item.died != FOREVER:
                changes[item.died] -= item.bytes
        start = changes.pop(-1)
        return list(accumulate(changes.values(), initial=start))[1:]

    @cached_property
    def peaks(self) -> dict[Phase, Peak]:
        """The highest total of each phase."""
        highest: dict[Phase, int] = {}
        ends = [at for at, _ in self.marks.phases[1:]] + [len(self.entries)]
        for (start, phase), end in zip(self.marks.phases, ends, strict=True):
            places = range(start - 1, end)  # what is alive when the phase starts belongs to it
            best = max(places, key=self._total)
            if phase not in highest or self._total(best) > self._total(highest[phase]):
                highest[phase] = best
        return {phase: self._peak(at, phase) for phase, at in highest.items()}

    def _total(self, at: int) -> int:
        if at < 0:
            return sum(map(block_bytes, self._ledger.before.values()))
        return self.totals[at]

    def _peak(self, at: int, phase: Phase) -> Peak:
        alive = list(self.alive(at))
        inside = at >= 0 and self.marks.phase(at) is phase
        entry = self.entries[at] if inside else None
        return Peak(
            self._total(at),
            sum(item.size for item in alive),
            self.parts(at),
            entry.operation if entry else "(start)",
            self._module(entry) if entry else "",
            at,
        )

    def alive(self, at: int) -> Iterator[Storage]:
        """Everything that is alive after an entry."""
        return (item for item in self.storages if item.lives(at))

    def parts(self, at: int) -> dict[Part, int]:
        """Bytes alive after an entry by part."""
        found = dict.fromkeys(Part, 0)
        for item in self.alive(at):
            found[item.part(at)] += item.bytes
        return found

    @property
    def kept(self) -> int:
        """The place at which the last forward pass was over."""
        return self.marks.forward_ends[-1] - 1

    @property
    def gradients(self) -> int:
        """Bytes of all gradients when backward was over."""
        return self.parts(self.marks.backward_done - 1)[Part.GRADIENTS]

    @property
    def host_peak(self) -> int:
        """The most bytes in RAM beside the device."""
        highest = total = self._ledger.host_before
        for entry in self.entries:
            if entry.place is not self._ledger.place:
                total += entry.bytes
                highest = max(highest, total)
        return highest

    def events(self) -> list[Event]:
        """The step operation by operation."""
        found: list[Event] = []
        start, before = 0, self._total(-1)
        for at, entry in enumerate(self.entries):
            following = self.entries[at + 1] if at + 1 < len(self.entries) else None
            if following is not None and _operation(following) == _operation(entry):
                continue
            made = [item for item in self.entries[start : at + 1] if item.bytes > 0]
            total = self._total(at)
            found.append(
                Event(
                    at,
                    self.marks.phase(at),
                    entry.operation,
                    self._module(entry),
                    entry.node,
                    total,
                    total - before,
                    tuple(item.shape or f"{item.bytes} bytes" for item in made),
                )
            )
            start, before = at + 1, total
        return found


def _operation(entry: Entry) -> tuple[str, str, int, str]:
    return entry.operation, entry.node, entry.sequence, entry.module
