"""Losses that compare both halves of a micro-batch, as TRL and sentence-transformers have them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, cast

import torch
from torch import nn
from torch.utils.checkpoint import get_device_states, set_device_states
from transformers.utils.generic import ModelOutput

from calculator.plan import Plan
from calculator.plan import Task as Kind
from calculator.task import OF_PAIRS
from validation.chunked_loss import nobody, watch_hidden
from validation.models import OnLogits, Task

SCALE = 20.0  # sentence-transformers' own; no size depends on it


def compare_pairs(
    task: Task, plan: Plan, autocast: Callable[[], Any] = nullcontext, preserve_rng: bool = False
) -> Task:
    """The task with such a loss; called when the model is as it is trained."""
    if plan.task not in OF_PAIRS:
        return task
    model: Any = task.model
    model = model.get_base_model() if hasattr(model, "get_base_model") else model
    if plan.task is Kind.REWARD:
        model.forward = partial(_rewarded, model.forward)
        return task
    made = _Embedding(model.forward)
    if not plan.mini_batch_size:
        model.forward = made
        return replace(task, watch=partial(watch_hidden, made))
    model.forward = cached = _Cached(made.embedded, plan.mini_batch_size, autocast, preserve_rng)
    return replace(task, watch=partial(watch_hidden, cached), kept=cached.kept)


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
        hidden = self.encode(input_ids=input_ids).last_hidden_state  # held as one of the features
        mean = _mean(hidden, attention_mask)
        self.on_hidden(mean)
        first, second = nn.functional.normalize(mean, p=2, dim=1).chunk(2)
        scores = torch.mm(first, second.transpose(0, 1)) * SCALE
        places = torch.arange(len(scores), device=scores.device)
        return ModelOutput(loss=nn.functional.cross_entropy(scores, places))

    def embedded(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        """The mean of the tokens that the mask leaves."""
        return _mean(self.encode(input_ids=input_ids).last_hidden_state, attention_mask)


def _mean(hidden: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
    mask = attention_mask.unsqueeze(-1).expand(hidden.size()).to(hidden.dtype)
    return torch.sum(hidden * mask, 1) / torch.clamp(mask.sum(1), min=1e-9)


class _RandomState:
    """The state of all generators, to which a block returns."""

    def __init__(self, *tensors: torch.Tensor) -> None:
        self.own = torch.get_rng_state()
        self.devices, self.states = get_device_states(*tensors)

    @contextmanager
    def restored(self) -> Iterator[None]:
        """The same random numbers as after it was taken."""
        with torch.random.fork_rng(self.devices):
            torch.set_rng_state(self.own)
            set_device_states(self.devices, self.states)
            yield


class _Cached:
    """GradCache, as sentence-transformers has it (CachedMultipleNegativesRankingLoss).

    `on_hidden` hears when the loss begins, and of the loss that the backward pass begins with. A
    device that computes nothing has no random states.
    """

    def __init__(
        self,
        embed: Callable[..., torch.Tensor],
        size: int,
        autocast: Callable[[], Any],
        preserve_rng: bool,
    ) -> None:
        self.embed, self.size, self.autocast = embed, size, autocast
        self.preserve_rng = preserve_rng
        self.on_hidden: OnLogits = nobody
        self.gradients: list[list[torch.Tensor | None]] = []

    def __call__(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> ModelOutput:
        columns = [*zip(input_ids.chunk(2), attention_mask.chunk(2), strict=True)]
        states: list[_RandomState | None] = []
        embeddings: list[list[torch.Tensor]] = []
        for column in columns:
            embeddings.append([])
            for part in self.parts(column):
                states.append(_RandomState(*part) if self.preserve_rng else None)
                with torch.no_grad(), self.autocast():
                    embedded = self.embed(*part)
                embeddings[-1].append(embedded.detach().requires_grad_())
        self.on_hidden(torch.empty(0, requires_grad=True))
        loss = self.loss(*embeddings).detach().requires_grad_()
        self.gradients = [[each.grad for each in column] for column in embeddings]
        self.on_hidden(loss)
        loss.register_hook(partial(self.again, columns, states))
        return ModelOutput(loss=loss)

    def kept(self) -> Iterator[torch.Tensor]:
        """The embeddings' gradients, which live until those of the next step exist."""
        return (each for column in self.gradients for each in column if each is not None)

    def parts(self, column: tuple[torch.Tensor, torch.Tensor]) -> Iterator[Any]:
        """The mini-batches of a column."""
        return zip(*(each.split(self.size) for each in column), strict=True)

    def loss(self, first: list[torch.Tensor], second: list[torch.Tensor]) -> torch.Tensor:
        """The loss, after its backward passes, one for the rows of each mini-batch."""
        asked = torch.cat(first)
        offered = torch.cat([torch.cat(second)])
        places = torch.arange(len(asked), device=asked.device)
        losses = []
        for start in range(0, len(asked), self.size):
            rows = slice(start, start + self.size)
            scores = _similar(asked[rows], offered) * SCALE
            part = nn.functional.cross_entropy(scores, places[rows]) * len(scores) / len(asked)
            part.backward()
            losses.append(part.detach())
            del part
        return cast(torch.Tensor, sum(losses))

    def again(
        self, columns: list[Any], states: list[_RandomState | None], loss_gradient: torch.Tensor
    ) -> None:
        """Embed each mini-batch with a graph, and go backward from its gradients."""
        parts = (part for column in columns for part in self.parts(column))
        for part, state, gradient in zip(parts, states, self.kept(), strict=True):
            with torch.enable_grad(), state.restored() if state else nullcontext():
                with self.autocast():
                    embedded = self.embed(*part)
                product = torch.dot(embedded.flatten(), gradient.flatten()) * loss_gradient
                product.backward()


def _similar(rows: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
    """Cosines of the angles between all of them."""
    first, second = (nn.functional.normalize(each, p=2, dim=1) for each in (rows, others))
    return torch.mm(first, second.transpose(0, 1))
