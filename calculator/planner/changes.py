"""The changes that the adviser knows: what each does to a plan, and what it costs."""

from collections.abc import Callable
from typing import Final

from calculator.architecture import USUAL_LENGTH, Architecture
from calculator.models.registry import type_of
from calculator.plan import (
    ActivationOffload,
    Attention,
    BaseBits,
    Checkpointing,
    ChunkedLoss,
    LoraBias,
    Offload,
    Optimizer,
    Plan,
    Precision,
    Update,
)
from calculator.planner.change import (
    CHECKPOINTS,
    LENGTH,
    Change,
    Cost,
    accumulated,
    has_class,
    setting,
)
from calculator.planner.division import DIVISIONS
from calculator.presets import USUAL_RANK
from calculator.techniques.lora import ALL_LINEAR
from calculator.units import format_count

_HALF: Final = setting(precision=Precision.HALF)


def _recomputed(every: int) -> Callable[[Plan], Plan | None]:
    """Every so many layers computed again."""
    return setting(checkpointing=Checkpointing.FULL, checkpoint_every=every)


def _micro_batches(plan: Plan) -> Plan | None:
    """Single sequences, as many of them per update as before."""
    if plan.batch_size == 1:
        return None
    return accumulated(plan, plan.batch_size, batch_size=1)


def _half_the_length(plan: Plan) -> Plan | None:
    """For a plan whose length is known."""
    if plan.sequence_length < 2:
        return None
    return plan.but(sequence_length=plan.sequence_length // 2)


def _usual_length(plan: Plan) -> Plan | None:
    """A length at which many train, for models whose own is far longer."""
    if plan.sequence_length <= 2 * USUAL_LENGTH:
        return None
    return plan.but(sequence_length=USUAL_LENGTH)


def _adapters(plan: Plan) -> Plan | None:
    """Adapters beside all linear layers, where nothing else about them was chosen."""
    if plan.lora:
        return None
    return plan.but(lora=USUAL_RANK, lora_targets=plan.lora_targets or ALL_LINEAR)


def _trains_adapters_alone(plan: Plan) -> bool:
    """True if all that is trained is adapters, which keep 32 bits beside weights of any format."""
    return bool(plan.lora) and plan.lora_bias is LoraBias.NONE and not plan.lora_modules


def _sixteen_bits(plan: Plan) -> Plan | None:
    """All weights in 16 bits, where some of them are trained."""
    return None if _trains_adapters_alone(plan) else _HALF(plan)


def _frozen_in_sixteen_bits(plan: Plan) -> Plan | None:
    """The frozen weights in 16 bits, where nothing but adapters is trained."""
    return _HALF(plan) if _trains_adapters_alone(plan) else None


def _four_bits(plan: Plan) -> Plan | None:
    """The frozen linear layers packed, where adapters are trained beside them."""
    if not plan.lora or plan.quantization is not BaseBits.NONE:
        return None
    return plan.but(quantization=BaseBits.NF4_DOUBLE)


def _inputs_in_ram(plan: Plan) -> Plan | None:
    """The inputs of checkpointed layers in RAM."""
    if plan.checkpointing is not Checkpointing.FULL:
        return None
    return setting(activation_offload=ActivationOffload.PINNED)(plan)


def _shards_in_ram(plan: Plan) -> Plan | None:
    """The shards of each GPU in RAM, where there are shards."""
    return setting(cpu_offload=True)(plan) if plan.is_sharded else None


def _costly_results(plan: Plan) -> Plan | None:
    """Results of some operations kept, where not all of a layer's are computed again already."""
    if plan.checkpointing is Checkpointing.FULL:
        return None
    return setting(checkpointing=Checkpointing.OPERATIONS)(plan)


def _computes_attention(architecture: Architecture) -> bool:
    """True if the model's class has code that computes attention alone again."""
    return type_of(architecture).has_attention_core


def _update_in_backward(plan: Plan) -> Plan | None:
    """Each update in the backward pass, where no other pass or GPU adds to the gradient.

    Of adapters it would save little.
    """
    refused = (
        plan.lora
        or plan.accumulation > 1
        or plan.all_gpus > 1
        or plan.offload is not Offload.NONE
        or plan.optimizer is Optimizer.ADAFACTOR
    )
    return None if refused else setting(update_in_backward=True)(plan)


def _chunked_loss(plan: Plan) -> Plan | None:
    """The loss in chunks, where that does not widen products to 32 bits."""
    return (
        None if plan.precision is Precision.AMP else setting(chunked_loss=ChunkedLoss.TORCH)(plan)
    )


HALF_THE_LENGTH: Final = Change(
    "Halve the sequence length",
    Cost.OTHER_TRAINING,
    "The model sees shorter texts.",
    _half_the_length,
    "half the length",
    about=LENGTH,
)
SHORTER: Final = Change(
    f"Use sequences of {format_count(USUAL_LENGTH)} tokens",
    Cost.OTHER_TRAINING,
    "The model sees shorter texts.",
    _usual_length,
    f"{format_count(USUAL_LENGTH)} tokens",
    about=LENGTH,
)
EVERY_SECOND: Final = Change(
    "Recompute every second layer in the backward pass",
    Cost.LITTLE_TIME,
    "Computes half of the layers twice.",
    _recomputed(2),
    "checkpointing of every 2nd layer",
    "About a sixth more arithmetic.",
)
EVERY_FOURTH: Final = Change(
    "Recompute every fourth layer in the backward pass",
    Cost.LITTLE_TIME,
    "Computes a quarter of the layers twice.",
    _recomputed(4),
    "checkpointing of every 4th layer",
    "About a twelfth more arithmetic.",
)
SHARDS_IN_RAM: Final = Change(
    "Keep the shards in RAM",
    Cost.TRANSFER,
    "Moves weights and gradients over the bus in each step; the CPU computes the update.",
    _shards_in_ram,
    "shards in RAM",
    is_for=has_class,
)
CHANGES: Final = (
    Change(
        "Use the fused update",
        Cost.NOTHING,
        "Costs nothing: the same result, at least as fast.",
        setting(update=Update.FUSED),
        "fused update",
    ),
    Change(
        "Use PyTorch's attention (sdpa)",
        Cost.NOTHING,
        "Costs nothing: the same result, at least as fast.",
        setting(attention=Attention.SDPA),
        "sdpa",
    ),
    Change(
        "Split the batch into single sequences",
        Cost.EFFICIENCY,
        "Gives the same update.",
        _micro_batches,
        "single sequences",
        "A GPU computes single sequences less efficiently.",
    ),
    Change(
        "Keep the optimizer's states in 8 bits",
        Cost.PRECISION,
        "Stores the optimizer's states less precisely.",
        setting(optimizer_bits=8),
        "8-bit states",
    ),
    Change(
        "Recompute attention in the backward pass",
        Cost.TIME,
        "Computes each layer's attention twice.",
        setting(checkpointing=Checkpointing.SELECTIVE),
        "selective checkpointing",
        about=CHECKPOINTS,
        is_for=_computes_attention,
    ),
    Change(
        "Selective checkpointing: recompute the cheap operations",
        Cost.LITTLE_TIME,
        "Computes up to half of each layer's matrix products twice, and attention once.",
        _costly_results,
        "checkpointing by operation",
        "At most about a sixth more arithmetic.",
        about=CHECKPOINTS,
        is_for=has_class,
    ),
    Change(
        "Recompute each layer in the backward pass",
        Cost.TIME,
        "Computes the forward pass twice.",
        _recomputed(1),
        "checkpointing",
        "About a third more arithmetic.",
        (EVERY_SECOND, EVERY_FOURTH),
        about=CHECKPOINTS,
    ),
    Change(
        "Keep the inputs of layers in RAM",
        Cost.TRANSFER,
        "Moves each layer's input over the bus and back in each step.",
        _inputs_in_ram,
        "inputs in RAM",
    ),
    Change(
        "Keep the optimizer in RAM",
        Cost.TRANSFER,
        "Moves all gradients and weights over the bus in each step.",
        setting(offload=Offload.OPTIMIZER),
        "optimizer in RAM",
    ),
    *DIVISIONS,
    SHARDS_IN_RAM,
    # before those that depend on what is trained
    Change(
        f"Train LoRA adapters of rank {USUAL_RANK} instead of the model",
        Cost.ADAPTERS,
        "Trains adapters only; the model's own weights stay as they are.",
        _adapters,
        "LoRA",
    ),
    Change(
        "Keep weights and gradients in 16 bits",
        Cost.OTHER_TRAINING,
        "Rounding may lose small updates.",
        _sixteen_bits,
        "16-bit weights",
    ),
    Change(
        "Keep the frozen weights in 16 bits",
        Cost.PRECISION,
        "Rounds the frozen weights, which get no updates; the adapters keep 32 bits.",
        _frozen_in_sixteen_bits,
        "16-bit frozen weights",
    ),
    Change(
        "Compute the loss in chunks",
        Cost.EFFICIENCY,
        "Gives the same loss.",
        _chunked_loss,
        "loss in chunks",
        "A GPU computes smaller products less efficiently.",
    ),
    Change(
        "Use Adafactor",
        Cost.OTHER_TRAINING,
        "A different optimizer, which may need different settings.",
        setting(optimizer=Optimizer.ADAFACTOR),
        "Adafactor",
    ),
    HALF_THE_LENGTH,
    SHORTER,
    Change(
        "Keep the frozen linear layers in 4 bits (QLoRA)",
        Cost.OTHER_TRAINING,
        "Stores the frozen weights less precisely, and unpacks them for each product.",
        _four_bits,
        "QLoRA",
        is_for=has_class,
    ),
    Change(
        "Make the layers reversible",
        Cost.OTHER_MODEL,
        "Changes the model, so pretrained weights do not fit.",
        setting(reversible=True),
        "reversible layers",
    ),
    Change(
        "Update each weight in the backward pass, as soon as its gradient is ready",
        Cost.OTHER_TRAINING,
        "Gives the same update, but rules out clipping and accumulating gradients.",
        _update_in_backward,
        "update in backward",
    ),
)


def changes_for(architecture: Architecture) -> list[Change]:
    """The changes that a model takes, alone or beside others."""
    return [change for change in CHANGES if change.is_for(architecture)]
