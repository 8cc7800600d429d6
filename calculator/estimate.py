"""What a training step needs: `estimate(architecture, plan) -> MemoryReport`."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from calculator.allocator import round_block
from calculator.architecture import Architecture, Family
from calculator.families.programs import input_shapes
from calculator.families.structure import Run, Structure, layer_runs
from calculator.notes import notes_for
from calculator.overhead import Overhead, estimate_overhead
from calculator.parameters import count_parameters, parameter_tensors, position_count
from calculator.states import Statics, statics
from calculator.tape import Moment
from calculator.techniques import Plan, ResolvedPlan, resolve
from calculator.timeline import measure, parse_size, record, size_bytes

# kinds of attention in our text-to-image transformer, training/attention.py
MASK_KINDS: Final = ("row", "column", "convolutional")


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
        return (
            self.weights + self.gradients + self.optimizer + self.activations + self.temporaries
        )


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
            "plan": asdict(self.plan),
            "parameters": self.parameters,
            "gpu": {
                "peak": self.gpu.total,
                "moment": self.peak_moment.value,
                "overhead": self.overhead.total,
                "parts": asdict(self.gpu),
            },
            "ram": {"peak": self.ram.total, "parts": asdict(self.ram)},
            "moments": [
                {"name": moment.value, "gpu": memory.total, "parts": asdict(memory)}
                for moment, memory in self.moments.items()
            ],
            "transfer": {"to_ram": self.to_ram, "to_gpu": self.to_gpu},
            "notes": list(self.notes),
        }


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
    ram = Memory(static.ram_weights, static.ram_gradients, static.ram_optimizer, 0, static.ram_update)
    return MemoryReport(
        architecture.name,
        resolved,
        count_parameters(architecture, resolved),
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


def buffer_bytes(architecture: Architecture, plan: ResolvedPlan) -> int:
    """Tables that belong to the model and are not trained, counted with the weights."""
    match architecture.family:
        case Family.BERT:
            return 2 * round_block(8 * position_count(architecture, plan))
        case Family.GPTJ:
            positions = rotary_positions(architecture, plan)
            table = round_block(positions * architecture.rotary_size * 4)
            return table * min(plan.sharing_groups, architecture.layers)
        case Family.DALLE:
            # a mask for each kind of attention, angles, and where shifted channels come from
            length = plan.sequence_length
            masks = len(MASK_KINDS) * round_block(length * length)
            angles = 2 * round_block(4 * length * architecture.head_size // 2)
            return masks + angles + 2 * round_block(8 * length)
        case Family.T5 | Family.GPT2:
            return 0


def rotary_positions(architecture: Architecture, plan: ResolvedPlan) -> int:
    """Rows of the table of rotary angles."""
    return max(architecture.sequence_length, plan.sequence_length)


def structure_of(
    architecture: Architecture, plan: ResolvedPlan
) -> tuple[Structure, tuple[int, ...]]:
    """What decides the operations, and how many layers of each run are left out of the tape."""
    runs, left_out = layer_runs(architecture.layers, plan.sharing_groups, architecture.own_last_layer)
    decoder_runs: tuple[Run, ...] = ()
    if architecture.decoder_layers:
        decoder_runs, more = layer_runs(architecture.decoder_layers, plan.sharing_groups, False)
        left_out += more
    structure = Structure(
        family=architecture.family,
        precision=plan.precision,
        attention=plan.attention,
        checkpointing=plan.checkpointing,
        reversible=plan.reversible,
        dropout=plan.dropout > 0,
        tied=plan.tied_embeddings,
        one_sequence=plan.batch_size == 1,
        gradients_exist=plan.accumulation > 1,
        runs=runs,
        decoder_runs=decoder_runs,
        gated=architecture.gated,
    )
    return structure, left_out


def symbols_of(architecture: Architecture, plan: ResolvedPlan) -> dict[str, int]:
    """Elements for each symbol that the tapes use."""
    batch, length, target = plan.batch_size, plan.sequence_length, plan.target_length or 0
    text, side = architecture.text_length, architecture.image_side
    return {
        "B": batch,
        "S": length,
        "T": target,
        "N": batch * length,
        "M": batch * target,
        "d": architecture.hidden_size,
        "e": architecture.hidden_size // 2,
        "w": architecture.hidden_size // 4,
        "h": architecture.heads,
        "a": architecture.attention_size,
        "K": -(-architecture.head_size // 32) * 32,
        "c": -(-length // 128) * 128,
        "z": architecture.attention_size // 2,
        "x": architecture.head_size // 2,
        "f": architecture.feed_forward_size,
        "V": architecture.vocabulary_size,
        "P": position_count(architecture, plan),
        "r": architecture.rotary_size,
        "q": architecture.rotary_size // 2,
        "Y": rotary_positions(architecture, plan),
        "R": architecture.relative_buckets,
        "U": architecture.token_types,
        "t": text,
        "u": text + 1,
        "i": side**2,
        "j": side**2 - 1,
        "y": length + 1,
        "W": architecture.vocabulary_size + text,
        "I": architecture.image_vocabulary_size,
    }
