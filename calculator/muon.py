"""Muon: matrices of hidden layers are updated by it, all else by Adam.

Embeddings and output layers are tables, which its authors leave to Adam, as they do vectors.

Source: muon, torch (optim/_muon.py)
"""

from collections.abc import Sequence
from typing import Final

from calculator.allocator import round_block
from calculator.errors import InputError
from calculator.parameters import ParameterTensor
from calculator.plan import Optimizer, Plan

# the format of the Newton-Schulz iteration
NARROW: Final = 2


def split_by_optimizer(
    tensors: Sequence[ParameterTensor], plan: Plan
) -> tuple[list[ParameterTensor], list[ParameterTensor]]:
    """The tensors that Muon updates, and those that the other optimizer does."""
    if plan.optimizer is not Optimizer.MUON:
        return [], list(tensors)
    hidden = [item for item in tensors if len(item.shape) == 2 and not item.table]
    others = [item for item in tensors if len(item.shape) != 2 or item.table]
    return hidden, others


def momentum_bytes(hidden: Sequence[ParameterTensor], number: int) -> int:
    """States: one momentum for each matrix, in the format of its gradient."""
    return sum(item.copies * round_block(item.elements * (item.width or number)) for item in hidden)


def iteration_bytes(hidden: Sequence[ParameterTensor], number: int) -> int:
    r"""The most that the update of one matrix takes beside weights, gradients and states.

    $$n b + 2 \cdot 2 n + 2 \cdot 2 m^2$$

    with n elements of b bytes in the mix of momentum and gradient, and in 16 bits the matrix before
    and after an iteration with two products of its m shorter rows or columns.

    >>> iteration_bytes([ParameterTensor("weight", (1024, 4096))], 4) / 2**20
    36.0
    """
    return max((_one(item, item.width or number) for item in hidden), default=0)


def _one(item: ParameterTensor, number: int) -> int:
    mixed = round_block(item.elements * number)
    narrow = round_block(item.elements * NARROW)
    product = round_block(min(item.shape) ** 2 * NARROW)
    return mixed + 2 * narrow + 2 * product


def check_muon(plan: Plan) -> None:
    """Refuse what is not counted with Muon; `plan` has its optimizer bits.

    Raises:
        InputError: naming the option and the rule.
    """
    if plan.optimizer_bits != plan.own_bits:
        rule = f"Muon's states are in the weights' own format: must be {plan.own_bits}"
        raise InputError("optimizer_bits", plan.optimizer_bits, rule)
