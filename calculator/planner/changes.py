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
    change,
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


def _sixteen_bits(plan: Plan) -> Plan | None:
    """All weights in 16 bits, where some of them are trained."""
    return None if plan.trains_adapters_alone else _HALF(plan)


def _frozen_in_sixteen_bits(plan: Plan) -> Plan | None:
    """The frozen weights in 16 bits, where nothing but adapters is trained."""
    return _HALF(plan) if plan.trains_adapters_alone else None


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


HALF_THE_LENGTH: Final = change(
    "half the length", Cost.OTHER_TRAINING, _half_the_length, about=LENGTH
)
SHORTER: Final = change(
    f"{format_count(USUAL_LENGTH)} tokens", Cost.OTHER_TRAINING, _usual_length, about=LENGTH
)
EVERY_SECOND: Final = change("checkpointing of every 2nd layer", Cost.LITTLE_TIME, _recomputed(2))
EVERY_FOURTH: Final = change("checkpointing of every 4th layer", Cost.LITTLE_TIME, _recomputed(4))
SHARDS_IN_RAM: Final = change("shards in RAM", Cost.TRANSFER, _shards_in_ram, is_for=has_class)
CHANGES: Final = (
    change("fused update", Cost.NOTHING, setting(update=Update.FUSED)),
    change("sdpa", Cost.NOTHING, setting(attention=Attention.SDPA)),
    change("single sequences", Cost.EFFICIENCY, _micro_batches),
    change("8-bit states", Cost.PRECISION, setting(optimizer_bits=8)),
    change(
        "selective checkpointing",
        Cost.TIME,
        setting(checkpointing=Checkpointing.SELECTIVE),
        about=CHECKPOINTS,
        is_for=_computes_attention,
    ),
    change(
        "checkpointing by operation",
        Cost.LITTLE_TIME,
        _costly_results,
        about=CHECKPOINTS,
        is_for=has_class,
    ),
    change(
        "checkpointing",
        Cost.TIME,
        _recomputed(1),
        lesser=(EVERY_SECOND, EVERY_FOURTH),
        about=CHECKPOINTS,
    ),
    change("inputs in RAM", Cost.TRANSFER, _inputs_in_ram),
    change("optimizer in RAM", Cost.TRANSFER, setting(offload=Offload.OPTIMIZER)),
    *DIVISIONS,
    SHARDS_IN_RAM,
    # before those that depend on what is trained
    change("LoRA", Cost.ADAPTERS, _adapters),
    change("16-bit weights", Cost.OTHER_TRAINING, _sixteen_bits),
    change("16-bit frozen weights", Cost.PRECISION, _frozen_in_sixteen_bits),
    change("loss in chunks", Cost.EFFICIENCY, _chunked_loss),
    change("Adafactor", Cost.OTHER_TRAINING, setting(optimizer=Optimizer.ADAFACTOR)),
    HALF_THE_LENGTH,
    SHORTER,
    change("QLoRA", Cost.OTHER_TRAINING, _four_bits, is_for=has_class),
    change("reversible layers", Cost.OTHER_MODEL, setting(reversible=True)),
    change("update in backward", Cost.OTHER_TRAINING, _update_in_backward),
)


def changes_for(architecture: Architecture) -> list[Change]:
    """The changes that a model takes, alone or beside others."""
    return [change for change in CHANGES if change.is_for(architecture)]
