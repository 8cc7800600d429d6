"""How the tensors of a group become one, on PyTorch: mean, median, CenteredClip.

The formulas are `calculator.aggregation`'s, which says where they come from. Each part of a
tensor is aggregated by itself by the peer that is responsible for it, as in the butterfly
CenteredClip of Gorbunov et al. 2022, arXiv:2106.11257.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

import numpy as np
import torch

from calculator.aggregation import Aggregation
from calculator.errors import InputError

MANY = 24  # rows from which sorting columns is faster than exchanging rows
PIECE = 2**15  # columns at a time: the rows of a piece stay in the processor's cache
HEAVIEST = 2.0  # a vector counts at most so many times the middle one in CenteredClip


@dataclass(frozen=True)
class AggregationRule:
    """How a peer makes one tensor of many.

    Attributes:
        aggregation: the way.
        radius: of CenteredClip, in medians of the distances to the coordinate-wise median: at 1
            the nearer half is taken as it is. Gradients shrink as training goes on and differ
            from tensor to tensor by orders, so that no fixed radius would do.
        iterations: of CenteredClip.
    """

    aggregation: Aggregation = Aggregation.MEAN
    radius: float = 1.0
    iterations: int = 3

    def __post_init__(self) -> None:
        if not self.radius > 0:
            raise InputError("clip_radius", self.radius, "must be above 0")
        if self.iterations < 1:
            raise InputError("clip_iterations", self.iterations, "must be at least 1")


def aggregate(
    parts: Sequence[torch.Tensor], weights: Sequence[float], rule: AggregationRule
) -> torch.Tensor:
    """Make one tensor of many of its shape, all of them finite.

    Weights are finite and not negative. A part without weight is left out; where none has any,
    all count the same.
    """
    if not any(weights):
        weights = [1.0] * len(parts)
    heard = [(part, weight) for part, weight in zip(parts, weights, strict=True) if weight > 0]
    vectors = torch.stack([part.reshape(-1) for part, _ in heard])
    shares = torch.tensor([weight for _, weight in heard], dtype=vectors.dtype)
    match rule.aggregation:
        case Aggregation.MEAN:
            result = mean(vectors, shares)
        case Aggregation.MEDIAN:
            result = coordinate_median(vectors)
        case Aggregation.CENTERED_CLIP:
            result = _centered_clip_around_median(vectors, shares, rule)
        case _:
            assert_never(rule.aggregation)
    return result.reshape(parts[0].shape)


def mean(vectors: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """The weighted mean of the rows."""
    return (weights / weights.sum()) @ vectors


def coordinate_median(vectors: torch.Tensor) -> torch.Tensor:
    """The median of each column; of two middle numbers, their mean."""
    if len(vectors) > MANY:
        ordered = torch.from_numpy(np.sort(np.ascontiguousarray(vectors.numpy().T), axis=1))
        return _middle(list(ordered.T))
    return torch.cat([_middle(_sort(piece)) for piece in vectors.split(PIECE, dim=1)])


def centered_clip(
    vectors: torch.Tensor,
    radius: float,
    iterations: int,
    weights: torch.Tensor,
    start: torch.Tensor,
) -> torch.Tensor:
    """The centre after `iterations` of CenteredClip over the rows, from `start` on."""
    shares, centre = weights / weights.sum(), start
    for _ in range(iterations):
        away = vectors - centre
        factors = (radius / away.norm(dim=1).clamp(min=1e-30)).clamp(max=1.0)
        centre = centre + (shares * factors) @ away
    return centre


def _centered_clip_around_median(
    vectors: torch.Tensor, weights: torch.Tensor, rule: AggregationRule
) -> torch.Tensor:
    """CenteredClip from the median on: weights and radius are bounded by what most say."""
    if len(vectors) < 3:
        return mean(vectors, weights)  # neither of two is the majority
    start = coordinate_median(vectors)
    distances = (vectors - start).norm(dim=1).tolist()
    radius = rule.radius * statistics.median(distances)
    if radius == 0.0:  # most say exactly the same
        return start
    bounded = weights.clamp(max=HEAVIEST * statistics.median(weights.tolist()))
    return centered_clip(vectors, radius, rule.iterations, bounded, start)


def _sort(vectors: torch.Tensor) -> list[torch.Tensor]:
    """Rows sorted in each column, by exchanging neighbours: PyTorch's own sort is 20 times slower.

    After as many rounds over alternating pairs as there are rows, all are in order.
    """
    rows = list(vectors.clone().unbind(0))
    for turn in range(len(rows)):
        for index in range(turn % 2, len(rows) - 1, 2):
            low, high = rows[index], rows[index + 1]
            rows[index] = torch.minimum(low, high)
            torch.maximum(low, high, out=high)
    return rows


def _middle(ordered: list[torch.Tensor]) -> torch.Tensor:
    count = len(ordered)
    return (ordered[(count - 1) // 2] + ordered[count // 2]) / 2
