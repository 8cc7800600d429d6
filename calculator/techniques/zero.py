"""ZeRO's first stage: each GPU has a copy of the model, and updates its part of the weights.

Counted is PyTorch's `ZeroRedundancyOptimizer` around torch.optim, with DistributedDataParallel's
whole gradients. It hands out whole tensors, the largest first, each to the GPU that has the fewest
elements so far; after the update each GPU sends its own to all others. Figures are those of the
GPU with the most elements.

Source: zero, torch (distributed/optim/zero_redundancy_optimizer.py)
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from heapq import heapify, heapreplace
from itertools import chain
from typing import Final

from calculator.layers.ring import place_of
from calculator.optimizers.rule import rule_of
from calculator.plan import Plan
from calculator.states import state_bytes, update_bytes
from calculator.techniques.collectives import BROADCAST, Collective
from calculator.techniques.effect import Effect, Stored, Tensors
from calculator.tensors import ParameterTensor, Statics


def parts_of(groups: Sequence[Sequence[ParameterTensor]], gpus: int) -> list[list[ParameterTensor]]:
    """The tensors of an optimizer's groups that each GPU updates.

    >>> large, small = ParameterTensor("large", (4, 2)), ParameterTensor("small", (3,), copies=3)
    >>> [sum(item.elements for item in part) for part in parts_of([[small, large]], 2)]
    [8, 9]
    """
    loads = [(0, rank) for rank in range(gpus)]
    heapify(loads)
    parts: list[list[ParameterTensor]] = [[] for _ in range(gpus)]
    for group in groups:
        single = [replace(item, copies=1) for item in group for _ in range(item.copies)]
        for item in sorted(single, key=lambda item: -item.elements):
            load, rank = loads[0]
            parts[rank].append(item)
            heapreplace(loads, (load + item.elements, rank))
    return parts


def fullest_rank(parts: Sequence[Sequence[ParameterTensor]], plan: Plan) -> int:
    """The first of the GPUs that keep the most states.

    Beside rings that divide sequences, only GPUs with the largest part of one are meant.
    """
    ring, load = plan.context_parallel, rule_of(plan).load
    ranks = range(place_of(ring) if ring > 1 else 0, len(parts), ring)
    return max(ranks, key=lambda rank: sum(load(item, plan) for item in parts[rank]))


def updated_parts(tensors: Sequence[ParameterTensor], plan: Plan) -> list[list[ParameterTensor]]:
    """The tensors that each GPU updates: of all that each optimizer is given."""
    given = [item for item in tensors if item.trained or not plan.lora]
    handed = (parts_of(groups, plan.replicas) for groups in rule_of(plan).groups(given))
    return [list(chain(*part)) for part in zip(*handed, strict=True)]


def _statics(static: Statics, stored: Stored) -> Statics:
    """The states and the update of the fullest GPU."""
    plan = stored.plan
    parts = updated_parts(stored.tensors, plan)
    own = [item for item in parts[fullest_rank(parts, plan)] if item.trained]
    states, update = state_bytes(own, plan), update_bytes(own, plan)
    return replace(static, optimizer=states, update=update)


def _exchanges(plan: Plan, _: object, tensors: Callable[[], Tensors]) -> Iterator[Collective]:
    """Each weight from the GPU that updates it to all others, GPU by GPU."""
    every = chain(*updated_parts(tensors(), plan))
    sizes = (item.elements * (item.width or plan.weight_bytes) for item in every)
    yield Collective(BROADCAST, tuple(sizes))


def updated_words(tensors: Sequence[ParameterTensor], plan: Plan) -> str:
    """Words for the states of the GPU that has the most."""
    parts = updated_parts(tensors, plan)
    rank = fullest_rank(parts, plan)
    most, every = (sum(item.elements for item in part) for part in (parts[rank], chain(*parts)))
    return (
        "the states of its own part of the weights, in whole tensors. Figures are those of GPU "
        f"{rank}, counted from 0, which updates the most: {most:,} of {every:,} elements."
    )


EFFECT: Final = Effect(used=lambda plan: plan.shares_states, statics=_statics, exchanges=_exchanges)
