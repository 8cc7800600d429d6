"""Adafactor: a value per row and per column of a matrix, and one for each number of a vector.

Source: adafactor, torch (optim/_adafactor.py)
"""

from collections.abc import Sequence
from typing import Final

from calculator.allocator import round_block
from calculator.optimizers.rule import Rule
from calculator.plan import Plan, Update
from calculator.tensors import ParameterTensor, tensors_bytes


class Adafactor(Rule):
    """PyTorch's class, whose states are in the format of the weights."""

    def _state_of(self, item: ParameterTensor, plan: Plan) -> int:
        number = plan.optimizer_bits // 8
        if len(item.shape) == 1:
            return round_block(item.elements * number)
        return _factors(item, number)

    def torch_bytes(self, tensors: Sequence[ParameterTensor], plan: Plan) -> int:
        """Variances with what makes them: of all tensors at once, or of one after another."""
        made = _foreach_bytes if plan.update is Update.FOREACH else _loop_bytes
        return made(tensors, plan.trained_bytes)


def _factors(tensor: ParameterTensor, item: int) -> int:
    """Bytes of a number for each row and for each column of a matrix, or of several in one."""
    *_, rows, columns = tensor.shape
    return sum(round_block(tensor.elements // each * item) for each in (columns, rows))


def _foreach_bytes(tensors: Sequence[ParameterTensor], item: int) -> int:
    """The matrices' variances with a mean of each, and the vectors', of which one kind comes first.

    The first kind's variances live on while the second's are made.
    """
    matrices = [tensor for tensor in tensors if len(tensor.shape) > 1]
    vectors = tensors_bytes([tensor for tensor in tensors if len(tensor.shape) == 1], item)
    means = round_block(item) * sum(tensor.copies for tensor in matrices)
    vectors_first = len(tensors[0].shape) == 1
    beside = vectors + means if vectors_first else max(vectors, means)
    return tensors_bytes(matrices, item) + beside


def _loop_bytes(tensors: Sequence[ParameterTensor], item: int) -> int:
    """One tensor's variances while those of the tensor before are still there.

    A matrix has the means of its rows and columns beside it, and one number; a vector its squares.
    """
    highest = before = means = squares = 0
    for tensor in tensors:
        size = round_block(tensor.elements * item)
        if len(tensor.shape) > 1:
            means = _factors(tensor, item)
            now = size + round_block(item)
        else:
            squares, now = size, size
        highest = max(highest, before + means + squares + now)
        before = size
    return highest


RULE: Final = Adafactor(
    torch="Adafactor",
    updates=(Update.FOREACH, Update.LOOP),
    needs=(
        "Adafactor's states are in the weights' own format",
        "PyTorch's Adafactor has foreach and loop only",
    ),
)
