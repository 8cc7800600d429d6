"""Averaging of a group's tensors in PyTorch: mean, median, CenteredClip.

The formulas are `calculator.swarm.aggregation`'s, which says where they come from. Each part of a
tensor is aggregated by itself by the peer that is responsible for it, as in the butterfly
CenteredClip of Gorbunov et al. 2022, arXiv:2106.11257.
"""

import statistics
from collections.abc import Sequence
from typing import assert_never

import numpy as np
import torch

from calculator.swarm.aggregation import Aggregation

MANY = 24  # rows from which sorting columns is faster than exchanging rows
PIECE = 2**15  # columns at a time: the rows of a piece stay in the processor's cache
HEAVIEST = 2.0  # a vector counts at most so many times the middle one in CenteredClip
# The norm that a tensor may have before all else, in the middle norm of the group's: one value of
# 1e30 must not pass, even where no rule weighs directions.
LONGEST = 10.0
# The radius of CenteredClip is the median of the distances to the coordinate-wise median: the
# nearer half is taken as it is. Gradients shrink as training goes on and differ from tensor to
# tensor by orders, so that no fixed radius would do.
ITERATIONS = 3
# Distance, in these medians, from which it leaves a vector out: in a group of three, clipping alone
# lets a bad peer turn the result against the other two.
FARTHEST = 3.0


def aggregate(
    parts: Sequence[torch.Tensor], weights: Sequence[float], rule: Aggregation
) -> torch.Tensor:
    """Make one tensor of many of its shape, all of them finite.

    Weights are finite and not negative. A part without weight is left out; where none has any,
    all count the same.
    """
    if not any(weights):
        weights = [1.0] * len(parts)
    heard = [(part, weight) for part, weight in zip(parts, weights, strict=True) if weight > 0]
    vectors = torch.stack([part.reshape(-1) for part, _ in heard])
    vectors = _cut(vectors, LONGEST)
    shares = torch.tensor([weight for _, weight in heard], dtype=vectors.dtype)
    match rule:
        case Aggregation.MEAN:
            result = mean(vectors, shares)
        case Aggregation.MEDIAN:
            result = coordinate_median(vectors)
        case Aggregation.CENTERED_CLIP:
            result = _centered_clip_around_median(vectors, shares)
        case _:
            assert_never(rule)
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


def _centered_clip_around_median(vectors: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """CenteredClip from the median on: weights and radius are bounded by what most say."""
    if len(vectors) < 3:
        return mean(_cut(vectors, 1.0), weights)  # neither of two is the majority
    start = coordinate_median(vectors)
    distances = (vectors - start).norm(dim=1)
    middle = statistics.median(distances.tolist())
    if middle == 0.0:  # most say exactly the same
        return start
    near = distances <= FARTHEST * middle  # true of more than half
    bounded = weights.clamp(max=HEAVIEST * statistics.median(weights.tolist()))
    return centered_clip(vectors[near], middle, ITERATIONS, bounded[near], start)


def _cut(vectors: torch.Tensor, longest: float) -> torch.Tensor:
    """Shorten the rows that are far longer than the middle one of those that are not zero.

    The middle is the lower of two, so that of two peers the shorter says how long the other may be.
    """
    norms = vectors.norm(dim=1, dtype=torch.float64)
    lengths = [norm for norm in norms.tolist() if norm > 0]
    if not lengths or max(lengths) <= (bound := longest * statistics.median_low(lengths)):
        return vectors
    shortened: torch.Tensor = vectors * (bound / norms.clamp(min=bound)).to(vectors.dtype)[:, None]
    return shortened


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
