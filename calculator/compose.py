"""A plan carried out: the effects of its techniques, in one order.

The task's head comes first. Layers are split, and experts divided, before adapters stand beside
them, which are divided as they are; packing comes before adapters too, as peft finds the model. A
stage then leaves out what others have, and checkpoints are of the layers that are left. Shards or
buckets hold what all of this made, and states are shared last.
"""

from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import chain
from typing import Final

from calculator.architecture import Architecture
from calculator.layers.layer import Change, rewrite
from calculator.models.model import Model
from calculator.models.registry import type_of
from calculator.peaks.chunks import noted_bytes
from calculator.peaks.step import Prepared
from calculator.peaks.trace import record
from calculator.plan import Plan
from calculator.techniques import (
    activation_offload,
    checkpointing,
    chunked_loss,
    context_parallel,
    data_parallel,
    expert_parallel,
    fsdp,
    gradient_scaler,
    in_backward,
    lora,
    paged,
    pipeline,
    quantization,
    task,
    tensor_parallel,
    zero,
)
from calculator.techniques.collectives import RECORDED, Collective
from calculator.techniques.effect import Answer, Effect, Stored, Tensors
from calculator.techniques.pipeline import RANK, stages_in
from calculator.techniques.tensor_parallel import share_of
from calculator.tensors import Statics
from calculator.units import format_bytes

EFFECTS: Final[tuple[Effect, ...]] = (
    task.EFFECT,
    tensor_parallel.EFFECT,
    expert_parallel.EFFECT,
    quantization.EFFECT,
    lora.EFFECT,
    context_parallel.EFFECT,
    pipeline.EFFECT,
    checkpointing.EFFECT,
    activation_offload.EFFECT,
    chunked_loss.EFFECT,
    fsdp.EFFECT,
    data_parallel.EFFECT,
    zero.EFFECT,
    paged.EFFECT,
    gradient_scaler.EFFECT,
    in_backward.EFFECT,
)


def effects_of(plan: Plan) -> Iterator[Effect]:
    """The effects of a resolved plan's techniques, in order."""
    return (effect for effect in EFFECTS if effect.used(plan))


def changes_of(architecture: Architecture, plan: Plan) -> tuple[Change, ...]:
    """Changes that a resolved plan makes to its model's layers, in order."""
    return tuple(chain(*(effect.layers(architecture, plan) for effect in effects_of(plan))))


def composed(static: Statics, stored: Stored) -> Statics:
    """The bytes that live from step to step, from those of a GPU that shares none with others."""
    for effect in effects_of(stored.plan):
        static = effect.statics(static, stored)
    return static


def collectives(
    plan: Plan, prepared: Prepared, tensors: Callable[[], Tensors]
) -> tuple[Collective, ...]:
    """The exchanges of a step in each group of GPUs: the whole tensor's bytes at each call."""
    if plan.all_gpus == 1:
        return ()
    sent = (effect.exchanges(plan, prepared, tensors) for effect in effects_of(plan))
    return tuple(each for each in chain(*sent, _recorded(plan, prepared)) if each.sizes)


def _recorded(plan: Plan, prepared: Prepared) -> Iterator[Collective]:
    """The exchanges that the step itself makes, in all micro-batches."""
    chunks = record(prepared.step).chunks
    often = plan.accumulation if plan.pipeline_parallel == 1 else 1
    for noted, (name, group) in RECORDED.items():
        sizes = noted_bytes(chunks, noted, prepared.numbers, prepared.left_out)
        yield Collective(name, (*sizes,) * often, group)


def notes_of(answer: Answer) -> Iterator[str]:
    """Sentences on the techniques, and on what the GPUs exchange."""
    for effect in effects_of(answer.plan):
        yield from effect.notes(answer)
    said = [
        f"{each.name.replace('_', '-')} in {len(each.sizes):,} calls, {format_bytes(each.total)}"
        for each in answer.exchanged
    ]
    if answer.plan.all_gpus > 1:
        yield (
            f"Exchanged in each step: {'; '.join(said)} (bytes of the whole tensors). NCCL's own "
            "buffers are not counted."
        )


def changed_model(architecture: Architecture, plan: Plan) -> Model:
    """The model of a resolved plan as a tree of layers; of several GPUs', one's share of it."""
    return _changed(
        share_of(architecture, plan), plan.tied_embeddings, changes_of(architecture, plan)
    )


def stage_models(architecture: Architecture, plan: Plan) -> tuple[Model, ...]:
    """The models of one GPU: those of its stages in a pipeline, else a single one.

    Of a pipeline the architecture is a GPU's part; else, and as a whole, it has one model.
    """
    if RANK not in architecture.numbers:
        return (changed_model(architecture, plan),)
    return tuple(_stage_model(stage, plan) for stage in stages_in(architecture, plan))


def _stage_model(stage: Architecture, plan: Plan) -> Model:
    part, tied = share_of(stage, plan), False  # each end has a table of its own
    return _changed(part, tied, changes_of(stage, plan))


@lru_cache(maxsize=512)
def _changed(architecture: Architecture, tied: bool, changes: tuple[Change, ...]) -> Model:
    model = type_of(architecture).build(architecture, tied)
    for change in changes:
        rewrite(model, change)
    return model
