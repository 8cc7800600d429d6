r"""The weights that all peers share, and the step that all of them make on the same updates.

Every operation on an element is one correctly rounded addition, subtraction or multiplication in
32 bits, in one order, and never a fused multiply-add: the result has the same bits on every
machine that keeps to IEEE 754, whatever its threads and vector instructions.
"""

import hashlib
import statistics
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch

from calculator.errors import InputError
from training.sparse.codec import Update

LONGEST = 4.0  # the norm with which an update counts, in the middle norm of the round's
HEAVIEST = 8.0  # the samples with which one counts, in the middle number of the round's
_PURPOSE = b"training-transformers-together shared state 2"


@dataclass(frozen=True)
class Contribution:
    """One peer's part of a round.

    Attributes:
        samples: that its update was computed from. norm: of the update.
        read: gives the update, which need not be in memory until then.
    """

    samples: int
    norm: float
    read: Callable[[], Update]

    @classmethod
    def of(cls, samples: int, update: Update) -> Self:
        """A part whose update is in memory, decoded."""
        return cls(samples, update.norm, lambda: update)


class SharedState:
    r"""Weights, and the count of rounds and samples behind them.

    .. math::
        \theta \leftarrow \theta - \alpha \sum_i \frac{n_i}{\sum_j n_j} \Delta_i

    with the updates Delta_i of n_i samples each. There is no momentum as in DiLoCo: the peers'
    error feedback stands for it, and who comes late downloads half as much.
    Source: SparseLoCo, arXiv:2508.15706, algorithm 1.

    Attributes:
        weights: float32 [layout.elements], in CPU memory.
        round: rounds made.
        samples: of all updates that were taken.
    """

    def __init__(self, weights: torch.Tensor, round_number: int = 0, samples: int = 0) -> None:
        self.weights = weights.detach().float().cpu().contiguous()
        self.round, self.samples = round_number, samples

    @classmethod
    def of(cls, parameters: Sequence[torch.Tensor]) -> Self:
        """The state at the beginning of a run, from the first weights."""
        return cls(flatten(parameters))

    def copy(self) -> Self:
        """A state of its own with the same bits."""
        return type(self)(self.weights.clone(), self.round, self.samples)

    @torch.no_grad()
    def step(self, contributions: Sequence[Contribution], learning_rate: float) -> None:
        """Make the step of a round, whose updates come in the order that all peers agree on.

        A round without updates leaves the weights as they are.

        Raises:
            InputError: an update is of no samples.
        """
        factors = shares(contributions) if contributions else []
        self.round += 1
        if not contributions:
            return
        mean = torch.zeros_like(self.weights)
        for share, contribution in zip(factors, contributions, strict=True):
            update = contribution.read()
            mean[update.places] += update.values.mul(share)
        self.weights.sub_(mean.mul_(learning_rate))
        self.samples += sum(contribution.samples for contribution in contributions)

    def digest(self) -> str:
        """SHA-256 of all of it, in hexadecimal: equal where every bit is."""
        digest = hashlib.sha256(_PURPOSE + struct.pack("<QQ", self.round, self.samples))
        digest.update(self.weights.numpy().astype("<f4", copy=False).data)
        return digest.hexdigest()


@torch.no_grad()
def load(vector: torch.Tensor, parameters: Sequence[torch.Tensor]) -> None:
    """Copy a flat vector of weights into a model's parameters."""
    parts = vector.split([parameter.numel() for parameter in parameters])
    for parameter, part in zip(parameters, parts, strict=True):
        parameter.copy_(part.view_as(parameter))


def flatten(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """Tensors as one flat vector in 32 bits, on their device."""
    return torch.cat([tensor.detach().flatten().float() for tensor in tensors])


def shares(contributions: Sequence[Contribution]) -> list[float]:
    """The factor of each update in a round's mean.

    It is the update's part of all samples. One that claims far more samples than the middle one
    counts with the most that is allowed, and one that is far longer is shortened, so that no
    single peer decides a round.

    Raises:
        InputError: an update is of no samples.
    """
    fewest = min(contribution.samples for contribution in contributions)
    if fewest < 1:
        raise InputError("samples", fewest, "must be at least 1")
    most = HEAVIEST * statistics.median(one.samples for one in contributions)
    longest = LONGEST * statistics.median(one.norm for one in contributions)
    counted = [min(float(one.samples), most) for one in contributions]
    total = sum(counted)
    return [
        float(np.float32(samples / total * _shortening(one.norm, longest)))
        for samples, one in zip(counted, contributions, strict=True)
    ]


def _shortening(norm: float, longest: float) -> float:
    return longest / norm if norm > longest else 1.0
