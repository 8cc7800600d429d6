"""ZeRO's first stage: each GPU has a copy of the model, and updates its part of the weights.

Counted is PyTorch's `ZeroRedundancyOptimizer` around torch.optim, with DistributedDataParallel's
whole gradients. It hands out whole tensors, the largest first, each to the GPU that has the fewest
elements so far; after the update each GPU sends its own to all others. Figures are those of the
GPU with the most elements.

Source: zero, torch (distributed/optim/zero_redundancy_optimizer.py)
"""

from collections.abc import Sequence
from dataclasses import replace
from heapq import heapify, heapreplace

from calculator.parameters import ParameterTensor


def parts_of(tensors: Sequence[ParameterTensor], gpus: int) -> list[list[ParameterTensor]]:
    """The tensors that each GPU updates.

    >>> large, small = ParameterTensor("large", (4, 2)), ParameterTensor("small", (3,), copies=3)
    >>> [sum(item.elements for item in part) for part in parts_of([small, large], 2)]
    [8, 9]
    """
    single = [replace(item, copies=1) for item in tensors for _ in range(item.copies)]
    loads = [(0, rank) for rank in range(gpus)]
    heapify(loads)
    parts: list[list[ParameterTensor]] = [[] for _ in range(gpus)]
    for item in sorted(single, key=lambda item: -item.elements):
        load, rank = loads[0]
        parts[rank].append(item)
        heapreplace(loads, (load + item.elements, rank))
    return parts


def fullest_rank(parts: Sequence[Sequence[ParameterTensor]]) -> int:
    """The first of the GPUs that update the most elements."""
    return max(range(len(parts)), key=lambda rank: sum(item.elements for item in parts[rank]))
