"""A plan completed for a model: open options are filled in, unsupported ones rejected."""

from dataclasses import fields

from calculator.architecture import USUAL_LENGTH, Architecture
from calculator.errors import InputError
from calculator.laws import obey
from calculator.models.registry import build, type_of
from calculator.plan import (
    HalfFormat,
    LoraBias,
    Plan,
    Precision,
    Task,
    techniques,
)
from calculator.techniques.lora import find_targets


def default_length(architecture: Architecture) -> int:
    """Tokens where a plan leaves them open: the usual length, or the model's longest if shorter."""
    own = architecture.sequence_length
    return own if type_of(architecture).fixed_length else min(USUAL_LENGTH, own)


def resolve(architecture: Architecture, plan: Plan) -> Plan:
    """Fill in the model's own values and check the plan against the model.

    Raises:
        InputError: if the model does not support a value.
    """
    plan, most = _counted(plan), architecture.shared_layers
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
        "sharing_groups": min(architecture.sharing_groups or most, most),
    }
    found = plan.but(
        **{name: value for name, value in own.items() if getattr(plan, name) is None},
        **_resolve_lora(architecture, plan),
        checkpoint_every=_every(plan),
        gradient_scaler=plan.gradient_scaler and plan.precision is Precision.AMP,
    )
    if type_of(architecture).has_target and found.task is not type_of(architecture).own_task:
        found = found.but(target_length=None)  # its class has no decoder
    obey(found, architecture)  # a shorter stack has at most its own layers
    return found.but(sharing_groups=min(found.sharing_groups, most))


def refusal(architecture: Architecture, plan: Plan) -> InputError | None:
    """The reason that the plan's card, or any, does not run it; None where it does."""
    try:
        resolve(architecture, plan)
    except InputError as error:
        return error
    return None


def own_task(architecture: Architecture) -> Task:
    """The task of the class that the configuration names, else of the one that is counted."""
    kind, named = type_of(architecture), Task(architecture.task)
    return named if named in kind.heads else kind.own_task


def _counted(plan: Plan) -> Plan:
    """The plan with the number of all its GPUs; by default, the product of its axes."""
    if plan.gpus > 1 or plan.expert_parallel > 1:  # experts' GPUs read one micro-batch
        return plan
    return plan.but(gpus=plan.sharing_gpus * plan.context_parallel)


def _half_format(plan: Plan) -> HalfFormat:
    """A scaler's loss is for float16; else bfloat16, where the card computes it."""
    scaled = plan.gradient_scaler and plan.precision is Precision.AMP
    return HalfFormat.FP16 if scaled or plan.card.predates_ampere else HalfFormat.BF16


def _every(plan: Plan) -> int:
    """Of so many layers one is checkpointed; it means nothing where no layers are."""
    return plan.checkpoint_every if plan.checkpointing.is_of_layers else 1


def _resolve_lora(architecture: Architecture, plan: Plan) -> dict[str, object]:
    """The adapters' targets and dropout; without adapters none of their options means anything."""
    if not plan.lora:
        without: dict[str, object] = dict.fromkeys(("lora_targets", "lora_dropout", "lora_modules"))
        return {**without, "lora_bias": LoraBias.NONE}
    model = build(architecture, architecture.tied_embeddings)
    task = plan.task or own_task(architecture)
    targets = find_targets(plan.lora_targets, architecture.family, model, task)
    return {"lora_targets": targets, "lora_dropout": plan.lora_dropout or 0.0}


def without_techniques(architecture: Architecture, plan: Plan) -> Plan:
    """The same plan without any technique: the page's baseline.

    It is a step of one GPU where DDP, which copies the whole model, refuses the model.
    """
    plain = {option.field: plain_value(architecture, option.field) for option in techniques()}
    bare = plan.but(**plain)
    return bare.but(gpus=1) if refusal(architecture, bare) else bare


def plain_value(architecture: Architecture, field: str) -> object:
    """The value of a technique's option that leaves the technique out."""
    match field:
        case "optimizer_bits":
            return None
        case "sharing_groups":
            shares_itself = architecture.sharing_groups and type_of(architecture).counted
            return architecture.sharing_groups if shares_itself else architecture.shared_layers
        case "reversible":
            return False
        case _:
            return {item.name: item.default for item in fields(Plan)}[field]
