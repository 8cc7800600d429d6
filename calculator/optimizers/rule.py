"""An optimizer as PyTorch and bitsandbytes have it, and what most of them have in common."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, cast

from calculator.allocator import round_block
from calculator.optimizers.registry import rule_named
from calculator.plan import Plan, Update
from calculator.program.text import TORCH, Import, Piece
from calculator.techniques.paged import is_paged
from calculator.tensors import ParameterTensor

# bitsandbytes: numbers that share one scale, and the smallest tensor that is quantised at all
QUANTISATION_BLOCK: Final = 256
SMALLEST_QUANTISED: Final = 4096
# bitsandbytes: a table of 256 fp32 values for each state, shared by all tensors
QUANTISATION_MAP_BYTES: Final = 256 * 4
BITSANDBYTES: Final[Import] = ("bitsandbytes", "")


@dataclass(frozen=True, kw_only=True, eq=False)
class Rule:
    """An optimizer.

    Attributes:
        torch: its class in torch.optim; empty if that has none.
        bitsandbytes: its class there, whose name goes on with the bits of a state; empty if that
            has none. With both, torch.optim's has states in the weights' own format.
        states: values of each weight's shape that it keeps.
        keeps: false if it keeps nothing from step to step.
        has_program: true if a program makes it by several lines of its own.
        beside: bytes that it keeps for each tensor beside the states.
        options: arguments of its class, beside the rate.
        updates: PyTorch's implementations that its class has.
        needs: the rule of states and of updates that it lacks, in words.
        names: its names in other libraries, with the options that each stands for.
        trainer: names that transformers' Trainer has for it, by the update.
        note: a sentence beside an answer.
    """

    torch: str = ""
    bitsandbytes: str = ""
    states: int = 0
    keeps: bool = True
    has_program: bool = False
    beside: int = 0
    options: tuple[str, ...] = ()
    updates: tuple[Update, ...] = tuple(Update)
    needs: tuple[str, str] = ("", "")
    names: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    trainer: Mapping[Update, str] = field(default_factory=dict)
    note: str = ""

    def is_from_torch(self, plan: Plan) -> bool:
        """True if torch.optim does the update, not bitsandbytes."""
        if plan.paged_optimizer or not self.torch:
            return False
        return not self.bitsandbytes or plan.optimizer_bits == plan.own_bits

    def bits(self, plan: Plan) -> tuple[int, ...]:
        """Bits that its states can have; `plan` is resolved."""
        if not self.keeps:
            return (32, 16, 8)
        follows = self.torch or not self.bitsandbytes
        found = {*([plan.own_bits] if follows else []), *([32, 8] if self.bitsandbytes else [])}
        return tuple(sorted(found, reverse=True))

    def state_bytes(self, tensors: Sequence[ParameterTensor], plan: Plan) -> int:
        """Bytes of the states of all weights, as `calculator.states.state_bytes` has them."""
        total = sum(item.copies * self._state_of(item, plan) for item in tensors)
        if plan.optimizer_bits == 8:
            quantised = sum(item.copies for item in tensors if item.elements >= SMALLEST_QUANTISED)
            optimizers = quantised if plan.update_in_backward else min(quantised, 1)
            total += self.states * QUANTISATION_MAP_BYTES * optimizers
        return total

    def _state_of(self, item: ParameterTensor, plan: Plan) -> int:
        bits = self._bits_of(item, plan)
        if is_paged(item.elements, plan):
            return self.states * _scales(item, bits)
        return self.states * _one_state(item, bits) + self.beside

    def _bits_of(self, item: ParameterTensor, plan: Plan) -> int:
        """Bits of a state: torch.optim's are in the format of the weight, where it has its own."""
        own = plan.optimizer_bits == plan.own_bits and self.is_from_torch(plan)
        return 8 * item.width if own and item.width else plan.optimizer_bits

    def groups(self, tensors: Sequence[ParameterTensor]) -> list[list[Sequence[ParameterTensor]]]:
        """The groups of tensors of each optimizer that it stands for."""
        return [[tensors]]

    def load(self, item: ParameterTensor, plan: Plan) -> int:
        """The states of a tensor beside those of others."""
        return item.elements

    def update_bytes(self, tensors: Sequence[ParameterTensor], plan: Plan) -> int:
        """Temporaries of the update; bitsandbytes' kernels need none."""
        return self.torch_bytes(tensors, plan) if self.is_from_torch(plan) else 0

    def torch_bytes(self, tensors: Sequence[ParameterTensor], plan: Plan) -> int:
        """Temporaries of PyTorch's update."""
        return 0

    def exchanges(
        self, tensors: Callable[[], Sequence[ParameterTensor]], plan: Plan
    ) -> Iterator[tuple[str, int]]:
        """The collectives of an update of parts, with the bytes of their whole tensors."""
        return iter(())

    def notes(self, plan: Plan) -> Iterator[str]:
        """Sentences beside an answer."""
        if self.note:
            yield self.note

    def class_of(self, plan: Plan) -> tuple[str, Import]:
        """The class in a program, and the import that it needs."""
        if self.is_from_torch(plan):
            return f"torch.optim.{self.torch}", TORCH
        paged = "Paged" if plan.paged_optimizer else ""
        return (
            f"bitsandbytes.optim.{paged}{self.bitsandbytes}{plan.optimizer_bits}bit",
            BITSANDBYTES,
        )

    def program(self, plan: Plan, tensors: str, options: Sequence[str]) -> Piece | None:
        """The lines that make it of `tensors` in a program, where no call of its class does."""
        return None

    def steps(self, plan: Plan) -> list[str]:
        """The lines of a program that update the weights."""
        return ["optimizer.step()"]


def rule_of(plan: Plan) -> Rule:
    """The rule of a plan's optimizer."""
    return cast("Rule", rule_named(plan.optimizer))


def loop_bytes(tensors: Sequence[ParameterTensor], item: int, temporaries: int) -> int:
    """The most that a tensor's temporaries and the one left over from the tensor before take.

    Where all are layers' own, the first of a layer comes after the last of the layer before.
    """
    again = tensors[:1] if all(tensor.copies > 1 for tensor in tensors) else ()
    sizes = [round_block(each.elements * (each.width or item)) for each in (*tensors, *again)]
    return max(temporaries * size + before for before, size in pairwise([0, *sizes]))


def _one_state(item: ParameterTensor, bits: int) -> int:
    if bits != 8:
        return round_block(item.elements * bits // 8)
    if item.elements < SMALLEST_QUANTISED:
        return round_block(item.elements * 4)
    return round_block(item.elements) + _scales(item, bits)


def _scales(item: ParameterTensor, bits: int) -> int:
    """Bytes of a quantized state's fp32 scales."""
    return round_block(-(-item.elements // QUANTISATION_BLOCK) * 4) if bits == 8 else 0
