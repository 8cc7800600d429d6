"""Tasks beside language modeling: transformers' classes of them, their labels, and frozen parts."""

from typing import Any

import torch
import transformers
from torch import nn

from calculator.errors import InputError
from calculator.models.registry import TYPES
from calculator.plan import Plan, Task
from calculator.task import class_for
from calculator.techniques.task import BODY, EMBEDDINGS, layers_in, parts_of
from validation.subject import Subject

HEADS = ("score", "classifier", "qa_outputs")
PLACES = ("wpe", "embed_positions")


def task_class(subject: Subject, plan: Plan) -> Any:
    """The class of the plan's task.

    Raises:
        InputError: where transformers has none.
    """
    name = class_for(plan.task, TYPES[subject.kind].counted)
    found = getattr(transformers, name, None)
    if found is None:
        raise InputError("task", plan.task, f"transformers has no {name}")
    return found


def set_task(config: Any, plan: Plan, is_own: bool) -> None:
    """The labels of a task; the configuration's other dropouts are those of the plan too."""
    if is_own:
        return
    # DeBERTa's class would look for rows with a label, whose number the counting GPU cannot know
    config.problem_type = "single_label_classification"
    config.num_labels = {Task.QUESTIONS: 2, Task.REWARD: 1}.get(plan.task, plan.labels)
    if getattr(config, "pad_token_id", None) is None:
        config.pad_token_id = 0
    for name in ("seq_classif_dropout", "qa_dropout"):
        if hasattr(config, name) and plan.dropout is not None:
            setattr(config, name, plan.dropout)


def head_of(model: Any) -> nn.Module:
    """The module that makes the logits."""
    found = [getattr(model, name) for name in HEADS if hasattr(model, name)]
    made: nn.Module = model.get_output_embeddings() or (found[0] if found else model)
    return made


def labels_of(config: Any, plan: Plan) -> dict[str, torch.Tensor]:
    """The labels that the class of a task is trained with."""
    batch, length = plan.batch_size, plan.sequence_length
    match plan.task:
        case Task.QUESTIONS:
            ends = ("start_positions", "end_positions")
            return {name: torch.randint(0, length, (batch,)) for name in ends}
        case Task.REWARD:
            return {}
        case Task.EMBEDDING:
            return {"attention_mask": torch.ones((batch, length), dtype=torch.int64)}
        case Task.SEQUENCE | Task.AUDIO:
            return {"labels": torch.randint(0, config.num_labels, (batch,))}
        case Task.TOKENS:
            return {"labels": torch.randint(0, config.num_labels, (batch, length))}
        case _:
            shape = (batch, plan.target_length or length)
            return {"labels": torch.randint(0, config.vocab_size, shape)}


def freeze(model: Any, plan: Plan, stacks: list[nn.ModuleList]) -> None:
    """Let the parts that a plan freezes ask for no gradient."""
    parts = parts_of(plan)
    base = model.base_model
    frozen: list[nn.Module] = [base] if BODY in parts else []
    if EMBEDDINGS in parts:
        frozen.append(getattr(base, "embeddings", None) or model.get_input_embeddings())
        frozen += [getattr(base, name) for name in PLACES if hasattr(base, name)]
    layers = [layer for stack in stacks for layer in stack]
    frozen += [layers[number] for number in layers_in(parts)]
    for module in frozen:
        module.requires_grad_(False)
