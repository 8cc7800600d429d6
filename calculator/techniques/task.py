"""Tasks beside language modeling, and parts of a model that are not trained.

A task takes a model's language head away and puts its own there, as transformers' classes do.
A frozen part keeps its weights, and gets neither gradients nor states; nothing is kept for the
backward pass below the lowest weight that is trained, because the tape, like autograd, records no
operation of which no input needs a gradient.

Source: transformers (modeling_layers.py), torch (Tensor.requires_grad)
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from calculator.architecture import Architecture
from calculator.autograd.graph import Parameter
from calculator.errors import InputError
from calculator.layers.basic import Embedding
from calculator.layers.heads import TaskHead
from calculator.layers.layer import Layer, rewrite
from calculator.layers.stack import Stack
from calculator.models.model import Model
from calculator.models.registry import type_of
from calculator.plan import ChunkedLoss, Plan
from calculator.task import OF_PAIRS, Task

EMBEDDINGS: Final = "embeddings"
BODY: Final = "body"
RULE: Final = "must be embeddings, body, or layers such as 0-11, with commas between them"


@dataclass(frozen=True, slots=True)
class ForTask:
    """A model with the head of a task in the place of the language model's."""

    task: Task

    def rewrite(self, layer: Layer) -> None:
        """Replace the head of a whole model."""
        if isinstance(layer, Model):
            for name in layer.language_head:
                vars(layer).pop(name, None)
            vars(layer)["task_head"] = layer.heads[self.task](layer)


@dataclass(frozen=True, slots=True)
class Frozen:
    """A part none of whose weights is trained.

    The gradient of token embeddings may be `asked` for all the same, as transformers does
    wherever layers are checkpointed (`enable_input_require_grads`).
    """

    asked: bool

    def rewrite(self, layer: Layer) -> None:
        """Freeze the layer's own weights."""
        freeze(vars(layer).values())
        if isinstance(layer, Embedding) and layer.reads_input:
            layer.asked = self.asked


@dataclass(frozen=True, slots=True)
class Placed:
    """A mark of layers that stand in their stack one by one."""

    def rewrite(self, layer: Layer) -> None:
        """Change nothing."""


@dataclass(frozen=True, slots=True)
class Freeze:
    """A model with some frozen parts."""

    parts: tuple[str, ...]
    asked: bool = False

    def rewrite(self, layer: Layer) -> None:
        """Freeze the parts of a whole model."""
        if not isinstance(layer, Model):
            return
        if BODY in self.parts:
            kept = (*layer.language_head, "task_head")
            body = [item for name, item in vars(layer).items() if name not in kept]
            if layer.task_head is not None:
                body += layer.task_head.of_body()
            _freeze_all(body, self.asked)
            return
        if EMBEDDINGS in self.parts:
            _freeze_all([vars(layer)[name] for name in embeddings_of(layer)], self.asked)
        if numbers := set(layers_in(self.parts)):
            before = 0
            for _, stack in [*layer.stacks()]:
                _freeze_some(stack, {number - before for number in numbers})
                before += stack.layers


def embeddings_of(model: Model) -> list[str]:
    """The names of a model's parts that are its class's embeddings."""
    return [name for name in model.embedding_parts if vars(model).get(name) is not None]


def freeze(values: Iterable[object]) -> None:
    """Freeze the weights among some values."""
    for value in values:
        if isinstance(value, Parameter):
            value.trained = False


def _freeze_all(values: Sequence[object], asked: bool) -> None:
    freeze(values)
    for value in values:
        if isinstance(value, Layer):
            rewrite(value, Frozen(asked))


def _freeze_some(stack: Stack[Any], numbers: set[int]) -> None:
    """Freeze layers of a stack, which then has a kind for each; one that has them stays."""
    if all(Placed() in kind.changes for kind in stack.kinds):
        return
    turn = len(stack.kinds)
    kinds = [stack.kinds[place % turn].fresh() for place in range(stack.layers)]
    for place, kind in enumerate(kinds):
        rewrite(kind, Placed())
        if place in numbers:
            rewrite(kind, Frozen(asked=False))
    stack.kinds = tuple(kinds)


def parts_of(plan: Plan) -> tuple[str, ...]:
    """The parts that a plan freezes."""
    return tuple(plan.freeze.split(",")) if plan.freeze else ()


def layers_in(parts: Sequence[str]) -> list[int]:
    """The numbers of the layers among them.

    Raises:
        InputError: for a part that names nothing.

    >>> layers_in(("embeddings", "0-2", "5"))
    [0, 1, 2, 5]
    """
    found: list[int] = []
    for part in parts:
        if part in (EMBEDDINGS, BODY):
            continue
        first, dash, last = part.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()) or len(part) > 15:
            raise InputError("freeze", part, RULE)
        found += range(int(first), min(int(last or first), 10**6) + 1)
    return found


def task_changes(architecture: Architecture, plan: Plan) -> tuple[ForTask | Freeze, ...]:
    """Changes of a resolved plan's task and of what it freezes."""
    task = () if plan.task is type_of(architecture).own_task else (ForTask(plan.task),)
    parts = parts_of(plan)
    return (*task, Freeze(parts, plan.checkpointing.is_of_layers)) if parts else task


def check_task(plan: Plan, architecture: Architecture) -> None:
    """Refuse a task that transformers has no class for, and parts that the model lacks.

    Raises:
        InputError: naming the option and the rule.
    """
    kind = type_of(architecture)
    if plan.task is not kind.own_task:
        if plan.task not in kind.heads:
            known = ", ".join([kind.own_task, *kind.heads])
            raise InputError("task", plan.task, f"{architecture.name} is counted for: {known}")
        if plan.chunked_loss is not ChunkedLoss.NONE:
            rule = "replaces a language model's loss: must be none with another task"
            raise InputError("chunked_loss", plan.chunked_loss, rule)
        _check_alone("task", plan.task, plan)
    if plan.task in OF_PAIRS:
        _check_pairs(plan, architecture)
    if plan.freeze:
        _check_freeze(plan, architecture)


def _check_pairs(plan: Plan, architecture: Architecture) -> None:
    """Refuse half a pair, two rewards, and what leaves weights without a gradient."""
    if plan.batch_size % 2:
        rule = f"two sequences are a pair of task {plan.task}: must be a multiple of 2"
        raise InputError("batch_size", plan.batch_size, rule)
    if plan.task is Task.REWARD and plan.labels != 1:
        raise InputError("labels", plan.labels, "a reward is one number: must be 1")
    if plan.task is not Task.EMBEDDING:
        return
    if BODY in parts_of(plan):
        rule = "an embedding model is its body: nothing would be trained"
        raise InputError("freeze", plan.freeze, rule)
    if plan.replicas > 1 and not plan.is_sharded and _has_idle(plan, architecture):
        rule = f"{architecture.name}'s pooler gets no gradient, and DDP stops after such a step"
        raise InputError("gpus", plan.gpus, f"{rule}: must be 1")


def _has_idle(plan: Plan, architecture: Architecture) -> bool:
    head: TaskHead = type_of(architecture).heads[plan.task](None)
    return bool(head.of_body())


def _check_freeze(plan: Plan, architecture: Architecture) -> None:
    if not type_of(architecture).can_freeze:
        rule = f"frozen parts of {architecture.name}'s type are not counted yet: leave it out"
        raise InputError("freeze", plan.freeze, rule)
    numbers = layers_in(parts_of(plan))
    most = architecture.layers + architecture.decoder_layers
    if numbers and max(numbers) >= most:
        rule = f"{architecture.name} has layers 0 to {most - 1}"
        raise InputError("freeze", plan.freeze, rule)
    if plan.lora:
        raise InputError(
            "freeze", plan.freeze, "LoRA freezes the whole model already: leave it out"
        )
    if plan.reversible or plan.sharing_groups < architecture.shared_layers:
        rule = "reversible layers, and layers that share weights, are trained as a whole"
        raise InputError("freeze", plan.freeze, f"{rule}: leave it out")
    _check_alone("freeze", plan.freeze, plan)


def _check_alone(field: str, value: str, plan: Plan) -> None:
    """Refuse what divides a model among GPUs, for which only language models have plans."""
    axes = ("tensor_parallel", "expert_parallel", "pipeline_parallel", "context_parallel")
    for axis in axes:
        if getattr(plan, axis) > 1:
            rule = (
                f"only whole language models are divided among GPUs: must be 1 with {field} {value}"
            )
            raise InputError(axis, getattr(plan, axis), rule)
