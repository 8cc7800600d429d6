"""Sentences that a reader of the figures should know."""

from calculator.architecture import Architecture, Family
from calculator.states import from_torch, state_count
from calculator.techniques import (
    Attention,
    Checkpointing,
    Offload,
    Optimizer,
    Precision,
    ResolvedPlan,
    Update,
)


def notes_for(architecture: Architecture, plan: ResolvedPlan) -> tuple[str, ...]:
    """What to know about this model under this plan."""
    return tuple(note for note in (architecture.note, *_plan_notes(architecture, plan)) if note)


def _plan_notes(architecture: Architecture, plan: ResolvedPlan) -> list[str]:
    notes = []
    if architecture.family is Family.GPTJ and plan.attention is Attention.SDPA:
        notes.append("GPT-J's class in transformers has eager attention only; that is counted.")
    if architecture.positions and plan.sequence_length > architecture.positions:
        notes.append(
            f"The model has {architecture.positions:,} learned positions; they are enlarged to "
            f"{plan.sequence_length:,}, which adds parameters."
        )
    if plan.optimizer_bits == 16 and not from_torch(plan) and state_count(plan.optimizer):
        notes.append(
            "No library keeps 16-bit states for these weights; counted at 2 bytes a number, "
            "widened one tensor at a time for the update."
        )
    if plan.update is not Update.FOREACH and not from_torch(plan):
        notes.append("This optimizer comes from bitsandbytes, whose kernels need no temporaries.")
    if plan.reversible and plan.checkpointing is not Checkpointing.NONE:
        notes.append("Reversible layers keep nothing to checkpoint: checkpointing changes nothing.")
    if plan.reversible and architecture.family in (Family.BERT, Family.GPTJ, Family.T5):
        notes.append(
            "No class of this model has reversible layers; counted as our own for GPT-2 are, each "
            "branch of a layer added to one of two streams in turn."
        )
    if plan.optimizer is Optimizer.SGD:
        notes.append("Plain SGD keeps no states.")
    if plan.offload is Offload.OPTIMIZER and plan.precision is Precision.MIXED:
        notes.append("The fp32 master weights live in RAM with the states.")
    return notes
