"""Bytes of weights, gradients and optimizer states, and what the update adds while it runs.

All of them are exact to the byte: each tensor is rounded up to the allocator's blocks.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final, assert_never

from calculator.allocator import round_block
from calculator.muon import iteration_bytes, momentum_bytes, split_by_optimizer
from calculator.parameters import ParameterTensor
from calculator.plan import Offload, Optimizer, Plan, Update
from calculator.techniques.gradient_scaler import kept_bytes, update_beside
from calculator.techniques.paged import is_paged

# bitsandbytes: numbers that share one scale, and the smallest tensor that is quantised at all
QUANTISATION_BLOCK: Final = 256
SMALLEST_QUANTISED: Final = 4096
# bitsandbytes: a table of 256 fp32 values for each state, shared by all tensors
QUANTISATION_MAP_BYTES: Final = 256 * 4


def tensors_bytes(tensors: Sequence[ParameterTensor], item: int) -> int:
    """Bytes of one copy of all tensors at `item` bytes per element, unless they have their own."""
    return sum(
        each.copies * round_block(-(-each.elements * (each.width or item) // each.packed))
        for each in tensors
    )


def state_count(optimizer: Optimizer) -> int:
    """Number of values that an optimizer keeps per weight.

    For Adafactor see `adafactor_bytes`; of Muon it is the Adam beside it.
    """
    match optimizer:
        case Optimizer.ADAM | Optimizer.LAMB | Optimizer.MUON:
            return 2
        case Optimizer.MOMENTUM | Optimizer.LION:
            return 1
        case Optimizer.SGD | Optimizer.ADAFACTOR:
            return 0
        case _:
            assert_never(optimizer)


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
    if plan.optimizer is Optimizer.ADAFACTOR:
        return _each(tensors, lambda item: adafactor_bytes(item, plan.optimizer_bits // 8))
    hidden, tensors = split_by_optimizer(tensors, plan)
    momentum = momentum_bytes(hidden, plan.optimizer_bits // 8)
    states = state_count(plan.optimizer)
    extra = 0
    if plan.optimizer is Optimizer.LAMB:
        extra = round_block(4)
    if is_adam(plan.optimizer) and plan.update is Update.FUSED and from_torch(plan):
        extra = round_block(4)

    def of_one(item: ParameterTensor) -> int:
        bits = _bits(item, plan)
        if is_paged(item.elements, plan):
            return states * _scales(item, bits)
        return states * _one_state(item, bits) + extra

    total = _each(tensors, of_one)
    if plan.optimizer_bits == 8:
        quantised = sum(item.copies for item in tensors if item.elements >= SMALLEST_QUANTISED)
        optimizers = quantised if plan.update_in_backward else min(quantised, 1)
        total += states * QUANTISATION_MAP_BYTES * optimizers
    return total + momentum


def paged_bytes(tensors: Sequence[ParameterTensor], plan: Plan) -> int:
    """Bytes of the states that are in managed memory, which is asked for to the byte.

    Source: bitsandbytes (`get_paged`)
    """
    states = state_count(plan.optimizer)
    return sum(
        item.copies * states * item.elements * plan.optimizer_bits // 8
        for item in tensors
        if is_paged(item.elements, plan)
    )


def is_adam(optimizer: Optimizer) -> bool:
    """True if Adam updates all weights, or those that Muon leaves to it."""
    return optimizer in (Optimizer.ADAM, Optimizer.MUON)


def _each(tensors: Sequence[ParameterTensor], size: Callable[[ParameterTensor], int]) -> int:
    return sum(item.copies * size(item) for item in tensors)


def _bits(item: ParameterTensor, plan: Plan) -> int:
    """Bits of a state: torch.optim's are in the format of the weight, where it has its own."""
    own = plan.optimizer_bits == plan.own_bits and from_torch(plan)
    return 8 * item.width if own and item.width else plan.optimizer_bits


def _one_state(item: ParameterTensor, bits: int) -> int:
    if bits != 8:
        return round_block(item.elements * bits // 8)
    if item.elements < SMALLEST_QUANTISED:
        return round_block(item.elements * 4)
    return round_block(item.elements) + _scales(item, bits)


def _scales(item: ParameterTensor, bits: int) -> int:
    """Bytes of a quantized state's fp32 scales."""
    return round_block(-(-item.elements // QUANTISATION_BLOCK) * 4) if bits == 8 else 0


def adafactor_bytes(item: ParameterTensor, number: int) -> int:
    """States of one tensor: one number per row and per column of a matrix, the whole of a vector.

    Source: adafactor
    """
    if len(item.shape) == 1:
        return round_block(item.elements * number)
    *_, rows, columns = item.shape
    return round_block(rows * number) + round_block(columns * number)


def from_torch(plan: Plan) -> bool:
    """True if torch.optim does the update.

    Other bits, paged states, LAMB and Lion come from bitsandbytes.
    """
    if plan.paged_optimizer:
        return False
    match plan.optimizer:
        case Optimizer.LAMB | Optimizer.LION:
            return False
        case Optimizer.SGD | Optimizer.ADAFACTOR | Optimizer.MUON:
            return True
        case Optimizer.ADAM | Optimizer.MOMENTUM:
            return plan.optimizer_bits == plan.own_bits
        case _:
            assert_never(plan.optimizer)


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
    item = plan.trained_bytes
    if plan.optimizer is Optimizer.MUON:
        hidden, others = split_by_optimizer(tensors, plan)
        beside = update_bytes(others, replace(plan, optimizer=Optimizer.ADAM)) if others else 0
        return max(iteration_bytes(hidden, item), beside)
    largest = max(tensor.elements for tensor in tensors)
    if not from_torch(plan):
        widened = plan.optimizer_bits == 16 and state_count(plan.optimizer) > 0
        return round_block(largest * 4) * (state_count(plan.optimizer) + 1) if widened else 0
    match plan.optimizer, plan.update:
        case Optimizer.ADAM, Update.FOREACH:
            return tensors_bytes(tensors, item)
        case Optimizer.ADAM, Update.LOOP:
            return _loop_bytes(tensors, item, 2)
        case Optimizer.ADAFACTOR, Update.FOREACH:
            return _adafactor_foreach_bytes(tensors, item)
        case Optimizer.ADAFACTOR, _:
            return _adafactor_loop_bytes(tensors, item)
        case _:
            return 0


def _summed_bytes(tensors: Sequence[ParameterTensor], plan: Plan) -> int:
    """Copies of the gradients that are summed over GPUs: of all, or of one tensor after another."""
    summed = [each for each in tensors if each.is_summed and not plan.is_sharded]
    if plan.update is Update.LOOP:
        summed = [replace(each, copies=1) for each in summed[:1]]
    return tensors_bytes(summed, plan.trained_bytes)


def _loop_bytes(tensors: Sequence[ParameterTensor], item: int, temporaries: int) -> int:
    """The most that a tensor's temporaries and the one left over from the tensor before take.

    Where all are layers' own, the first of a layer comes after the last of the layer before.
    """
    again = tensors[:1] if all(tensor.copies > 1 for tensor in tensors) else ()
    sizes = [round_block(each.elements * (each.width or item)) for each in (*tensors, *again)]
    return max(temporaries * size + before for before, size in pairwise([0, *sizes]))


def _adafactor_foreach_bytes(tensors: Sequence[ParameterTensor], item: int) -> int:
    """The matrices' variances with a mean of each, and the vectors', of which one kind comes first.

    The first kind's variances live on while the second's are made.
    """
    matrices = [tensor for tensor in tensors if len(tensor.shape) > 1]
    vectors = tensors_bytes([tensor for tensor in tensors if len(tensor.shape) == 1], item)
    means = round_block(item) * sum(tensor.copies for tensor in matrices)
    vectors_first = len(tensors[0].shape) == 1
    beside = vectors + means if vectors_first else max(vectors, means)
    return tensors_bytes(matrices, item) + beside


def _adafactor_loop_bytes(tensors: Sequence[ParameterTensor], item: int) -> int:
    """One tensor's variances while those of the tensor before are still there.

    A matrix has the means of its rows and columns beside it, and one number; a vector its squares.
    """
    highest = before = means = squares = 0
    for tensor in tensors:
        size = round_block(tensor.elements * item)
        if len(tensor.shape) > 1:
            *_, rows, columns = tensor.shape
            means = round_block(rows * item) + round_block(columns * item)
            now = size + round_block(item)
        else:
            squares, now = size, size
        highest = max(highest, before + means + squares + now)
        before = size
    return highest


@dataclass(frozen=True, slots=True)
class Statics:
    """Bytes that live from step to step, on the GPU and in RAM, and what a step moves.

    `buckets` are the flat gradients of several GPUs, which exist in every phase. `paged` are states
    that are in neither of the two for good.
    """

    weights: int
    gradients: int
    optimizer: int = 0
    update: int = 0
    ram_weights: int = 0
    ram_gradients: int = 0
    ram_optimizer: int = 0
    ram_update: int = 0
    to_ram: int = 0
    to_gpu: int = 0
    buckets: int = 0
    paged: int = 0


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
