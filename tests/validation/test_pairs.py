"""GradCache on an encoder of two layers: it is the loss of the whole batch, and its dropout."""

from typing import Any

import pytest
import torch
from torch import nn
from transformers.utils.generic import ModelOutput

from calculator.plan import Plan
from validation.models import Task
from validation.pairs import compare_pairs


class Encoder(nn.Module):
    """A table and a product with dropout; it remembers its hidden states."""

    def __init__(self, dropout: float) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.table, self.product = nn.Embedding(11, 6), nn.Linear(6, 6)
        self.dropout = dropout
        self.made: list[torch.Tensor] = []

    def forward(self, input_ids: torch.Tensor) -> ModelOutput:
        hidden = self.product(self.table(input_ids))
        hidden = nn.functional.dropout(hidden, self.dropout)
        self.made.append(hidden.detach())
        return ModelOutput(last_hidden_state=hidden)


def trained(mini_batch_size: int, dropout: float = 0.0) -> tuple[Encoder, float]:
    """The encoder after the backward pass of 6 pairs of 5 tokens, and the loss."""
    encoder = Encoder(dropout)
    options = {"task": "embedding", "batch_size": 12, "mini_batch_size": mini_batch_size}
    task = Task(encoder, lambda _: pytest.fail("nobody watches"), {})
    model: Any = compare_pairs(task, Plan.parse(options), preserve_rng=True).model
    ids = torch.arange(60).reshape(12, 5) % 11
    loss = model(input_ids=ids, attention_mask=torch.ones_like(ids)).loss
    loss.backward()
    return encoder, loss.item()


@pytest.mark.parametrize("mini_batch_size", [1, 2, 4])
def test_gradcache_has_the_loss_and_the_gradients_of_the_whole_batch(mini_batch_size: int) -> None:
    (whole, expected), (cached, loss) = trained(0), trained(mini_batch_size)
    assert loss == pytest.approx(expected, rel=1e-5)
    for one, other in zip(whole.parameters(), cached.parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad)


def test_each_mini_batch_drops_out_the_same_again() -> None:
    encoder, _ = trained(2, dropout=0.5)
    first, again = encoder.made[:6], encoder.made[6:]
    assert len(again) == 6
    for one, other in zip(first, again, strict=True):
        torch.testing.assert_close(one, other)
