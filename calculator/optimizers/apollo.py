"""APOLLO: AdamW's moments of projected gradients scale the gradients of hidden matrices.

A matrix of a longer side l and a shorter side s has a random projection of s x r, two moments of
l x r, and the norm of its last update, in the format of the weight. The class updates one tensor
after the other; all else has AdamW's two moments. The rank r is transformers' default.

Source: apollo (algorithm 1), apollo-torch 1.0.3 (apollo.py, random_projector.py)
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Final

from calculator.allocator import round_block
from calculator.optimizers.hidden import is_hidden, split, split_lines
from calculator.optimizers.rule import Rule
from calculator.plan import Plan, Update
from calculator.program.split import one_of
from calculator.program.text import Import, Piece, quoted
from calculator.tensors import ParameterTensor

RANK: Final = 128
_GROUP: Final = {
    "rank": RANK,
    "proj": "random",
    "scale_type": "channel",
    "update_proj_gap": 200,
    "scale": 1.0,
    "proj_type": "std",
}


class Apollo(Rule):
    """The authors' class."""

    def is_from_torch(self, plan: Plan) -> bool:
        """True: states are in the weights' own format, and updates are made of PyTorch's."""
        return True

    def state_bytes(self, tensors: Sequence[ParameterTensor], plan: Plan) -> int:
        """Projection, moments and norm of each matrix, and AdamW's moments of all else."""
        return sum(item.copies * _kept(item, plan.optimizer_bits // 8) for item in tensors)

    def groups(self, tensors: Sequence[ParameterTensor]) -> list[list[Sequence[ParameterTensor]]]:
        """All else, then the matrices."""
        hidden, others = split(tensors)
        return [[others, hidden]]

    def load(self, item: ParameterTensor, plan: Plan) -> int:
        """Bytes of its states."""
        return _kept(item, plan.optimizer_bits // 8)

    def torch_bytes(self, tensors: Sequence[ParameterTensor], plan: Plan) -> int:
        """The most that the locals of the update hold, all else before the matrices."""
        hidden, others = split(tensors)
        names = _Locals()
        for item in (*_in_turn(others), *_in_turn(hidden)):
            _update(names, item, item.width or plan.trained_bytes)
        return names.most

    def class_of(self, plan: Plan) -> tuple[str, Import]:
        """The authors' package."""
        return "apollo_torch.APOLLOAdamW", ("apollo_torch", "")

    def program(self, plan: Plan, tensors: str, options: Sequence[str]) -> Piece:
        """A group for the matrices of hidden layers, and one for all else."""
        name, needed = self.class_of(plan)
        wanting = "copies = [copy.requires_grad_() for copy in copies]"
        lines = [
            *([wanting] if tensors == "copies" else []),  # it has no state for other tensors
            *split_lines("APOLLO", tensors, plan),
            "projected = {",
            *(f"    {quoted(key)}: {quoted(value)}," for key, value in _GROUP.items()),
            "}",
            'groups = [{"params": others}, {"params": matrices, **projected}]',
        ]
        optimizer = one_of("optimizer", name, "groups", options[:1], plan)
        return Piece(tuple(lines), (needed,)) + optimizer


def _kept(item: ParameterTensor, number: int) -> int:
    number = item.width or number
    if not is_hidden(item):
        return 2 * round_block(item.elements * number)
    shorter, longer = sorted(item.shape)
    projection = round_block(RANK * shorter * number)
    return projection + 2 * round_block(RANK * longer * number) + round_block(number)


class _Locals:
    """Bytes that names hold, and the most that was there."""

    def __init__(self) -> None:
        self.held: dict[str, int] = {}
        self.most = 0

    def hold(self, name: str, size: int, beside: int = 0) -> None:
        """A result that a name gets once it is made, which frees what the name had."""
        self.most = max(self.most, sum(self.held.values()) + size + beside)
        self.held[name] = size


def _update(names: _Locals, item: ParameterTensor, number: int) -> None:
    """Names of the step as the class gives and frees them."""
    whole = round_block(item.elements * number)
    if not is_hidden(item):
        names.hold("root", whole)
        names.hold("quotient", whole)
        return
    longer = max(item.shape)
    low = round_block(RANK * longer * number)
    norms, one = round_block(longer * number), round_block(number)
    names.hold("projected", low)
    names.hold("root", low)
    names.hold("quotient", low)
    names.hold("factor", norms, beside=2 * norms)
    names.hold("scaled", whole)
    names.hold("norm", one)
    names.hold("scaled", whole)
    names.held["quotient"] = 0  # the name is another one of what is scaled


def _in_turn(tensors: Sequence[ParameterTensor]) -> Iterator[ParameterTensor]:
    """Tensors in the order of the model, of equal layers the first two."""
    for copies, group in groupby(tensors, key=attrgetter("copies")):
        yield from [*group] * min(copies, 2)


RULE: Final = Apollo(
    has_program=True,
    updates=(Update.FOREACH,),
    needs=(
        "APOLLO's states are in the weights' own format",
        "apollo-torch has one implementation: must be foreach, which it replaces",
    ),
    names={"apollo_adamw": {}},
    note=f"The authors' APOLLOAdamW of rank {RANK} updates the matrices of hidden layers, and "
    "everything else as AdamW does, one tensor at a time.",
)
