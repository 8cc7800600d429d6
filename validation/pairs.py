"""Losses that compare both halves of a micro-batch, as TRL and sentence-transformers have them."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import nn
from transformers.utils.generic import ModelOutput

from calculator.plan import Plan
from calculator.plan import Task as Kind
from calculator.task import OF_PAIRS
from validation.chunked_loss import nobody, watch_hidden
from validation.models import OnLogits, Task

SCALE = 20.0  # sentence-transformers' own; no size depends on it


def compare_pairs(task: Task, plan: Plan) -> Task:
    """The task with such a loss; called when the model is as it is trained."""
    if plan.task not in OF_PAIRS:
        return task
    model: Any = task.model
    model = model.get_base_model() if hasattr(model, "get_base_model") else model
    if plan.task is Kind.REWARD:
        model.forward = partial(_rewarded, model.forward)
        return task
    model.forward = made = _Embedding(model.forward)
    return replace(task, watch=partial(watch_hidden, made))


def _rewarded(classify: Callable[..., Any], input_ids: torch.Tensor) -> ModelOutput:
    """The loss of rewards, as TRL's RewardTrainer computes it."""
    rewards = classify(input_ids=input_ids).logits
    better, worse = torch.chunk(rewards.squeeze(-1), chunks=2)
    return ModelOutput(loss=-nn.functional.logsigmoid(better - worse).mean(), rewards=rewards)


class _Embedding:
    """A base model, the mean of its tokens, and the loss of embeddings of length 1.

    `on_hidden` hears of the mean, one row for each sequence.
    """

    def __init__(self, encode: Callable[..., Any]) -> None:
        self.encode = encode
        self.on_hidden: OnLogits = nobody

    def __call__(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> ModelOutput:
        hidden = self.encode(input_ids=input_ids).last_hidden_state
        mask = attention_mask.unsqueeze(-1).expand(hidden.size()).to(hidden.dtype)
        mean = torch.sum(hidden * mask, 1) / torch.clamp(mask.sum(1), min=1e-9)
        self.on_hidden(mean)
        first, second = nn.functional.normalize(mean, p=2, dim=1).chunk(2)
        scores = torch.mm(first, second.transpose(0, 1)) * SCALE
        places = torch.arange(len(scores), device=scores.device)
        return ModelOutput(loss=nn.functional.cross_entropy(scores, places))
