"""The memory of a training step: `estimate(architecture, plan) -> Report`."""

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Final

from calculator.allocator import round_block
from calculator.architecture import Architecture
from calculator.autograd.sizes import elements_of, number_of
from calculator.notes import notes_for
from calculator.overhead import estimate_overhead
from calculator.parallel import bucket_bytes, collectives, parallel_notes, shard_statics
from calculator.parameters import buffer_bytes, parameter_tensors
from calculator.parts import Part
from calculator.peaks.prepare import Prepared, prepare
from calculator.peaks.timeline import measure
from calculator.peaks.trace import Step, record
from calculator.plan import DataParallel, Plan
from calculator.report import Memory, Phase, Report
from calculator.resolution import resolve
from calculator.states import Statics, statics
from calculator.techniques.activation_offload import moved_inputs, ram_of


def estimate(architecture: Architecture, plan: Plan | None = None, generation: str = "") -> Report:
    """The memory that one training step needs, after the first one, when states exist.

    Raises:
        InputError: if the model does not support the plan.
    """
    resolved = resolve(architecture, plan or Plan())
    static, parameters, trainable = static_of(architecture, resolved)
    prepared = prepare(architecture, resolved)
    exchanged = collectives(architecture, prepared, resolved)
    static = replace(static, buckets=bucket_bytes(exchanged))
    numbers = tuple(prepared.numbers.items())
    parts = _recorded_parts(prepared.step, numbers, prepared.left_out)
    always = static_parts(static, resolved)
    phases = {
        phase: Memory(*(more + size for more, size in zip(always, parts[phase], strict=True)))
        for phase in list(Phase)[:3]
    }
    phases[Phase.UPDATE] = update_memory(static, prepared, resolved)
    moved = moved_inputs(prepared, resolved)
    ram = Memory(
        static.ram_weights,
        static.ram_gradients,
        static.ram_optimizer,
        ram_of(moved, resolved),
        static.ram_update,
    )
    over_bus = sum(moved) * resolved.accumulation
    return Report(
        architecture.name,
        resolved,
        parameters,
        trainable,
        phases,
        ram,
        estimate_overhead(max(memory.total for memory in phases.values()), generation),
        static.to_ram + over_bus,
        static.to_gpu + over_bus,
        exchanged,
        (
            *notes_for(architecture, resolved),
            *parallel_notes(architecture, resolved, exchanged),
        ),
    )


def least(architecture: Architecture, plan: Plan) -> int:
    """Bytes that no step of this plan can do without: those of the update, all else left out.

    Found without recording the step, so a search that asks first saves most of its time.

    Raises:
        InputError: if the model does not support the plan.
    """
    static, *_ = static_of(architecture, resolve(architecture, plan))
    return static.weights + static.gradients + static.optimizer + static.update


# the options that weights, gradients, states and the update depend on; a search tries many plans
# that differ in others only
STATIC_OPTIONS: Final = (
    "sequence_length",
    "target_length",
    "precision",
    "optimizer",
    "optimizer_bits",
    "update",
    "update_in_backward",
    "offload",
    "sharing_groups",
    "tied_embeddings",
    "lora",
    "lora_targets",
    "lora_dropout",
    "lora_bias",
    "lora_modules",
    "quantization",
    "gpus",
    "data_parallel",
)
MOST_STATICS: Final = 512
Static = tuple[Statics, int, int]
_statics: dict[tuple[object, ...], Static] = {}


def static_of(architecture: Architecture, plan: Plan) -> Static:
    """Weights, gradients and states of a resolved plan; parameters, and how many are trained."""
    # of the batch it matters only whether it is a single sequence, see `ParameterTensor.inside`
    single = plan.batch_size == 1
    key = (architecture, single, *(getattr(plan, name) for name in STATIC_OPTIONS))
    found = _statics.get(key)
    if found is None:
        tensors = parameter_tensors(architecture, plan)
        static = statics(tensors, buffer_bytes(architecture, plan), plan)
        if plan.is_sharded:
            static = shard_statics(architecture, tensors, plan)
        trained = sum(tensor.elements * tensor.copies for tensor in tensors if tensor.trained)
        found = static, sum(tensor.elements * tensor.copies for tensor in tensors), trained
        if len(_statics) >= MOST_STATICS:
            _statics.clear()
        _statics[key] = found
    return found


@lru_cache(maxsize=512)
def _recorded_parts(
    step: Step, numbers: tuple[tuple[str, int], ...], left_out: tuple[int, ...]
) -> Mapping[Phase, tuple[int, ...]]:
    """Bytes that a recorded step adds, by part, at the peak of each phase.

    What lives through the whole step, such as the optimizer's states, moves no peak: plans that
    differ only in it share this.
    """
    nothing = [0] * len(Part)
    peaks = measure(record(step), dict(numbers), left_out, nothing)
    return {phase: peak.parts for phase, peak in peaks.items()}


def static_parts(static: Statics, plan: Plan) -> tuple[int, ...]:
    """Bytes by part that live through the forward and the backward pass."""
    gradients = static.gradients if plan.accumulation > 1 else 0
    return (static.weights, gradients + static.buckets, static.optimizer, 0, 0)


def update_memory(static: Statics, prepared: Prepared, plan: Plan) -> Memory:
    """The update's: token ids stay alive; everything else of the step is gone."""
    step = prepared.step
    inputs = sum(
        round_block(number_of(elements_of(shape), prepared.numbers) * dtype.width)
        for shape, dtype in zip(
            step.model.inputs(step.mode), step.model.formats(step.mode), strict=True
        )
    )
    gradients = static.gradients + static.buckets
    if plan.gpus > 1 and plan.data_parallel is DataParallel.DDP_VIEW:
        gradients = static.buckets
    return Memory(static.weights, gradients, static.optimizer, inputs, static.update)
