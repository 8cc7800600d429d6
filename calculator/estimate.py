"""The memory of a training step: `estimate(architecture, plan) -> Report`, or its totals."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from operator import attrgetter
from typing import Final

from calculator.allocator import round_block
from calculator.architecture import Architecture
from calculator.autograd.sizes import elements_of, number_of
from calculator.clock import Work, assumptions, why_untimed, work_of
from calculator.compose import changed_model, collectives, composed, notes_of, stage_models
from calculator.errors import InputError
from calculator.evidence import evidence_of
from calculator.notes import notes_for
from calculator.overhead import estimate_overhead
from calculator.parameters import buffer_bytes, parameter_tensors
from calculator.parts import Part
from calculator.peaks.cached import embeddings_bytes
from calculator.peaks.outputs import cached_bytes, output_bytes, with_outputs
from calculator.peaks.prepare import mode_of, numbers_of, prepare
from calculator.peaks.step import Prepared, Step, inputs_of
from calculator.peaks.timeline import measure
from calculator.peaks.trace import bytes_after_forward, record, tentatively
from calculator.plan import DataParallel, Loop, Plan
from calculator.report import Memory, Phase, Report
from calculator.resolution import resolve
from calculator.states import statics
from calculator.techniques.activation_offload import moved_inputs, ram_of
from calculator.techniques.collectives import Collective, by_name
from calculator.techniques.cpu_offload import moved_shards
from calculator.techniques.data_parallel import bucket_bytes
from calculator.techniques.effect import Answer, Stored
from calculator.techniques.expert_parallel import with_most_rows
from calculator.techniques.pipeline import parts_of
from calculator.tensors import Statics
from calculator.units import format_bytes


def estimate(architecture: Architecture, plan: Plan | None = None) -> Report:
    """The memory that one training step needs, after the first one, when states exist.

    Raises:
        InputError: if the model does not support the plan.
    """
    resolved = resolve(architecture, plan or Plan())
    _, parameters, trainable = static_of(architecture, resolved)
    parts = tuple(_each(architecture, resolved))
    part, static, counted = max(parts, key=lambda each: each[2].peak)
    exchanged = by_name(counted.exchanged)
    works = (work_of(one.prepared, own, resolved, one.exchanged) for _, own, one in parts)
    most = counted.peak
    if resolved.expert_parallel > 1:
        most = _count(with_most_rows(architecture, resolved), resolved, static).peak
    tensors = partial(parameter_tensors, architecture, resolved)
    answer = Answer(architecture, part, resolved, counted.prepared, tensors, exchanged, most)
    micro_batches = 1 if counted.prepared.step.turns else resolved.rounds
    over_bus = sum(counted.moved) * micro_batches
    return Report(
        architecture.name,
        resolved,
        parameters,
        trainable,
        counted.phases,
        counted.ram,
        estimate_overhead(counted.peak, resolved.card),
        static.to_ram + over_bus + counted.stored,
        static.to_gpu + over_bus + counted.fetched,
        static.paged,
        exchanged,
        max(works, key=attrgetter("flops")),
        evidence_of(architecture, resolved),
        (
            *notes_for(architecture, resolved),
            *notes_of(answer),
            *_loop_note(part, resolved, static, counted.peak),
            *why_untimed(resolved),
            *assumptions(resolved),
        ),
    )


def paced_work(architecture: Architecture, plan: Plan) -> Work:
    """The work of a resolved plan's step: of a pipeline's part that computes the most."""
    steps = ((part, prepare(part, plan)) for part in parts_of(architecture, plan))
    works = (
        work_of(
            step,
            static_of(part, plan)[0],
            plan,
            collectives(plan, step, partial(parameter_tensors, part, plan)),
        )
        for part, step in steps
    )
    return max(works, key=attrgetter("flops"))


def _loop_note(architecture: Architecture, plan: Plan, static: Statics, peak: int) -> Iterator[str]:
    """The price of a loop that holds the model's outputs, where the plan's does not."""
    if plan.loop is not Loop.TRAINER or plan.pipeline_parallel > 1:
        return
    more = _count(architecture, plan.but(loop=Loop.FUNCTION), static).peak - peak
    if more >= SMALLEST_NOTED * peak:
        cached = cached_bytes(architecture, plan)
        unless = f", and up to {format_bytes(cached)} for keys and values unless use_cache=False"
        kept = f"A loop that keeps the model's outputs needs {format_bytes(more)} more"
        yield f"{kept}{unless * (cached > 0)}."


@dataclass(frozen=True, slots=True)
class Totals:
    """Peak bytes on the GPU, and bytes of RAM."""

    gpu: int
    ram: int


def totals(architecture: Architecture, plan: Plan) -> Totals:
    """The totals of a report, without the rest of it: a search asks for hundreds.

    Raises:
        InputError: if the model does not support the plan.
    """
    *_, counted = _fullest(architecture, resolve(architecture, plan))
    return Totals(counted.peak, counted.ram.total)


def totals_within(
    architecture: Architecture, plan: Plan, fits: Callable[[int], bool]
) -> Totals | None:
    """The same; None where not even a peak fits that no step of the plan can do without.

    That is known without recording the step, so a search over many plans saves most of its time.

    Raises:
        InputError: if the model does not support the plan.
    """
    resolved = resolve(architecture, plan)
    most_static = _most_static(architecture, resolved)
    if len(_leasts) >= MOST_STATICS:
        _leasts.clear()
    _leasts[_static_key(architecture, plan)] = most_static
    if not fits(most_static):
        return None
    with tentatively():
        may_fit = all(map(fits, _bounds(architecture, resolved)))
        return _totals_if(architecture, resolved, fits) if may_fit else None


def lawful_totals(
    architecture: Architecture, plan: Plan, fits: Callable[[int], bool]
) -> Totals | None:
    """The same; None too for a plan that its model or its optimizer does not have."""
    try:
        return totals_within(architecture, plan, fits)
    except InputError:
        return None


def least(architecture: Architecture, plan: Plan) -> int:
    """Bytes that no step of this plan can do without: those of the update, all else left out.

    Raises:
        InputError: if the model does not support the plan.
    """
    return _most_static(architecture, resolve(architecture, plan))


def _most_static(architecture: Architecture, plan: Plan) -> int:
    return max(_least(static_of(part, plan)[0]) for part in parts_of(architecture, plan))


def is_too_large(architecture: Architecture, plan: Plan, fits: Callable[[int], bool]) -> bool:
    """True if that is known of a plan from another one that differs in nothing it depends on.

    Whether the model supports the plan is not asked.
    """
    found = _leasts.get(_static_key(architecture, plan))
    return found is not None and not fits(found)


def _least(static: Statics) -> int:
    return static.weights + static.gradients + static.optimizer + static.update


def _bounds(architecture: Architecture, plan: Plan) -> Iterator[int]:
    """Bytes that the peak is no lower than; the second takes longer to find than the first."""
    if plan.pipeline_parallel > 1:
        return
    always = sum(static_parts(static_of(architecture, plan)[0], plan))
    if not plan.divides_layers:  # else each GPU has a share of some
        made = changed_model(architecture, plan).least(mode_of(plan))
        numbers = numbers_of(architecture, plan)
        sizes = (number_of(elements_of(one.shape), numbers) * one.dtype.width for one in made)
        yield always + sum(map(round_block, sizes))
    prepared = prepare(architecture, plan)
    yield always + bytes_after_forward(prepared.step, prepared.numbers, prepared.left_out)


def _totals_if(
    architecture: Architecture, plan: Plan, fits: Callable[[int], bool]
) -> Totals | None:
    """The totals of a resolved plan; None where one part of a pipeline does not fit."""
    found = []
    for *_, counted in _each(architecture, plan):
        if plan.pipeline_parallel > 1 and not fits(counted.peak):
            return None
        found.append(Totals(counted.peak, counted.ram.total))
    return max(found, key=lambda each: each.gpu)


def _fullest(architecture: Architecture, plan: Plan) -> tuple[Architecture, Statics, "_Counted"]:
    """The model, or the part of a pipeline that holds the most."""
    return max(_each(architecture, plan), key=lambda each: each[2].peak)


def _each(
    architecture: Architecture, plan: Plan
) -> Iterator[tuple[Architecture, Statics, "_Counted"]]:
    """The model, or the parts of a pipeline, one after the other."""
    for part in parts_of(architecture, plan):
        static, *_ = static_of(part, plan)
        yield part, static, _count(part, plan, static)


def fullest_part(architecture: Architecture, plan: Plan) -> Architecture:
    """The shape of the part of a resolved plan's pipeline that holds the most, or the model's."""
    return _fullest(architecture, plan)[0] if plan.pipeline_parallel > 1 else architecture


@dataclass(frozen=True, slots=True)
class _Counted:
    """A step, its bytes in each phase and in RAM, of the tensors that it moves, and exchanges.

    `stored` are those of gradients' shards that go to RAM, and `fetched` of weights' from there.
    """

    prepared: Prepared
    phases: Mapping[Phase, Memory]
    ram: Memory
    moved: Sequence[int]
    stored: int
    fetched: int
    exchanged: tuple[Collective, ...]

    @property
    def peak(self) -> int:
        """Bytes on the GPU at the peak."""
        return max(memory.total for memory in self.phases.values())


def _count(architecture: Architecture, plan: Plan, static: Statics) -> _Counted:
    prepared = with_outputs(prepare(architecture, plan), plan)
    exchanged = collectives(plan, prepared, partial(parameter_tensors, architecture, plan))
    static = replace(static, buckets=bucket_bytes(prepared, plan))
    parts = _recorded_parts(prepared.step, tuple(prepared.numbers.items()), prepared.left_out)
    always, nothing = static_parts(static, plan), (0,) * len(Part)
    phases = {
        phase: Memory(
            *(more + size for more, size in zip(always, parts.get(phase, nothing), strict=True))
        )
        for phase in list(Phase)[:3]
    }
    phases[Phase.UPDATE] = update_memory(static, prepared, plan)
    moved = moved_inputs(prepared, plan)
    ram = Memory(
        static.ram_weights,
        static.ram_gradients,
        static.ram_optimizer,
        ram_of(moved, plan),
        static.ram_update,
    )
    return _Counted(prepared, phases, ram, moved, *moved_shards(prepared, plan), exchanged)


# a part of the peak that is too small for a note
SMALLEST_NOTED: Final = 0.001
# the options that weights, gradients, states and the update do not depend on; a search tries many
# plans that differ in them only
OF_ACTIVATIONS: Final = (
    *("batch_size", "accumulation", "mini_batch_size", "format", "loop", "attention", "dropout"),
    *("checkpointing", "checkpoint_every", "activation_offload", "chunked_loss", "reversible"),
    *("context_parallel", "context_rotation"),
)
MOST_STATICS: Final = 512
Static = tuple[Statics, int, int]
_statics: dict[tuple[object, ...], Static] = {}
# the least bytes of plans as they were asked for, before the model's own values are filled in
_leasts: dict[tuple[object, ...], int] = {}
_static_values: Final = attrgetter(*(n for n in Plan.options() if n not in OF_ACTIVATIONS))


def _static_key(architecture: Architecture, plan: Plan) -> tuple[object, ...]:
    # of the batch it matters only whether it is a single sequence, see `ParameterTensor.inside`
    return (architecture, plan.sequences == 1, *_static_values(plan))


def static_of(architecture: Architecture, plan: Plan) -> Static:
    """Weights, gradients and states of a resolved plan; parameters, and how many are trained."""
    key = _static_key(architecture, plan)
    found = _statics.get(key)
    if found is None:
        tensors = parameter_tensors(architecture, plan)
        buffers, models = buffer_bytes(architecture, plan), stage_models(architecture, plan)
        recorded = numbers_of(architecture, plan), mode_of(plan)
        stored = Stored(plan, tensors, buffers, models, *recorded)
        static = composed(statics(tensors, buffers, plan), stored)
        if plan.divides_layers:  # parameters are those of the whole model
            alone = replace(plan, tensor_parallel=1, expert_parallel=1)
            tensors = parameter_tensors(architecture, alone)
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
    exist = plan.accumulation > 1 and plan.pipeline_parallel == 1
    gradients = static.gradients if exist else 0
    return (static.weights, gradients + static.buckets, static.optimizer, 0, 0)


def update_memory(static: Statics, prepared: Prepared, plan: Plan) -> Memory:
    """The update's: token ids stay alive, and outputs that the loop holds; all else is gone."""
    step = prepared.step
    inputs = sum(
        round_block(number_of(elements_of(shape), prepared.numbers) * dtype.width)
        for shape, dtype in inputs_of(step)
    )
    if plan.loop is not Loop.TRAINER:
        inputs += output_bytes(prepared)
    inputs += embeddings_bytes(step.mode, prepared.numbers)
    gradients = static.gradients + static.buckets
    if plan.replicas > 1 and plan.data_parallel is DataParallel.DDP_VIEW:
        gradients = static.buckets
    return Memory(static.weights, gradients, static.optimizer, inputs, static.update)
