"""How many sequences this device computes at once: asks the calculator what fits."""

from dataclasses import dataclass

import torch

from calculator.errors import InputError
from training.recipes import Recipe


@dataclass(frozen=True)
class MicroBatch:
    """A number of sequences and, in plain words, why it was chosen."""

    size: int
    reason: str


def choose_micro_batch(recipe: Recipe, device: torch.device, wanted: int | None) -> MicroBatch:
    """Choose the micro-batch: what was asked for, else the largest that fits up to the recipe's."""
    if wanted is not None:
        if wanted < 1:
            raise InputError("micro_batch", wanted, "must be at least 1")
        return MicroBatch(wanted, f"computing {wanted} sequences at once, as asked for")
    size = recipe.swarm.micro_batch_size
    return MicroBatch(size, f"computing {size} sequences at once, as the recipe says")
