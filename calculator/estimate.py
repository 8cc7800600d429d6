"""What a training step needs: `estimate(architecture, plan) -> MemoryReport`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from calculator.architecture import Architecture
from calculator.families.programs import input_shapes
from calculator.families.sizes import buffer_bytes, structure_of, symbols_of
from calculator.families.structure import Structure
from calculator.ledger import Moment
from calculator.notes import notes_for
from calculator.overhead import Overhead, estimate_overhead
from calculator.parameters import parameter_tensors
from calculator.states import Statics, statics
from calculator.techniques import Plan, ResolvedPlan, resolve
from calculator.timeline import measure, size_bytes
from calculator.trace import parse_size, record


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes in one place, by what they are for; the total is the sum of the parts."""

    weights: int = 0
    gradients: int = 0
    optimizer: int = 0
    activations: int = 0
    temporaries: int = 0

    @property
    def total(self) -> int:
        """Sum of the parts."""
        return self.weights + self.gradients + self.optimizer + self.activations + self.temporaries


@dataclass(frozen=True, slots=True)
class MemoryReport:
    """A training step's memory: the GPU's at each moment, RAM, and what crosses the bus."""

    model: str
    plan: ResolvedPlan
    parameters: int
    moments: Mapping[Moment, Memory]
    ram: Memory
    overhead: Overhead
    to_ram: int
    to_gpu: int
    notes: tuple[str, ...]

    @property
    def peak_moment(self) -> Moment:
        """The moment that needs most."""
        return max(self.moments, key=lambda moment: self.moments[moment].total)

    @property
    def gpu(self) -> Memory:
        """What lives on the GPU at the peak."""
        return self.moments[self.peak_moment]

    def as_json(self) -> dict[str, Any]:
        """The object of ``--json``; sizes are integers of bytes."""
        return {
            "version": 1,
            "model": self.model,
            "plan": _as_dict(self.plan),
            "parameters": self.parameters,
            "gpu": {
                "peak": self.gpu.total,
                "moment": self.peak_moment.value,
                "overhead": self.overhead.total,
                "parts": _as_dict(self.gpu),
            },
            "ram": {"peak": self.ram.total, "parts": _as_dict(self.ram)},
            "moments": [
                {"name": moment.value, "gpu": memory.total, "parts": _as_dict(memory)}
                for moment, memory in self.moments.items()
            ],
            "transfer": {"to_ram": self.to_ram, "to_gpu": self.to_gpu},
            "notes": list(self.notes),
        }


def _as_dict(record: Memory | ResolvedPlan) -> dict[str, Any]:
    # dataclasses.asdict copies every value in depth, which takes longer than the estimate
    return {name: getattr(record, name) for name in record.__slots__}


def estimate(
    architecture: Architecture, plan: Plan | None = None, generation: str = ""
) -> MemoryReport:
    """The memory that one training step needs, after the first (when states exist).

    Raises:
        InputError: for a plan that this model cannot have.
    """
    resolved = resolve(architecture, plan or Plan())
    tensors = parameter_tensors(architecture, resolved)
    static = statics(tensors, buffer_bytes(architecture, resolved), resolved)
    structure, left_out = structure_of(architecture, resolved)
    gradients = static.gradients if resolved.accumulation > 1 else 0
    symbols = symbols_of(architecture, resolved)
    peaks = measure(
        record(structure), symbols, left_out, (static.weights, gradients, static.optimizer, 0, 0)
    )
    moments = {moment: Memory(*peaks[moment].parts) for moment in list(Moment)[:3]}
    moments[Moment.UPDATE] = _update(static, structure, symbols)
    ram = Memory(
        static.ram_weights, static.ram_gradients, static.ram_optimizer, 0, static.ram_update
    )
    return MemoryReport(
        architecture.name,
        resolved,
        sum(tensor.elements * tensor.copies for tensor in tensors),
        moments,
        ram,
        estimate_overhead(max(memory.total for memory in moments.values()), generation),
        static.to_ram,
        static.to_gpu,
        notes_for(architecture, resolved),
    )


def _update(static: Statics, structure: Structure, symbols: Mapping[str, int]) -> Memory:
    """Token ids stay alive; everything else of the step is gone."""
    shapes = input_shapes(structure.family)
    inputs = sum(size_bytes(parse_size(shape, 8), symbols) for shape in shapes)
    return Memory(static.weights, static.gradients, static.optimizer, inputs, static.update)
