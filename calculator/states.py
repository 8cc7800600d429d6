"""Bytes of weights, gradients and optimizer states, and what the update adds while it runs.

All of them are exact to the byte: each tensor is rounded up to the allocator's blocks.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import assert_never

from calculator.allocator import round_block
from calculator.optimizers.rule import rule_of
from calculator.plan import Offload, Plan, Update
from calculator.techniques.collectives import Collective, Group
from calculator.techniques.gradient_scaler import kept_bytes, update_beside
from calculator.techniques.paged import is_paged
from calculator.tensors import ParameterTensor, Statics, tensors_bytes


def state_bytes(tensors: Sequence[ParameterTensor], plan: Plan) -> int:
    r"""Bytes of the optimizer's states of all weights.

    $$\sum_i s \, n_i \, b / 8$$

    with s states of b bits for each of the n_i elements of tensor i. At 8 bits a tensor of at least
    4,096 numbers has one byte a state and an fp32 scale for each 256 of them, a smaller one has 32
    bits; LAMB adds one norm per tensor, PyTorch's fused Adam a step counter. An update inside the
    backward pass has an optimizer for each tensor, with tables of its own. Paged states are left
    out, see `paged_bytes`; their scales are not.

    Source: bitsandbytes
    """
    return rule_of(plan).state_bytes(tensors, plan)


def paged_bytes(tensors: Sequence[ParameterTensor], plan: Plan) -> int:
    """Bytes of the states that are in managed memory, which is asked for to the byte.

    Source: bitsandbytes (`get_paged`)
    """
    states = rule_of(plan).states
    return sum(
        item.copies * states * item.elements * plan.optimizer_bits // 8
        for item in tensors
        if is_paged(item.elements, plan)
    )


def from_torch(plan: Plan) -> bool:
    """True if torch.optim does the update.

    Other bits, paged states, LAMB and Lion come from bitsandbytes.
    """
    return rule_of(plan).is_from_torch(plan)


def update_bytes(tensors: Sequence[ParameterTensor], plan: Plan) -> int:
    """Temporaries of the update, above weights, gradients and states.

    foreach makes one list of temporaries as large as all weights for Adam (the square roots); loop
    makes them one tensor at a time, two for Adam (the root and its quotient), while the last
    tensor's is still there. Fused kernels, SGD and bitsandbytes make none. Muon comes before the
    Adam beside it, and its temporaries are gone then.

    What is split over GPUs is in a group of the optimizer's own, updated before the rest. Gradients
    that it sums over the GPUs are in copies meanwhile.

    Source: torch
    """
    if plan.divides_layers:
        alone = replace(plan, tensor_parallel=1, expert_parallel=1)
        groups = [[each for each in tensors if each.is_split is split] for split in (True, False)]
        made = [update_bytes(group, alone) for group in groups if group]
        return max(_summed_bytes(tensors, plan), *made)
    return rule_of(plan).update_bytes(tensors, plan)


def sent_by_update(
    plan: Plan, tensors: Callable[[], Sequence[ParameterTensor]], group: Group
) -> Iterator[Collective]:
    """Exchanges of an update of parts of weights."""
    found: dict[str, list[int]] = defaultdict(list)
    for name, size in rule_of(plan).exchanges(tensors, plan):
        found[name].append(size)
    for name, sizes in found.items():
        yield Collective(name, tuple(sizes), group)


def _summed_bytes(tensors: Sequence[ParameterTensor], plan: Plan) -> int:
    """Copies of the gradients that are summed over GPUs: of all, or of one tensor after another."""
    summed = [each for each in tensors if each.is_summed and not plan.is_sharded]
    if plan.update is Update.LOOP:
        summed = [replace(each, copies=1) for each in summed[:1]]
    return tensors_bytes(summed, plan.trained_bytes)


def statics(tensors: Sequence[ParameterTensor], buffers: int, plan: Plan) -> Statics:
    """Weights, gradients and states, where they live, for a plan.

    `mixed` keeps fp32 master weights with the optimizer and widens the gradients for the update.
    Offload keeps the updated weights, their gradients and the states in RAM: each step moves
    every gradient there and every weight back. An update inside the backward pass leaves no
    gradients, and its temporaries belong to that pass.

    Source: mixed, offload
    """
    weights = tensors_bytes(tensors, plan.weight_bytes) + buffers
    trained = [tensor for tensor in tensors if tensor.trained]
    asking = [tensor for tensor in tensors if tensor.trained or tensor.idle]
    updated = trained if plan.lora else asking if plan.freeze else tensors
    copies = tensors_bytes(updated, plan.trained_bytes)
    gradients = sum(
        item.copies * round_block(item.gradient_elements * (item.width or plan.weight_bytes))
        for item in trained
    )
    widened = tensors_bytes(trained, plan.trained_bytes)
    states = state_bytes(trained, plan) + kept_bytes(plan)
    paged = paged_bytes(trained, plan)
    if plan.update_in_backward:
        return Statics(weights=weights, gradients=0, optimizer=states, paged=paged)
    temporaries = update_beside(update_bytes(trained, plan), plan, from_torch(plan))
    match plan.offload:
        case Offload.OPTIMIZER:
            return Statics(
                weights=weights,
                gradients=gradients,
                ram_weights=copies,
                ram_gradients=widened,
                ram_optimizer=states,
                ram_update=temporaries,
                to_ram=_moved(trained, plan),
                to_gpu=_moved(updated, plan),
            )
        case Offload.NONE:
            masters = plan.has_master_weights
            return Statics(
                weights=weights,
                gradients=gradients,
                optimizer=states + masters * copies,
                update=temporaries + masters * widened,
                paged=paged,
            )
        case _:
            assert_never(plan.offload)


def _moved(tensors: Sequence[ParameterTensor], plan: Plan) -> int:
    """Bytes without rounding."""
    return sum(each.elements * each.copies * (each.width or plan.weight_bytes) for each in tensors)
