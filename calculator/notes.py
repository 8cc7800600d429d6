"""Caveats shown beside a result."""

from collections.abc import Iterator

from calculator.architecture import USUAL_LENGTH, Architecture
from calculator.models.registry import type_of
from calculator.optimizers.rule import rule_of
from calculator.parameters import count_active, count_in_experts, count_parameters
from calculator.plan import (
    Attention,
    BaseBits,
    Checkpointing,
    Offload,
    Plan,
    Precision,
    Update,
)
from calculator.task import OWN_HEAD
from calculator.techniques.quantization import packed_bytes
from calculator.units import format_bytes


def notes_for(architecture: Architecture, plan: Plan) -> tuple[str, ...]:
    """Notes on this model under this plan."""
    has_own_head = plan.task is type_of(architecture).own_task
    tells_of_it = architecture.note.startswith(OWN_HEAD)
    notes = (
        architecture.note if has_own_head or not tells_of_it else "",
        *_model_notes(architecture, plan),
        *_optimizer_notes(plan),
        *_reversible_notes(architecture, plan),
    )
    return tuple(note for note in notes if note)


def _model_notes(architecture: Architecture, plan: Plan) -> Iterator[str]:
    model = type_of(architecture)
    if architecture.has("experts"):
        whole = plan.but(expert_parallel=1)
        parameters, active = (
            count(architecture, whole) for count in (count_parameters, count_active)
        )
        yield f"Each token uses {active:,} of {parameters:,} parameters; its FLOPs depend on those."
        if plan.quantization is not BaseBits.NONE and model.fused_experts:
            yield _experts_note(architecture, plan)
    if Attention.EFFICIENT not in model.kernels and plan.attention is Attention.SDPA:
        yield f"{model.title}'s class in transformers has only eager attention; we count that."
        yield model.before_eager
    if architecture.relative_buckets and plan.attention is Attention.SDPA:
        yield (  # transformers (integrations/sdpa_attention.py, create_position_bias_mask)
            "Counted as transformers 5.20 and later run it. Before, its sdpa takes PyTorch's math "
            "kernel in the encoder, which makes full matrices of scores; before 5.15, the class "
            "has only eager attention."
        )
    if _falls_to_math(architecture, plan):
        yield (
            "PyTorch's sdpa has no fused kernel for these heads on this card, so it falls back "
            "to its math kernel, which makes full matrices of scores. Before compute capability "
            "8.0, it has no flash attention, and its efficient kernel takes no grouped queries."
        )
    if architecture.positions and plan.sequence_length > architecture.positions:
        yield (
            f"The model has {architecture.positions:,} positions; we enlarge their table to "
            f"{plan.sequence_length:,}."
        )
    if plan.sequence_length == USUAL_LENGTH < architecture.sequence_length:
        yield (
            f"Counted with sequences of {USUAL_LENGTH:,} tokens; the model accepts up to "
            f"{architecture.sequence_length:,}."
        )


def _experts_note(architecture: Architecture, plan: Plan) -> str:
    """A note on experts that are linear layers, which they are before transformers 5.

    Source: transformers (quantizers/quantizer_bnb_4bit.py; models/mixtral, 4.48 and 5.0)
    """
    elements = count_in_experts(architecture, plan)
    whole = elements * plan.weight_bytes
    packed = packed_bytes(elements, double=plan.quantization.is_double)
    return (
        "bitsandbytes packs only linear layers, and in transformers 5 experts no longer are: we "
        f"count them unpacked, {format_bytes(whole)}. As linear layers, as Mixtral's were in "
        f"transformers 4, they would take {format_bytes(packed)} in 4 bits."
    )


def _falls_to_math(architecture: Architecture, plan: Plan) -> bool:
    """True if a card before Ampere runs neither fused kernel.

    Source: torch (aten/src/ATen/native/transformers/cuda/sdp_utils.cpp)
    """
    model, narrow = type_of(architecture), plan.precision is not Precision.FP32
    if plan.attention is not Attention.SDPA or Attention.EFFICIENT not in model.kernels:
        return False
    fits = Attention.EFFICIENT in model.kernels_of(architecture, narrow, plan.sequence_length)
    return plan.card.predates_ampere and not fits


def _optimizer_notes(plan: Plan) -> Iterator[str]:
    rule = rule_of(plan)
    if plan.update is not Update.FOREACH and not rule.is_from_torch(plan):
        yield "This optimizer comes from bitsandbytes, whose kernels need no temporaries."
    yield from rule.notes(plan)
    if plan.offload is Offload.OPTIMIZER and plan.precision is Precision.MIXED:
        yield "The fp32 master weights are in RAM with the states."


def _reversible_notes(architecture: Architecture, plan: Plan) -> Iterator[str]:
    if not plan.reversible:
        return
    if plan.checkpointing is Checkpointing.FULL:
        yield "Reversible layers keep nothing to checkpoint: full checkpointing changes nothing."
    if plan.checkpointing is Checkpointing.SELECTIVE:
        yield (
            "Reversible layers keep nothing between the passes. Selective checkpointing acts only "
            "within each layer's backward pass, and can raise the peak there."
        )
    if not type_of(architecture).has_reversible_class:
        yield (
            "No class of this model has reversible layers. We count them like our own for GPT-2: "
            "each branch of a layer is added to one of two streams in turn."
        )
