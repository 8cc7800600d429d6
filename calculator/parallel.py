"""The share of a step that is there because several GPUs train together."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain

from calculator.allocator import round_block
from calculator.architecture import Architecture
from calculator.autograd.ledger import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    ARRIVED,
    CONTEXT_ALL_GATHER,
    CONTEXT_ALL_TO_ALL,
    REDUCE_SCATTER,
    UNIT_ALL_GATHER,
    UNIT_REDUCE_SCATTER,
)
from calculator.parameters import ParameterTensor, buffer_bytes, parameter_tensors
from calculator.peaks.chunks import noted_bytes
from calculator.peaks.prepare import Prepared, mode_of, numbers_of, prepare
from calculator.peaks.trace import backward_of_stages, record
from calculator.plan import BaseBits, DataParallel, Plan, Precision
from calculator.states import Statics, state_bytes, statics, update_bytes
from calculator.techniques.context_parallel import context_note
from calculator.techniques.cpu_offload import CPU_OFFLOAD_NOTE, in_ram
from calculator.techniques.data_parallel import BROADCAST, SEND, Collective, Group, buckets
from calculator.techniques.expert_parallel import expert_note
from calculator.techniques.fsdp import gradients_of_units, sharded_shape
from calculator.techniques.pipeline import part_note
from calculator.techniques.registry import stage_models
from calculator.techniques.tensor_parallel import reads_of, split_note
from calculator.techniques.zero import fullest_rank, parts_of
from calculator.units import format_bytes

# what a step records of collectives: by which name, and among which GPUs
RECORDED = {
    ALL_REDUCE: (ALL_REDUCE, Group.LAYERS),
    ALL_GATHER: (ALL_GATHER, Group.LAYERS),
    UNIT_ALL_GATHER: (ALL_GATHER, Group.REPLICAS),
    REDUCE_SCATTER: (REDUCE_SCATTER, Group.LAYERS),
    UNIT_REDUCE_SCATTER: (REDUCE_SCATTER, Group.REPLICAS),
    ALL_TO_ALL: (ALL_TO_ALL, Group.LAYERS),
    CONTEXT_ALL_GATHER: (CONTEXT_ALL_GATHER, Group.CONTEXT),
    CONTEXT_ALL_TO_ALL: (CONTEXT_ALL_TO_ALL, Group.CONTEXT),
}
Exchanged = Iterator[Collective]


def by_name(exchanged: Sequence[Collective]) -> tuple[Collective, ...]:
    """The same, those of one name together whichever GPUs they are among."""
    found: dict[str, Collective] = {}
    for each in exchanged:
        known = found.get(each.name)
        found[each.name] = replace(known, sizes=known.sizes + each.sizes) if known else each
    return tuple(found.values())


def collectives(
    architecture: Architecture, prepared: Prepared, plan: Plan
) -> tuple[Collective, ...]:
    """The exchanges of a step in each group of GPUs: the whole tensor's bytes at each call."""
    if plan.all_gpus == 1:
        return ()
    found = chain(
        _sent_on(prepared, plan),
        _of_gradients(architecture, prepared, plan),
        _recorded(prepared, plan),
        _summed(architecture, plan),
    )
    return tuple(each for each in found if each.sizes)


def _of_gradients(architecture: Architecture, prepared: Prepared, plan: Plan) -> Exchanged:
    """Those of replicas with whole models; of shards they are recorded."""
    if plan.replicas > 1 and not plan.is_sharded:
        yield Collective(ALL_REDUCE, _buckets(prepared))
        if plan.shares_states:
            yield Collective(BROADCAST, _sent(parameter_tensors(architecture, plan), plan))


def _recorded(prepared: Prepared, plan: Plan) -> Exchanged:
    """Those that the step itself makes, in all micro-batches."""
    chunks = record(prepared.step).chunks
    often = plan.accumulation if plan.pipeline_parallel == 1 else 1
    for noted, (name, group) in RECORDED.items():
        sizes = noted_bytes(chunks, noted, prepared.numbers, prepared.left_out)
        yield Collective(name, (*sizes,) * often, group)


def _buckets(prepared: Prepared) -> tuple[int, ...]:
    """Bytes of DDP's buckets, for each stage of a pipeline apart."""
    found: tuple[int, ...] = ()
    for chunks, left_out in backward_of_stages(prepared.step, prepared.left_out):
        found += buckets(noted_bytes(chunks, ARRIVED, prepared.numbers, left_out))
    return found


def bucket_bytes(prepared: Prepared, plan: Plan) -> int:
    """Bytes of DDP's buckets, which live from step to step."""
    if plan.replicas == 1 or plan.is_sharded:
        return 0
    return sum(map(round_block, _buckets(prepared)))


def shard_statics(
    architecture: Architecture, tensors: Sequence[ParameterTensor], plan: Plan
) -> Statics:
    """Weights, gradients and states of the first GPU: shards of each tensor.

    The gradients of a unit are one flat tensor.
    """
    shards = [
        replace(each, shape=sharded_shape(each.shape, plan.replicas, each.packed))
        for each in tensors
    ]
    buffers = buffer_bytes(architecture, plan)
    static = statics(shards, buffers, plan)
    if plan.cpu_offload:
        return in_ram(static, shards, buffers, plan)
    if plan.update_in_backward:  # they are gone
        return static
    numbers, mode = numbers_of(architecture, plan), mode_of(plan)
    models = stage_models(architecture, plan)
    units = chain(*(gradients_of_units(model, numbers, mode) for model in models))
    return replace(static, gradients=sum(round_block(each // plan.replicas) for each in units))


def share_of_states(static: Statics, tensors: Sequence[ParameterTensor], plan: Plan) -> Statics:
    """The same with the states and the update of the fullest GPU of ZeRO's first stage."""
    parts = _parts(tensors, plan)
    own = [item for item in parts[fullest_rank(parts)] if item.trained]
    return replace(static, optimizer=state_bytes(own, plan), update=update_bytes(own, plan))


def _parts(tensors: Sequence[ParameterTensor], plan: Plan) -> list[list[ParameterTensor]]:
    """The tensors that each GPU updates: of all that the optimizer is given."""
    return parts_of([item for item in tensors if item.trained or not plan.lora], plan.replicas)


def _sent(tensors: Sequence[ParameterTensor], plan: Plan) -> tuple[int, ...]:
    """Each weight from the GPU that updates it to all others, GPU by GPU."""
    return tuple(
        item.elements * (item.width or plan.weight_bytes)
        for part in _parts(tensors, plan)
        for item in part
    )


def parallel_notes(
    architecture: Architecture,
    part: Architecture,
    plan: Plan,
    exchanged: tuple[Collective, ...],
    most: int,
) -> Iterator[str]:
    """Notes on several GPUs: who holds what, what does not divide evenly, what is exchanged.

    `part` is the fullest of a pipeline; without one, it is the model. `most` is the peak of a GPU
    whose experts get the most rows.
    """
    if plan.all_gpus == 1:
        return
    if plan.context_parallel > 1:
        yield context_note(plan)
    if plan.pipeline_parallel > 1:
        yield part_note(architecture, part, plan, exchanged[0].sizes[0])
    if plan.tensor_parallel > 1:
        yield split_note(plan)
    if plan.expert_parallel > 1:
        yield expert_note(architecture, plan, most)
    if plan.is_sharded:
        yield from _shard_notes(architecture, plan)
    elif plan.replicas > 1:
        yield _replica_note(architecture, part, plan)
    said = [
        f"{each.name.replace('_', '-')} in {len(each.sizes):,} calls, {format_bytes(each.total)}"
        for each in exchanged
    ]
    yield (
        f"Exchanged in each step: {'; '.join(said)} (bytes of the whole tensors). NCCL's own "
        "buffers are not counted."
    )


def _replica_note(architecture: Architecture, part: Architecture, plan: Plan) -> str:
    """A note on DDP: who holds what."""
    what = "its share of the model" if plan.all_gpus > plan.replicas else "the whole model"
    holds = f"Each of {plan.all_gpus:,} GPUs holds {what}"
    size = format_bytes(bucket_bytes(prepare(part, plan), plan))
    filled = f"{size} of buckets for gradients"
    if not plan.shares_states:
        return f"{holds} and its states, and {filled}. All need the same."
    parts = _parts(parameter_tensors(architecture, plan), plan)
    rank = fullest_rank(parts)
    most, every = (sum(item.elements for item in part) for part in (parts[rank], chain(*parts)))
    return (
        f"{holds}, {filled}, and the states of its own part of the weights, in whole tensors. "
        f"Figures are those of GPU {rank}, counted from 0, which updates the most: {most:,} of "
        f"{every:,} elements."
    )


def _shard_notes(architecture: Architecture, plan: Plan) -> Iterator[str]:
    """Notes on FSDP: who holds what, and what does not divide evenly."""
    yield (
        f"Each of {plan.replicas:,} GPUs holds a shard of every weight. fully_shard is counted on "
        "each layer and on the model, with its defaults; figures are those of the first GPU."
    )
    if plan.data_parallel is DataParallel.ZERO2:
        yield (
            "With reshard_after_forward=False a layer's weights are gathered once in a micro-step, "
            "and stay whole until its backward pass is over. DeepSpeed's ZeRO-2 keeps whole 16-bit "
            "weights between steps too."
        )
    if plan.lora and plan.precision is Precision.MIXED:
        yield (
            "Under mixed the adapters are gathered and computed in 16 bits, as all weights are; "
            "their shards, gradients and states are in 32."
        )
    if plan.quantization is not BaseBits.NONE:
        yield (
            "Packed weights are stored as if they had the others' format, which FSDP wants "
            "(bnb_4bit_quant_storage); each GPU has all of their scales."
        )
    if plan.cpu_offload:
        yield CPU_OFFLOAD_NOTE
    yield from _uneven_notes(architecture, plan)


def _uneven_notes(architecture: Architecture, plan: Plan) -> Iterator[str]:
    """A note where GPUs do not divide the rows of some weights."""
    tensors = parameter_tensors(architecture, plan)
    odd = [each for each in tensors if each.shape[0] % plan.replicas]
    if odd:
        example = odd[0].shape[0]
        yield (
            f"{sum(each.copies for each in odd):,} of {sum(each.copies for each in tensors):,} "
            f"weights have rows that {plan.replicas:,} GPUs do not divide evenly (one has "
            f"{example:,}): the last GPUs hold fewer, and each shard is padded to the first's size."
        )


def _summed(architecture: Architecture, plan: Plan) -> Exchanged:
    """Gradients of split tokens' norms: summed once for each operation of the update that reads."""
    if plan.sequence_parallel or plan.expert_parallel > 1:
        summed = [each for each in parameter_tensors(architecture, plan) if each.is_summed]
        sizes = [each.elements * plan.trained_bytes for each in summed for _ in range(each.copies)]
        yield Collective(ALL_REDUCE, tuple(sizes) * reads_of(plan), Group.LAYERS)


def _sent_on(prepared: Prepared, plan: Plan) -> Exchanged:
    """Outputs and gradients that stages send to the ones beside them; tied tables' gradients."""
    if plan.pipeline_parallel == 1:
        return
    stages, mode = prepared.step.stages, prepared.step.mode
    tokens = plan.batch_size * plan.sequence_length
    each = tokens * prepared.numbers["hidden_size"] * mode.weights.width
    sides = sum((not stage.is_first) + (not stage.is_last) for stage in stages)
    yield Collective(SEND, (each,) * plan.accumulation * sides, Group.STAGES)
    if plan.tied_embeddings and not plan.lora and (stages[0].is_first or stages[-1].is_last):
        table = prepared.numbers["vocabulary_size"] * prepared.numbers["hidden_size"]
        yield Collective(ALL_REDUCE, (table * mode.weights.width,), Group.STAGES)
