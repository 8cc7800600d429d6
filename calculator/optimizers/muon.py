"""Muon: matrices of hidden layers are updated by it, all else by Adam.

Source: muon, torch (optim/_muon.py)
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from calculator.allocator import round_block
from calculator.optimizers.adam import RULE as ADAM
from calculator.optimizers.hidden import is_hidden, split, split_lines
from calculator.optimizers.products import CUT, MACHINE, Update, updated
from calculator.optimizers.rule import Rule
from calculator.plan import Plan
from calculator.program.split import group_weights, one_of
from calculator.program.text import TORCH, Import, Piece, joined
from calculator.tensors import ParameterTensor

# the format of the Newton-Schulz iteration
NARROW: Final = 2


class Muon(Rule):
    """PyTorch's class, which comes before the Adam beside it."""

    def state_bytes(self, tensors: Sequence[ParameterTensor], plan: Plan) -> int:
        """One momentum for each matrix, in the format of its gradient, and Adam's states."""
        hidden, others = split(tensors)
        number = plan.optimizer_bits // 8
        momentum = sum(
            item.copies * round_block(item.elements * (item.width or number)) for item in hidden
        )
        return momentum + ADAM.state_bytes(others, plan)

    def groups(self, tensors: Sequence[ParameterTensor]) -> list[list[Sequence[ParameterTensor]]]:
        """Muon's matrices, and what Adam has."""
        return [[group] for group in split(tensors) if group]

    def load(self, item: ParameterTensor, plan: Plan) -> int:
        """One momentum, or Adam's two."""
        return item.elements * (1 if is_hidden(item) else 2)

    def update_bytes(self, tensors: Sequence[ParameterTensor], plan: Plan) -> int:
        """The temporaries of Muon or, when these are gone, of Adam.

        What a gradient scaler found out for Muon's step is still there in Adam's.
        """
        hidden, others = split(tensors)
        found = round_block(4) if plan.gradient_scaler else 0
        beside = ADAM.update_bytes(others, plan) + found if others else 0
        return max(iteration_bytes(hidden, plan.trained_bytes), beside)

    def exchanges(
        self, tensors: Callable[[], Sequence[ParameterTensor]], plan: Plan
    ) -> Iterator[tuple[str, int]]:
        """Those of Newton and Schulz's iteration of each matrix that GPUs have in parts."""
        hidden, _ = split(tensors())
        for item in hidden:
            if item.trained and (found := _of_parts(item, plan.trained_bytes)) is not None:
                for _copy in range(item.copies):
                    yield from found.sent

    def notes(self, plan: Plan) -> Iterator[str]:
        """The optimizer of each tensor, and the way that products of parts take."""
        yield from super().notes(plan)
        if plan.is_sharded or plan.divides_layers:
            yield (
                "Muon multiplies parts of matrices as PyTorch's DTensors do: each product the way "
                f"that they expect to be fastest on machines of {MACHINE} GPUs."
            )

    def class_of(self, plan: Plan) -> tuple[str, Import]:
        """That of the weights which Muon leaves."""
        return ADAM.class_of(plan)

    def program(self, plan: Plan, tensors: str, options: Sequence[str]) -> Piece:
        """Muon for the matrices of hidden layers, and AdamW for all else."""
        kind, rate = "torch.optim.Muon", options[:1]
        if plan.trains_adapters_alone:
            return one_of("optimizer", kind, tensors, rate, plan)
        groups = group_weights("others", plan) if plan.divides_layers else Piece()
        others = "groups" if groups.lines else "others"
        muon = one_of("muon", kind, "matrices", rate, plan)
        adamw = one_of("adamw", self.class_of(plan)[0], others, options, plan)
        first = Piece(tuple(split_lines("Muon", tensors, plan)), (TORCH,))
        return joined((first, muon, groups, adamw))

    def steps(self, plan: Plan) -> list[str]:
        """Both."""
        if plan.trains_adapters_alone:
            return super().steps(plan)
        return ["muon.step()", "adamw.step()"]


def _of_parts(item: ParameterTensor, number: int) -> Update | None:
    """The update of a matrix that GPUs have in parts."""
    if not item.cuts:
        return None
    ((rows, columns), axis, gpus), *_ = item.cuts
    return updated(rows, columns, CUT[axis], gpus, item.width or number)


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
    if (found := _of_parts(item, number)) is not None:
        return found.most
    mixed = round_block(item.elements * number)
    narrow = round_block(item.elements * NARROW)
    product = round_block(min(item.shape) ** 2 * NARROW)
    return mixed + 2 * narrow + 2 * product


RULE: Final = Muon(
    torch="Muon",
    states=2,  # of the Adam beside it
    has_program=True,
    needs=("Muon's states are in the weights' own format", ""),
    note="torch.optim.Muon updates the matrices of hidden layers one by one; AdamW updates "
    "embeddings, the output layer, and everything that is not a matrix.",
)
