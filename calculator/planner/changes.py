"""The changes that the adviser knows: what each does to a plan, and what it costs."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

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
from calculator.techniques.lora import ALL_LINEAR
from calculator.units import format_count

USUAL_LENGTH: Final = 2048
USUAL_RANK: Final = 16


class Cost(IntEnum):
    """Costs of a change, from least to most; proposals are in this order."""

    NOTHING = 0
    EFFICIENCY = 1
    PRECISION = 2
    LITTLE_TIME = 3
    TIME = 4
    TRANSFER = 5
    OTHER_TRAINING = 6
    ADAPTERS = 7
    OTHER_MODEL = 8


@dataclass(frozen=True, slots=True)
class Change:
    """One thing to do to a plan.

    Attributes:
        words: what a person does, as an instruction.
        cost: how much it costs, beside other changes.
        price: what it costs, in a sentence.
        apply: the plan after it, or None where it changes nothing.
        short: the change as a table names it.
        lesser: the same to a lesser degree, which saves and costs less, from more to less.
    """

    words: str
    cost: Cost
    price: str
    apply: Callable[[Plan], Plan | None]
    short: str
    lesser: tuple["Change", ...] = ()


def _set(**values: object) -> Callable[[Plan], Plan | None]:
    def apply(plan: Plan) -> Plan | None:
        changed = plan.but(**values)
        return None if changed == plan else changed

    return apply


_HALF: Final = _set(precision=Precision.HALF)


def _recomputed(every: int) -> Callable[[Plan], Plan | None]:
    """Every so many layers computed again."""
    return _set(checkpointing=Checkpointing.FULL, checkpoint_every=every)


def _micro_batches(plan: Plan) -> Plan | None:
    """Single sequences, as many of them per update as before."""
    if plan.batch_size == 1:
        return None
    return plan.but(batch_size=1, accumulation=plan.accumulation * plan.batch_size)


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
    return _set(activation_offload=ActivationOffload.PINNED)(plan)


def _shards_in_ram(plan: Plan) -> Plan | None:
    """The shards of each GPU in RAM, where there are shards."""
    return _set(cpu_offload=True)(plan) if plan.is_sharded else None


def _chunked_loss(plan: Plan) -> Plan | None:
    """The loss in chunks, where that does not widen products to 32 bits."""
    return None if plan.precision is Precision.AMP else _set(chunked_loss=ChunkedLoss.TORCH)(plan)


HALF_THE_LENGTH: Final = Change(
    "Halve the sequence length",
    Cost.OTHER_TRAINING,
    "The model sees shorter texts.",
    _half_the_length,
    "half the length",
)
SHORTER: Final = Change(
    f"Use sequences of {format_count(USUAL_LENGTH)} tokens",
    Cost.OTHER_TRAINING,
    "The model sees shorter texts.",
    _usual_length,
    f"{format_count(USUAL_LENGTH)} tokens",
)
EVERY_SECOND: Final = Change(
    "Recompute every second layer in the backward pass",
    Cost.LITTLE_TIME,
    "Computes half of the layers twice: about a sixth more arithmetic.",
    _recomputed(2),
    "checkpointing of every 2nd layer",
)
EVERY_FOURTH: Final = Change(
    "Recompute every fourth layer in the backward pass",
    Cost.LITTLE_TIME,
    "Computes a quarter of the layers twice: about a twelfth more arithmetic.",
    _recomputed(4),
    "checkpointing of every 4th layer",
)
SHARDS_IN_RAM: Final = Change(
    "Keep the shards in RAM",
    Cost.TRANSFER,
    "Moves weights and gradients over the bus in each step; the CPU computes the update.",
    _shards_in_ram,
    "shards in RAM",
)
CHANGES: Final = (
    Change(
        "Use the fused update",
        Cost.NOTHING,
        "Costs nothing: the same result, at least as fast.",
        _set(update=Update.FUSED),
        "fused update",
    ),
    Change(
        "Use PyTorch's attention (sdpa)",
        Cost.NOTHING,
        "Costs nothing: the same result, at least as fast.",
        _set(attention=Attention.SDPA),
        "sdpa",
    ),
    Change(
        "Split the batch into single sequences",
        Cost.EFFICIENCY,
        "Gives the same update; a GPU computes single sequences less efficiently.",
        _micro_batches,
        "single sequences",
    ),
    Change(
        "Keep the optimizer's states in 8 bits",
        Cost.PRECISION,
        "Stores the optimizer's states more coarsely.",
        _set(optimizer_bits=8),
        "8-bit states",
    ),
    Change(
        "Recompute attention in the backward pass",
        Cost.TIME,
        "Computes the attention of each layer twice.",
        _set(checkpointing=Checkpointing.SELECTIVE),
        "selective checkpointing",
    ),
    Change(
        "Recompute each layer in the backward pass",
        Cost.TIME,
        "Computes the forward pass twice: about a third more arithmetic.",
        _recomputed(1),
        "checkpointing",
        (EVERY_SECOND, EVERY_FOURTH),
    ),
    Change(
        "Keep the inputs of layers in RAM",
        Cost.TRANSFER,
        "Moves the input of each layer over the bus and back in each step.",
        _inputs_in_ram,
        "inputs in RAM",
    ),
    Change(
        "Keep the optimizer in RAM",
        Cost.TRANSFER,
        "Moves all gradients and weights over the bus in each step.",
        _set(offload=Offload.OPTIMIZER),
        "optimizer in RAM",
    ),
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
        "Make the logits of a chunk of tokens at a time",
        Cost.EFFICIENCY,
        "Gives the same loss; a GPU computes smaller products less efficiently.",
        _chunked_loss,
        "loss in chunks",
    ),
    Change(
        "Use Adafactor",
        Cost.OTHER_TRAINING,
        "Another optimizer, which may need other settings.",
        _set(optimizer=Optimizer.ADAFACTOR),
        "Adafactor",
    ),
    HALF_THE_LENGTH,
    SHORTER,
    Change(
        "Keep the frozen linear layers in 4 bits (QLoRA)",
        Cost.OTHER_TRAINING,
        "Stores the frozen weights more coarsely, and unpacks them for each product.",
        _four_bits,
        "QLoRA",
    ),
    Change(
        "Make the layers reversible",
        Cost.OTHER_MODEL,
        "Makes another model: pretrained weights do not fit it.",
        _set(reversible=True),
        "reversible layers",
    ),
)
