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
from calculator.plan import Plan
from calculator.task import Task
from calculator.techniques.effect import Effect

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
            vars(layer).update(dict.fromkeys(layer.language_head))
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


def _layers(architecture: Architecture, plan: Plan) -> tuple[ForTask | Freeze, ...]:
    """Changes of a resolved plan's task and of what it freezes."""
    task = () if plan.task is type_of(architecture).own_task else (ForTask(plan.task),)
    parts = parts_of(plan)
    return (*task, Freeze(parts, plan.checkpointing.is_of_layers)) if parts else task


def has_idle(plan: Plan, kind: type[Model]) -> bool:
    """True if the model without its language head has weights that a task does not use."""
    head: TaskHead = kind.heads[plan.task](None)
    return bool(head.of_body())


EFFECT: Final = Effect(used=lambda _: True, layers=_layers)
