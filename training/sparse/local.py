"""A peer's own part of a round: local steps from given weights until the time is up."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from training.sparse.shared import flatten, load

Compute = Callable[[], int]  # adds one local step's gradients; gives the samples that went in


@dataclass(frozen=True)
class Drift:
    """The result of local steps.

    Attributes:
        difference: the pseudo-gradient, first weights minus last ones: float32 [elements].
        samples: that the steps were computed from.
        steps: that were made.
    """

    difference: torch.Tensor
    samples: int
    steps: int


def train_locally(
    start: torch.Tensor,
    parameters: Sequence[torch.nn.Parameter],
    optimizer: torch.optim.Optimizer,
    compute: Compute,
    seconds: float,
    max_gradient_norm: float = math.inf,
    clock: Callable[[], float] = time.monotonic,
) -> Drift:
    """Make local steps for some time, each peer at its own pace.

    A step that began in time is completed, and one is always made. A step whose gradients are not
    finite changes nothing and counts no samples. The optimizer keeps its states from round to
    round.

    Args:
        start: the weights to begin with, a flat vector.
        parameters: the model's, in the vector's order; afterwards they hold the last weights.
        max_gradient_norm: longer gradients are shortened to it.
        clock: gives the time in seconds.
    """
    load(start, parameters)
    samples = steps = 0
    end = clock() + seconds
    while not steps or clock() < end:
        optimizer.zero_grad(set_to_none=True)
        computed = compute()
        steps += 1
        norm = torch.nn.utils.clip_grad_norm_(parameters, max_gradient_norm)
        if bool(norm.isfinite()):
            optimizer.step()
            samples += computed
    optimizer.zero_grad(set_to_none=True)
    local = flatten(parameters)
    return Drift(start.to(local.device) - local, samples, steps)
