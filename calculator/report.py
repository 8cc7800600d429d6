"""The result of an estimate: Report, Memory, Phase, Part."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from calculator.clock import Seconds, Work, why_untimed
from calculator.clock import step_seconds as clocked
from calculator.evidence import Evidence
from calculator.overhead import Overhead
from calculator.parts import Part as Part
from calculator.parts import Phase as Phase
from calculator.plan import Plan
from calculator.techniques.collectives import Collective


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes in one place, by purpose; the total is the sum of the parts."""

    weights: int = 0
    gradients: int = 0
    optimizer: int = 0
    activations: int = 0
    temporaries: int = 0

    @property
    def total(self) -> int:
        """Sum of the parts."""
        return self.weights + self.gradients + self.optimizer + self.activations + self.temporaries

    def as_json(self) -> dict[str, int]:
        """The parts by their names."""
        return {part.key: getattr(self, part.key) for part in Part}


@dataclass(frozen=True, slots=True)
class Report:
    """A training step's memory: the GPU's in each phase, RAM, and transfers over the bus.

    Of several GPUs it is the one that holds the most; `collectives` are what they exchange.

    `trainable_parameters` are those that get a gradient and are updated. `paged` are bytes of
    states in CUDA's managed memory, which neither `phases` nor `ram` have: they are on the GPU
    while there is room beside the peak, and else in RAM. `work` is what the clock times,
    and `evidence` what the answer rests on.
    """

    model: str
    plan: Plan
    parameters: int
    trainable_parameters: int
    phases: Mapping[Phase, Memory]
    ram: Memory
    overhead: Overhead
    to_ram: int
    to_gpu: int
    paged: int
    collectives: tuple[Collective, ...]
    work: Work
    evidence: Evidence
    notes: tuple[str, ...]

    @property
    def peak_phase(self) -> Phase:
        """The phase that needs the most memory."""
        return max(self.phases, key=lambda phase: self.phases[phase].total)

    @property
    def gpu(self) -> Memory:
        """Memory on the GPU at the peak."""
        return self.phases[self.peak_phase]

    @property
    def allocated(self) -> int:
        """Bytes that `max_memory_allocated` reports: tensors and library workspaces."""
        return self.gpu.total + self.overhead.workspace + self.overhead.unsplit

    @property
    def reserved(self) -> int:
        """Bytes that `max_memory_reserved` reports."""
        return self.gpu.total + self.overhead.workspace + self.overhead.slack

    @property
    def used(self) -> int:
        """Bytes that the driver shows for the process."""
        return self.gpu.total + self.overhead.total

    @property
    def seconds(self) -> Seconds | None:
        """Seconds of the step on the plan's card; None where the clock says nothing, see a note."""
        return None if any(why_untimed(self.plan)) else clocked(self.work, self.plan)

    def as_json(self) -> dict[str, Any]:
        """The object of ``--json``, version 3; sizes are integers of bytes.

        Version 1 had ``moment`` and ``moments`` for ``phase`` and ``phases``; version 2 had neither
        the card nor what the allocator and the driver show.
        """
        peak, seconds = self.gpu.total, self.seconds
        return {
            "version": 3,
            "model": self.model,
            # dataclasses.asdict copies every value in depth, which takes longer than the estimate
            "plan": {name: getattr(self.plan, name) for name in self.plan.options()}
            | {"gpu": self.plan.card.name},
            "evidence": self.evidence.as_json(),
            "parameters": self.parameters,
            "trainable_parameters": self.trainable_parameters,
            "gpu": {
                "peak": peak,
                "phase": self.peak_phase.value,
                "allocated": self.allocated,
                "reserved": self.reserved,
                "used": self.used,
                "overhead": self.overhead.total,
                "low": peak + self.overhead.low,
                "high": peak + self.overhead.high,
                "parts": self.gpu.as_json(),
            },
            "ram": {"peak": self.ram.total, "parts": self.ram.as_json()},
            "phases": [
                {"name": phase.value, "gpu": memory.total, "parts": memory.as_json()}
                for phase, memory in self.phases.items()
            ],
            "transfer": {"to_ram": self.to_ram, "to_gpu": self.to_gpu},
            "paged": {
                "bytes": self.paged,
                "peak_with_all": peak + self.paged,
                "most_to_ram": self.paged,
                "most_to_gpu": self.paged,
            },
            "collectives": [each.as_json() for each in self.collectives],
            "seconds": seconds and seconds.as_json(),
            "notes": list(self.notes),
        }
