"""Caveats shown beside a result."""

from collections.abc import Iterator

from calculator.architecture import USUAL_LENGTH, Architecture
from calculator.autograd.mode import AMPERE
from calculator.models.registry import type_of
from calculator.optimizers.rule import rule_of
from calculator.parameters import count_active, count_in_experts, count_parameters
from calculator.plan import (
    ActivationOffload,
    Attention,
    BaseBits,
    Checkpointing,
    ChunkedLoss,
    LoraBias,
    Offload,
    Plan,
    Precision,
    Update,
)
from calculator.task import OWN_HEAD
from calculator.techniques.checkpointing import OPERATIONS_NOTE, every_note
from calculator.techniques.chunked_loss import chunk_note
from calculator.techniques.gradient_scaler import scaler_note
from calculator.techniques.paged import paged_note
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
        *_lora_notes(plan),
        *_activation_notes(architecture, plan),
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
    if _falls_to_math(architecture, plan):
        yield (
            "PyTorch's sdpa has no fused kernel for these heads on this card, so it falls back "
            "to its math kernel, which makes full matrices of scores. Before compute capability "
            "8.0, it has no flash attention, and its efficient kernel takes no grouped queries."
        )
    if architecture.positions and plan.sequence_length > architecture.positions:
        yield (
            f"The model has {architecture.positions:,} learned positions; we enlarge them to "
            f"{plan.sequence_length:,}, which adds parameters."
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
    before = plan.card.capability is not None and plan.card.capability < AMPERE
    fits = Attention.EFFICIENT in model.kernels_of(architecture, narrow, plan.sequence_length)
    return before and not fits


def _optimizer_notes(plan: Plan) -> Iterator[str]:
    rule = rule_of(plan)
    if plan.optimizer_bits == 16 and not rule.is_from_torch(plan) and rule.states:
        yield (
            "No library keeps 16-bit states for these weights; counted at 2 bytes per element, "
            "widened one tensor at a time for the update."
        )
    if plan.update is not Update.FOREACH and not rule.is_from_torch(plan):
        yield "This optimizer comes from bitsandbytes, whose kernels need no temporaries."
    if plan.paged_optimizer:
        yield paged_note(plan)
    if plan.update_in_backward:
        yield (
            "Counted with one optimizer per weight, called as soon as its gradient is ready "
            "(register_post_accumulate_grad_hook). Gradients can't be clipped by their total "
            "norm."
        )
    yield from rule.notes(plan)
    if plan.offload is Offload.OPTIMIZER and plan.precision is Precision.MIXED:
        yield "The fp32 master weights are in RAM with the states."


def _lora_notes(plan: Plan) -> Iterator[str]:
    if not plan.lora:
        return
    yield (
        f"Adapters on {plan.lora_targets.replace(',', ', ')}. As in peft, the adapters, their "
        "gradients and their states are in 32 bits, whatever the format of the model's weights."
    )
    if plan.lora_bias is not LoraBias.NONE:
        yield f"Trained biases, and their states, are in {plan.weight_bytes * 8} bits."
    if plan.lora_modules:
        yield (
            f"Trained in full: {plan.lora_modules.replace(',', ', ')}, as copies in "
            f"{plan.weight_bytes * 8} bits beside the frozen originals, which stay in memory."
        )
    if plan.quantization is not BaseBits.NONE:
        yield (
            "Every linear layer except the output layer is packed into 4 bits; the rest is in "
            f"{plan.weight_bytes * 8} bits"
            + (", as prepare_model_for_kbit_training casts it." if plan.weight_bytes > 2 else ".")
            + " Each product unpacks its whole weight; for 1,536 tokens or fewer, bitsandbytes may "
            "use a kernel that does not."
        )
    if plan.checkpointing.is_of_layers:
        yield (
            "With checkpointing, transformers requires a gradient of the input embeddings "
            "(enable_input_require_grads); we count it."
        )


def _activation_notes(architecture: Architecture, plan: Plan) -> Iterator[str]:
    if plan.gradient_scaler:
        yield scaler_note()
    if plan.checkpointing is Checkpointing.OPERATIONS:
        yield OPERATIONS_NOTE
    if plan.checkpoint_every > 1:
        yield every_note(plan)
    if plan.chunked_loss is not ChunkedLoss.NONE:
        yield chunk_note(plan, architecture)
    if plan.activation_offload is not ActivationOffload.NONE:
        yield (
            "Each layer's input is copied to RAM in the forward pass, and back before the layer "
            "is recomputed; we count no prefetching."
        )
    if plan.activation_offload is ActivationOffload.PINNED:
        yield "PyTorch rounds each tensor in pinned RAM up to a power of two."


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
