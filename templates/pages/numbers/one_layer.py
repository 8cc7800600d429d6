"""The tensors that one layer keeps for the backward pass, grouped by their purpose."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from calculator.architecture import Architecture
from calculator.curve import Point, curve
from calculator.errors import InputError
from calculator.parts import Phase
from calculator.peaks.curve import Kind
from calculator.units import format_bytes

# more kinds of tensors than a step has, so that a point names all that live
ALL: Final = 1000


@dataclass(frozen=True, slots=True)
class Purpose:
    """A group of kept tensors.

    Attributes:
        label: what they are.
        words: the reason that they are kept.
        is_one: of a kind of tensors, whether it belongs here; the first group that says yes has it.
    """

    label: str
    words: str
    is_one: Callable[[Kind], bool]


def _made_by(*names: str) -> Callable[[Kind], bool]:
    return lambda kind: kind.name in names


# For a layer of GPT-2 under autocast, by the operation that made the tensors and their sizes.
PURPOSES: Final = (
    Purpose(
        "Results inside GELU",
        "GPT-2's class computes it in small separate operations, and the backward formula of most "
        "of them needs a result, often in 32 bits. A single fused operation would keep only its "
        "input.",
        _made_by("feed forward: gelu new"),
    ),
    Purpose(
        "16-bit copies of the weights",
        "Autocast makes one for each matrix product. They live as long as the activations, and do "
        "not grow with the micro-batch.",
        lambda kind: "projection" in kind.name and "sequence" not in kind.size,
    ),
    Purpose(
        "Inputs of GELU and of the layer norms",
        "Their slopes depend on where on the curve each input is.",
        lambda kind: kind.name == "add" or kind.size == "feed forward × sequence",
    ),
    Purpose(
        "Queries, keys and values",
        "A fused attention kernel keeps these and one number per token and head, and computes the "
        "scores again. Eager attention would keep all scores.",
        lambda kind: kind.size.startswith("3 × ") or kind.size == "heads × sequence",
    ),
    Purpose(
        "Inputs of the matrix products",
        "The gradient of a weight is a product with its input. Those of attention and of the "
        "feed-forward part are 16-bit copies of the layer norms' results, and one is attention's "
        "result.",
        lambda kind: "sequence" in kind.size and ("projection" in kind.name or _is_attention(kind)),
    ),
    Purpose(
        "Dropout's masks",
        "One byte for each element, to pass back the gradients of those that were not dropped.",
        lambda kind: kind.name.endswith("dropout"),
    ),
    Purpose(
        "Statistics and seeds",
        "A mean and a spread for each token and layer norm, and the state of the random numbers "
        "in attention.",
        lambda kind: kind.name == "layer norm" or _is_attention(kind),
    ),
)


def _is_attention(kind: Kind) -> bool:
    return kind.name == "self attention: flash attention"


@dataclass(frozen=True, slots=True)
class Kept:
    """Bytes that one layer keeps for a purpose."""

    purpose: Purpose
    bytes: int

    @property
    def size(self) -> str:
        """The bytes in words."""
        return format_bytes(self.bytes)


def kept_by_one_layer(architecture: Architecture) -> list[Kept]:
    """The memory that a layer in the middle adds to the forward pass, the largest group first.

    Raises:
        InputError: for a tensor without a purpose in `PURPOSES`.
    """
    points = curve(architecture, named=ALL).points
    middle = architecture.layers // 2
    before, after = (_first(points, middle + more, architecture) for more in (0, 1))
    had = {held.kind: held.bytes for held in before.largest}
    sizes = dict.fromkeys(PURPOSES, 0)
    for held in after.largest:
        if added := held.bytes - had.get(held.kind, 0):
            sizes[_purpose(held.kind)] += added
    found = [Kept(purpose, size) for purpose, size in sizes.items()]
    return sorted(found, key=lambda kept: -kept.bytes)


def _first(points: tuple[Point, ...], layer: int, architecture: Architecture) -> Point:
    """The first operation of a layer, counted from 1, in the forward pass."""
    words = f"layer {layer} of {architecture.layers}"
    return next(one for one in points if one.phase is Phase.FORWARD and one.layer == words)


def _purpose(kind: Kind) -> Purpose:
    for purpose in PURPOSES:
        if purpose.is_one(kind):
            return purpose
    raise InputError("tensor", f"{kind.name} ({kind.size})", "must have a purpose in PURPOSES")
