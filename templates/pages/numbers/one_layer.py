"""The tensors that one layer keeps for the backward pass, grouped by their purpose."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from calculator.curve import Point, curve
from calculator.errors import InputError
from calculator.page.states import read_state
from calculator.parts import Phase
from calculator.peaks.curve import Held, Kind
from calculator.units import format_bytes
from templates.pages.numbers.choices import Choice

# more kinds of tensors than a step has, so that a point names all that live
ALL: Final = 1000
WIDE: Final = 4  # bytes of an element of 32 bits
COUNTS: Final = {1: "one", 2: "two", 3: "three", 4: "four"}
FUSED: Final = {
    "flash attention": "FlashAttention",
    "efficient attention": "The memory-efficient kernel",
}

Words = Callable[[Sequence[Held], Choice], str]


@dataclass(frozen=True, slots=True)
class Purpose:
    """A group of kept tensors.

    Attributes:
        label: what they are.
        is_one: of a kind of tensors, whether it belongs here; the first group that says yes has it.
        words: the reason that they are kept, by the tensors that were counted.
    """

    label: str
    is_one: Callable[[Kind], bool]
    words: Words


def lengths(kind: Kind) -> int:
    """The number of a kind's sizes that grow with the sequence."""
    return sum(kind.size.count(name) for name in ("sequence", "target"))


def feed_forward_words(held: Sequence[Held], choice: Choice) -> str:
    """Tensors that the activation function and the products around it keep."""
    made = {each.kind.name.rpartition(": ")[2] for each in held}
    if "gelu new" in made:
        inside = sum(each.count for each in held if each.kind.width == WIDE)
        return (
            f"GELU's input, the last product's input, and {COUNTS[inside]} results inside GELU in "
            "32 bits: this class computes it in small separate operations. A single fused one "
            "would keep only its input."
        )
    name = next(title for key, title in ACTIVATIONS.items() if key in made)
    if "multiply" in made:
        return (
            f"{name}'s input, the two factors of the gate and their product, which is the last "
            f"matrix product's input. {name} is one fused operation."
        )
    if name == "ReLU":
        return (
            "ReLU's result, which shows where its slope is 1, and the input of the product after "
            "it."
        )
    return f"{name}'s input, as it is one fused operation, and the input of the product after it."


ACTIVATIONS: Final = {"gelu": "GELU", "silu": "SiLU", "relu": "ReLU"}


def attention_words(held: Sequence[Held], choice: Choice) -> str:
    """Tensors that the kernel of attention keeps, and the norms of its heads."""
    made = {each.kind.name.rpartition(": ")[2] for each in held}
    kernel = next((title for key, title in FUSED.items() if key in made), None)
    if kernel is None:
        words = "Mostly in 32 bits, and keys and values once for each head of queries."
    else:
        words = (
            f"{kernel} keeps these and one number per token and head, and computes the scores "
            "again. Eager attention would keep all scores."
        )
    normed = " The norms of queries and keys keep their inputs, too."
    return words + normed * ("RMS norm" in made)


def scores_words(held: Sequence[Held], choice: Choice) -> str:
    """The reason that there are scores: the card has no kernel that does without."""
    return (
        f"On the {choice.card.short}, PyTorch has no fused kernel for heads that share keys and "
        "values. Its plain one keeps the softmax: a number for each head and each pair of tokens."
    )


def mask_words(held: Sequence[Held], choice: Choice) -> str:
    """A mask for all heads, or a bias for each."""
    if any("heads" in each.kind.size for each in held):
        return "For each head and pair of tokens, a bias for their distance, copied in every layer."
    return "A number for each pair of tokens: which may see each other."


def norm_words(held: Sequence[Held], choice: Choice) -> str:
    """A fused layer norm keeps its input and two numbers a token; RMS norm its result, too."""
    if any(each.kind.name.endswith(("RMS norm", "T5 norm")) for each in held):
        return (
            "Their slopes depend on their inputs. This class computes RMS norm in separate "
            "operations, which also keep the normalized values, in 32 bits."
        )
    return "Their slopes depend on their inputs. Beside each: a mean and a spread for each token."


def _always(words: str) -> Words:
    return lambda held, choice: words


PURPOSES: Final = (
    Purpose(
        "16-bit copies of the weights",
        lambda kind: "projection" in kind.name and not lengths(kind),
        _always(
            "Autocast makes one for each matrix product. They live as long as the activations, "
            "and do not grow with the micro-batch."
        ),
    ),
    Purpose(
        "Dropout's masks",
        lambda kind: kind.name.endswith("dropout"),
        _always(
            "One byte for each element, to pass back the gradients of those that were not dropped."
        ),
    ),
    Purpose("Attention's scores", lambda kind: kind.name.endswith("softmax"), scores_words),
    Purpose("Attention's mask", lambda kind: lengths(kind) > 1, mask_words),
    Purpose("The feed-forward part", lambda kind: "feed forward" in kind.size, feed_forward_words),
    Purpose(
        "Queries, keys, values and attention's result",
        lambda kind: "head" in kind.size or kind.name.endswith("attention"),
        attention_words,
    ),
    Purpose(
        "Inputs of the other matrix products",
        lambda kind: "projection" in kind.name,
        _always("The gradient of a weight is a product with its input. They are 16-bit copies."),
    ),
    Purpose(
        "Inputs of the norms",
        lambda kind: kind.name.endswith(("norm", "add")),
        norm_words,
    ),
)


@dataclass(frozen=True, slots=True)
class Kept:
    """Bytes that one layer keeps for a purpose, and why."""

    label: str
    words: str
    bytes: int

    @property
    def size(self) -> str:
        """The bytes in words."""
        return format_bytes(self.bytes)


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer: its stack, such as 'decoder', or nothing for the only one; and what it keeps."""

    stack: str
    kept: list[Kept]

    @property
    def bytes(self) -> int:
        """The bytes of all purposes."""
        return sum(kept.bytes for kept in self.kept)


def kept_by_one_layer(choice: Choice) -> Layer:
    """The memory that a layer in the middle adds to the forward pass, the largest group first.

    Of several stacks it is the last one.

    Raises:
        InputError: for a tensor without a purpose in `PURPOSES`.
    """
    architecture, plan, _ = read_state(choice.state)
    firsts: dict[str, Point] = {}
    for point in curve(architecture, plan, named=ALL).points:
        if point.phase is Phase.FORWARD and " of " in point.layer:
            firsts.setdefault(point.layer, point)
    stack = [*firsts][-1].partition("layer ")[0]
    layers = [point for name, point in firsts.items() if name.startswith(f"{stack}layer ")]
    before, after = layers[len(layers) // 2 :][:2]
    had = {held.kind: held for held in before.largest}
    groups: dict[str, tuple[Purpose, list[Held]]] = {}
    for held in after.largest:
        old = had.get(held.kind, Held(held.kind, 0, 0))
        if held != old:
            added = Held(held.kind, held.count - old.count, held.bytes - old.bytes)
            purpose = purpose_of(held.kind)
            groups.setdefault(purpose.label, (purpose, []))[1].append(added)
    found = [
        Kept(label, purpose.words(group, choice), sum(held.bytes for held in group))
        for label, (purpose, group) in groups.items()
    ]
    return Layer(stack.strip(), sorted(found, key=lambda kept: -kept.bytes))


def purpose_of(kind: Kind) -> Purpose:
    """The first purpose that has a kind of tensors.

    Raises:
        InputError: where none has it.
    """
    for purpose in PURPOSES:
        if purpose.is_one(kind):
            return purpose
    raise InputError("tensor", f"{kind.name} ({kind.size})", "must have a purpose in PURPOSES")
