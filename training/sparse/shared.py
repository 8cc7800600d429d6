r"""The weights that all peers share, and the step that all of them make on the same updates.

Every operation on an element is one correctly rounded addition, subtraction or multiplication in
32 bits, in one order, and never a fused multiply-add: the result has the same bits on every
machine that keeps to IEEE 754, whatever its threads and vector instructions.
"""

import hashlib
import statistics
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
import torch

from calculator.errors import InputError
from training.sparse.codec import Update

_PURPOSE = b"training-transformers-together shared state 2"


@dataclass(frozen=True, slots=True)
class OuterSettings:
    """Settings of the outer step.

    Attributes:
        learning_rate: alpha.
        longest: the norm with which an update counts, in the middle norm of the round's.
        heaviest: the samples with which an update counts, in the middle number of the round's.
    """

    learning_rate: float
    longest: float = 4.0
    heaviest: float = 8.0

    def __post_init__(self) -> None:
        """Check every field.

        Raises:
            InputError: for a value out of range.
        """
        if not 0 < self.learning_rate <= 10:
            raise InputError("learning_rate", self.learning_rate, "must be above 0, at most 10")
        for field in ("longest", "heaviest"):
            if not getattr(self, field) >= 1:
                raise InputError(field, getattr(self, field), "must be at least 1")


class Part(Protocol):
    """One peer's part of a round: an update, and the samples that it was computed from."""

    @property
    def samples(self) -> int:
        """Of the update."""

    @property
    def norm(self) -> float:
        """Of the update."""

    def read(self) -> Update:
        """The update."""


@dataclass(frozen=True)
class Contribution:
    """A part whose update is in memory, decoded."""

    samples: int
    update: Update

    @property
    def norm(self) -> float:
        """Of the update."""
        return self.update.norm

    def read(self) -> Update:
        """The update."""
        return self.update


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
    def step(self, contributions: Sequence[Part], settings: OuterSettings) -> None:
        """Make the step of a round, whose updates come in the order that all peers agree on.

        A round without updates leaves the weights as they are.

        Raises:
            InputError: an update is of no samples.
        """
        factors = shares(contributions, settings) if contributions else []
        self.round += 1
        if not contributions:
            return
        mean = torch.zeros_like(self.weights)
        for share, contribution in zip(factors, contributions, strict=True):
            update = contribution.read()
            mean[update.places] += update.values.mul(share)
        self.weights.sub_(mean.mul_(settings.learning_rate))
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


def shares(contributions: Sequence[Part], settings: OuterSettings) -> list[float]:
    """The factor of each update in a round's mean.

    It is the update's part of all samples. One that claims far more samples than the middle one
    counts with the most that is allowed, and one that is far longer is shortened, so that no
    single peer decides a round.

    Raises:
        InputError: there is no update, or one of no samples.
    """
    if not contributions:
        raise InputError("contributions", "none", "must be at least one")
    fewest = min(contribution.samples for contribution in contributions)
    if fewest < 1:
        raise InputError("samples", fewest, "must be at least 1")
    most = settings.heaviest * statistics.median(one.samples for one in contributions)
    longest = settings.longest * statistics.median(one.norm for one in contributions)
    counted = [min(float(one.samples), most) for one in contributions]
    total = sum(counted)
    return [
        float(np.float32(samples / total * _shortening(one.norm, longest)))
        for samples, one in zip(counted, contributions, strict=True)
    ]


def _shortening(norm: float, longest: float) -> float:
    return longest / norm if norm > longest else 1.0
