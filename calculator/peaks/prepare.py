"""A recorded step for a model and a plan, and the numbers for its sizes."""

from dataclasses import replace
from functools import lru_cache
from itertools import chain
from typing import Any

from calculator.architecture import Architecture
from calculator.autograd.dtypes import FLOAT32
from calculator.autograd.mode import (
    AMPERE,
    BATCH,
    CHUNK,
    EXPLICIT_CHUNKS,
    NARROW_MULTIPLE,
    SEQUENCE,
    TARGET,
    WIDE_MULTIPLE,
    Attention,
    Mode,
)
from calculator.autograd.scratch import like_kernels
from calculator.autograd.sizes import ONE
from calculator.compose import effects_of, stage_models
from calculator.layers.grouped import MASK_MULTIPLE
from calculator.models.model import Model
from calculator.models.registry import type_of
from calculator.peaks.cached import cached_numbers
from calculator.peaks.runs import Run, arrange
from calculator.peaks.step import Prepared, Step
from calculator.plan import Loop, Plan, Precision
from calculator.techniques.checkpointing import keeping_of
from calculator.techniques.expert_parallel import RECEIVED, rows_received
from calculator.techniques.pipeline import RANK, shared_slots, starts_of
from calculator.techniques.tensor_parallel import share_of
from calculator.techniques.turns import Turns, turns_of


def prepare(architecture: Architecture, plan: Plan) -> Prepared:
    """The step of a model under a plan."""
    kind = type_of(architecture)
    windowed = kind.masks_window(architecture, plan.sequence_length)
    # flash-attn is given the window; every other kernel a mask
    masked = windowed and plan.attention is not Attention.FLASH
    mode = mode_of(plan, architecture.head_size, masked)
    if kind.has_chunks:
        chunks, left = divmod(plan.sequence_length, CHUNK)
        chunks = min(chunks + (left > 0), EXPLICIT_CHUNKS)
        mode = replace(mode, chunks=chunks, whole_chunks=not left)
    models = stage_models(architecture, plan)
    shared = plan.sharing_groups, architecture.own_last_layer, shared_slots(architecture, plan)
    turns = turns_of(plan, architecture.numbers.get(RANK, 0))
    every = plan.checkpoint_every
    starts = starts_of(architecture, plan) if every > 1 else (0,) * len(models)
    step, left_out = _step(models, *shared, mode, (every, starts), turns)
    return Prepared(step, left_out, numbers_of(architecture, plan))


def numbers_of(architecture: Architecture, plan: Plan) -> dict[str, int]:
    """Every size's number by its name; of several GPUs', those of one's share."""
    return {
        **share_of(architecture, plan).numbers,
        "batch": plan.sequences,
        **cached_numbers(plan),
        "sequence": plan.sequence_length // plan.context_parallel,
        "target": plan.target_length or 0,
        "lora_rank": plan.lora,
        "labels": plan.labels,
        "gpus": plan.replicas,
        "tensor_parallel": plan.tensor_parallel,
        "expert_parallel": plan.expert_parallel,
        RECEIVED: rows_received(architecture, plan),
        "held": int(plan.loop is not Loop.TRAINER),
        "previous_outputs": 0,  # known when the step is recorded, see `with_outputs`
    }


def mode_of(plan: Plan, head_size: int = 0, windowed: bool = False) -> Mode:
    """All effects of the plan on operations; plans of one mode share a recorded step."""
    wide = plan.precision in (Precision.FP32, Precision.AMP)
    lengths = {SEQUENCE: plan.sequence_length, TARGET: plan.target_length or 0}
    settings: dict[str, Any] = {"gradients_exist": plan.accumulation > 1}
    for effect in effects_of(plan):
        settings |= effect.mode(plan)
    return Mode(
        capability=like_kernels(plan.card.capability or AMPERE),
        weights=FLOAT32 if wide else plan.half,
        autocast=plan.half if plan.precision is Precision.AMP else None,
        attention=plan.attention,
        reversible=plan.reversible,
        dropout=plan.dropout > 0,
        cached=plan.mini_batch_size > 0,
        batch=ONE if plan.sequences == 1 else BATCH,
        padded_heads=head_size % NARROW_MULTIPLE > 0,
        odd_heads=head_size % WIDE_MULTIPLE > 0,
        windowed=windowed,
        aligned=frozenset(name for name, length in lengths.items() if not length % MASK_MULTIPLE),
        **settings,
    )


# steps by what decides their operations, so that models of one structure share a recording
_steps: dict[tuple[Any, ...], Step] = {}


@lru_cache(maxsize=512)
def _step(
    models: tuple[Model, ...],
    groups: int,
    own_last: bool,
    slots: tuple[tuple[int, ...], ...],
    mode: Mode,
    checkpointed: tuple[int, tuple[int, ...]],
    turns: Turns | None,
) -> tuple[Step, tuple[int, ...]]:
    runs: list[tuple[str, tuple[Run, ...]]] = []
    left_out: list[int] = []
    taped: list[Model] = []
    every, starts = checkpointed
    made: dict[int, Any] = {}  # blocks of layers that several stages share
    for stage, (model, before) in enumerate(zip(models, starts, strict=True)):
        short: dict[str, Any] = {}
        for name, stack in model.stacks():
            keeping = keeping_of(stack.layers, every, before)
            before += min(groups, stack.layers)  # shared ones are counted once
            own_slots = slots[stage] if slots else ()
            short[name], (own, more) = arrange(
                stack, groups, own_last, keeping, mode.shards is not None, own_slots
            )
            if slots:
                vars(short[name])["blocks"] = short[name].sharing(made)
                # a GPU's later stages go backward first, and make the gradients
                theirs = {*chain(*slots[stage + 1 :])}
                own = tuple(replace(run, made_before=run.slots[0] in theirs) for run in own)
            runs.append((stack.name, own))
            left_out += more
        taped.append(model.altered(**short))
    step = Step(tuple(taped), tuple(runs), mode, turns)
    key = step.structure, step.runs, mode, turns, bool(slots)
    return _steps.setdefault(key, step), tuple(left_out)
