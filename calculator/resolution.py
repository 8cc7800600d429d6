"""A plan completed for a model: open options are filled in, unsupported ones rejected."""

from dataclasses import fields

from calculator.architecture import USUAL_LENGTH, Architecture
from calculator.errors import InputError
from calculator.models.registry import build, type_of
from calculator.optimizers.rule import rule_of
from calculator.plan import (
    ActivationOffload,
    Attention,
    BaseBits,
    Checkpointing,
    ChunkedLoss,
    HalfFormat,
    Loop,
    LoraBias,
    Plan,
    Precision,
    Task,
    techniques,
)
from calculator.techniques.activation_offload import check_activation_offload
from calculator.techniques.checkpointing import check_checkpoints
from calculator.techniques.chunked_loss import check_chunked_loss
from calculator.techniques.context_parallel import check_context_parallel
from calculator.techniques.cpu_offload import check_cpu_offload
from calculator.techniques.data_parallel import check_data_parallel
from calculator.techniques.expert_parallel import check_expert_parallel
from calculator.techniques.fsdp import check_fsdp
from calculator.techniques.gradient_scaler import check_gradient_scaler
from calculator.techniques.in_backward import check_in_backward
from calculator.techniques.lora import check_dropout, check_trained, find_targets
from calculator.techniques.paged import check_paged
from calculator.techniques.pipeline import check_pipeline
from calculator.techniques.quantization import check_quantization
from calculator.techniques.task import check_task
from calculator.techniques.tensor_parallel import check_tensor_parallel
from calculator.techniques.zero import check_zero


def default_length(architecture: Architecture) -> int:
    """Tokens where a plan leaves them open: the usual length, or the model's longest if shorter."""
    own = architecture.sequence_length
    return own if type_of(architecture).has_fixed_length else min(USUAL_LENGTH, own)


def resolve(architecture: Architecture, plan: Plan) -> Plan:
    """Fill in the model's own values and check the plan against the model.

    Raises:
        InputError: if the model does not support a value.
    """
    plan = _counted(plan)
    _check_lengths(architecture, plan)
    _check_attention(architecture, plan)
    _check_checkpointing(architecture, plan)
    _check_embeddings(architecture, plan)
    _check_dropout(architecture, plan)
    _check_lora(architecture, plan)
    own = {
        "sequence_length": default_length(architecture),
        "target_length": architecture.target_length,
        "task": own_task(architecture),
        "labels": 1 if plan.task is Task.REWARD else architecture.labels,
        "format": _half_format(plan),
        "optimizer_bits": plan.own_bits,
        "pipeline_stages": plan.own_stages,
        "reversible": architecture.reversible,
        "dropout": architecture.dropout,
        "tied_embeddings": architecture.tied_embeddings,
    }
    left_open = {name: value for name, value in own.items() if getattr(plan, name) is None}
    check_data_parallel(plan, architecture)
    check_cpu_offload(plan)
    if plan.is_sharded:
        check_fsdp(plan)
    if plan.shares_states:
        check_zero(plan)
    groups = _resolve_groups(architecture, plan)
    adapted = _resolve_lora(architecture, plan)
    adapted["checkpoint_every"] = _every(plan)
    adapted["gradient_scaler"] = plan.gradient_scaler and plan.precision is Precision.AMP
    found = plan.but(sharing_groups=groups, **left_open, **adapted)
    check_task(found, architecture)
    check_checkpoints(found, architecture)
    rule_of(found).check(found)
    if found.paged_optimizer:
        check_paged(found)
    if found.update_in_backward:
        check_in_backward(found)
    if found.chunked_loss is not ChunkedLoss.NONE:
        check_chunked_loss(found, architecture)
    if found.activation_offload is not ActivationOffload.NONE:
        check_activation_offload(found, architecture)
    if found.gradient_scaler:
        check_gradient_scaler(found, architecture)
    if found.loop is not Loop.TRAINER and found.pipeline_parallel > 1:
        rule = "a pipeline's schedule gets the outputs, not the training loop: must be trainer"
        raise InputError("loop", found.loop, rule)
    _check_split(found, architecture)
    return found


def own_task(architecture: Architecture) -> Task:
    """The task of the class that the configuration names, else of the one that is counted."""
    kind, named = type_of(architecture), Task(architecture.task)
    return named if named in kind.heads else kind.own_task


def _counted(plan: Plan) -> Plan:
    """The plan with the number of all its GPUs; by default, the product of its axes.

    Raises:
        InputError: for a number of GPUs that is no multiple of those that share a model.
    """
    if plan.expert_parallel > 1:  # counted on GPUs that read one micro-batch, not on their own
        return plan
    if plan.gpus == 1:
        return plan.but(gpus=plan.sharing_gpus * plan.context_parallel)
    if plan.gpus % plan.sharing_gpus:
        rule = (
            f"{plan.sharing_gpus:,} GPUs share the model: must be a multiple of "
            f"{plan.sharing_gpus:,}; without it, it is their product"
        )
        raise InputError("gpus", plan.gpus, rule)
    return plan


def _half_format(plan: Plan) -> HalfFormat:
    """A scaler's loss is for float16; else bfloat16, where the card computes it."""
    scaled = plan.gradient_scaler and plan.precision is Precision.AMP
    return HalfFormat.FP16 if scaled or not plan.card.computes_bf16 else HalfFormat.BF16


def _check_split(plan: Plan, architecture: Architecture) -> None:
    """Refuse what layers over several GPUs cannot do."""
    if plan.context_parallel > 1:
        check_context_parallel(plan, architecture)
    if plan.pipeline_parallel > 1:
        check_pipeline(plan, architecture)
    if plan.tensor_parallel > 1 or plan.sequence_parallel:
        check_tensor_parallel(plan, architecture)
    if plan.expert_parallel > 1:
        check_expert_parallel(plan, architecture)


def _check_lengths(architecture: Architecture, plan: Plan) -> None:
    model = type_of(architecture)
    if plan.target_length is not None and not model.has_target:
        rule = f"{architecture.name} has no decoder of its own; only T5 has a target length"
        raise InputError("target_length", plan.target_length, rule)
    most = architecture.numbers.get("target_positions")
    if most and plan.target_length and plan.target_length > most:
        rule = f"must be at most {most:,}: {architecture.name}'s decoder has no more positions"
        raise InputError("target_length", plan.target_length, rule)
    model.check_length(architecture, plan.sequence_length)


def can_untie(architecture: Architecture) -> bool:
    """True if the model's class has an output layer with its own weights."""
    return type_of(architecture).can_untie


def _check_embeddings(architecture: Architecture, plan: Plan) -> None:
    if plan.tied_embeddings is False and not can_untie(architecture):
        rule = f"{architecture.name}'s class always ties its embeddings: must be true"
        raise InputError("tied_embeddings", False, rule)


def _check_dropout(architecture: Architecture, plan: Plan) -> None:
    if plan.dropout and not type_of(architecture).has_dropout:
        raise InputError("dropout", plan.dropout, f"{architecture.name} has no dropout: must be 0")


def _check_checkpointing(architecture: Architecture, plan: Plan) -> None:
    alone = plan.checkpointing is Checkpointing.SELECTIVE
    if alone and not type_of(architecture).has_attention_core:
        rule = f"{architecture.name}'s class has no code that computes attention alone again"
        raise InputError("checkpointing", plan.checkpointing, f"{rule}: must be none or full")


def _every(plan: Plan) -> int:
    """Of so many layers one is checkpointed; it means nothing where no layers are."""
    return plan.checkpoint_every if plan.checkpointing.is_of_layers else 1


def _check_attention(architecture: Architecture, plan: Plan) -> None:
    allowed = attention_kernels(architecture, plan.precision, plan.sequence_length)
    if plan.attention not in allowed:
        rule = f"{architecture.name} in {plan.precision} has code for: {', '.join(allowed)}"
        raise InputError("attention", plan.attention, rule)


def attention_kernels(
    architecture: Architecture, precision: Precision, length: int | None = None
) -> list[Attention]:
    """The kernels that a model's class can run at a length; default: `default_length`.

    `sdpa` is always taken: a class without it (GPT-J) runs its eager code, as a note says. Flash
    wants 16 bits.
    """
    narrow = precision is not Precision.FP32
    length = length or default_length(architecture)
    return [*type_of(architecture).kernels_of(architecture, narrow, length)]


def _check_lora(architecture: Architecture, plan: Plan) -> None:
    if plan.quantization is not BaseBits.NONE:
        check_quantization(plan.quantization, plan.lora)
    if not plan.lora:
        return
    check_trained(plan, type_of(architecture))
    if plan.reversible or (architecture.reversible and plan.reversible is None):
        raise InputError("lora", plan.lora, "peft adapts no reversible layers: must be 0")


def _resolve_lora(architecture: Architecture, plan: Plan) -> dict[str, object]:
    """The adapters' targets and dropout; without adapters none of their options means anything."""
    if not plan.lora:
        without: dict[str, object] = dict.fromkeys(("lora_targets", "lora_dropout", "lora_modules"))
        return {**without, "lora_bias": LoraBias.NONE}
    model = build(architecture, architecture.tied_embeddings)
    targets = find_targets(plan.lora_targets, architecture.family, model)
    check_dropout(plan, targets, model)
    return {"lora_targets": targets, "lora_dropout": plan.lora_dropout or 0.0}


def _resolve_groups(architecture: Architecture, plan: Plan) -> int:
    """Distinct layers of the longest stack; a shorter one has at most its own."""
    layers = architecture.shared_layers
    most = max(architecture.layers, architecture.decoder_layers)
    asked: int | None = plan.sharing_groups
    if asked is not None and asked > most:
        rule = f"{architecture.name} has {layers} layers to share: must be from 1 to {layers}"
        raise InputError("sharing_groups", asked, rule)
    kinds = sorted(set(architecture.pattern))
    if asked is not None and asked < layers and len(kinds) > 1:
        rule = f"{architecture.name} has layers of several kinds ({', '.join(kinds)}), which differ"
        raise InputError("sharing_groups", asked, f"{rule} in more than their weights")
    return min(asked or architecture.sharing_groups or most, layers)


def without_techniques(architecture: Architecture, plan: Plan) -> Plan:
    """The same plan without any technique: the page's baseline."""
    plain = {option.field: plain_value(architecture, option.field) for option in techniques()}
    return plan.but(**plain)


def plain_value(architecture: Architecture, field: str) -> object:
    """The value of a technique's option that leaves the technique out."""
    match field:
        case "optimizer_bits":
            return None
        case "sharing_groups":
            return architecture.shared_layers
        case "reversible":
            return False
        case _:
            return {item.name: item.default for item in fields(Plan)}[field]
