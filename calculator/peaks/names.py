"""Names of running operations and layers, read from Python's own stack as a debugger does.

PyTorch's memory snapshots name a tensor in the same way, by the stack at its allocation. A step
that is only estimated is recorded without names.
"""

import re
import sys
import weakref
from collections.abc import Sequence
from enum import StrEnum
from types import FrameType
from typing import Any, Final, NamedTuple

from calculator.autograd import backward, operations
from calculator.autograd.graph import Node, Tensor
from calculator.autograd.ledger import Ledger
from calculator.autograd.mode import Mode
from calculator.autograd.tape import Tape
from calculator.layers import basic, chunked_loss, loss
from calculator.layers.layer import Layer
from calculator.layers.stack import Block, Stack
from calculator.models.model import Model
from calculator.parts import Part

# the files whose functions are a layer's own steps
OF_LAYERS: Final = ("calculator.layers.", "calculator.models.")
# the files of losses, which are operations where no other one runs
OF_LOSSES: Final = (loss.__name__, chunked_loss.__name__)
# what is made outside of all operations
INPUTS: Final = "token ids and labels"
MASKS: Final = "masks and positions"
GRADIENTS: Final = "gradients"
OF_LOSS: Final = "gradient of the loss"
OUTPUTS: Final = "outputs that the loop holds"
_RUN_NODE: Final = backward._run.__code__
_INPUT: Final = Tape.input.__code__
# where one word of a class's name ends and the next begins
_WORDS: Final = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z0-9])(?=[A-Z][a-z])")


class Run(StrEnum):
    """In which way an operation runs."""

    FORWARD = ""
    AGAIN = "computed again"
    BACKWARD = "backward"


class Name(NamedTuple):
    """A running operation, the layer that it is part of, and the pass.

    `layer` is the stack and the position of its layer on the tape; `call` tells two calls of one
    operation apart.
    """

    operation: str
    owner: str
    run: Run = Run.FORWARD
    layer: tuple[str, int] | None = None
    call: tuple[int, ...] = ()

    @property
    def is_empty(self) -> bool:
        """True if nothing with a name runs: a variable went out of scope between operations."""
        return not self.operation and not self.owner

    @property
    def words(self) -> str:
        """The operation and what it belongs to, for a reader."""
        known = [part for part in (self.owner, self.operation) if part]
        unknown = GRADIENTS if self.run else MASKS if self.call else OF_LOSS
        first = ": ".join(known) or unknown
        return f"{first}, {self.run}" if self.run else first


class NamedLedger(Ledger):
    """A ledger with a name for each of its events."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[Name] = []
        self.tape: weakref.ref[NamedTape] | None = None
        self.given: Name | None = None

    def note(self, signed_id: int, part: Part, birth: int) -> None:
        """A birth or a death, and the operation that runs."""
        tape = self.tape and self.tape()
        self.names.append(self.given or (tape.name() if tape else Name("", "")))
        super().note(signed_id, part, birth)

    def hold(self, held_id: int) -> None:
        """The loop holds an output, whatever operation runs."""
        self.given = Name(OUTPUTS, "")
        super().hold(held_id)
        self.given = None


class NamedTape(Tape):
    """A tape that names what it records."""

    running: Name | None

    def __init__(self, mode: Mode) -> None:
        self.named = NamedLedger()
        self._running: dict[tuple[int, ...], tuple[str, str, tuple[int, ...]]] = {}
        super().__init__(mode, self.named)
        self.named.tape = weakref.ref(self)

    def previous_outputs(self) -> Tensor:
        """Those of the forward pass before."""
        self.named.given = Name(OUTPUTS, "")
        held = super().previous_outputs()
        self.named.given = None
        return held

    def record(self, *inputs: Any, **options: Any) -> Node | None:
        """A node of the graph that knows the operation it belongs to."""
        node = super().record(*inputs, **options)
        if node is not None:
            found = self.name()
            node.name = Name(
                found.operation, found.owner, Run.BACKWARD, self.layer, (node.sequence,)
            )
        return node

    def name(self) -> Name:
        """The running operation, and the innermost layer made of several operations."""
        frames, calls = _frames()
        stack = tuple(calls)
        found = self._running.get(stack)
        if found is None:  # every micro-batch and every layer of a kind has the same stacks
            found = self._running[stack] = _running(frames)
        operation, owner, call = found
        if frames[-1].f_code is _RUN_NODE:
            return self._in_backward(operation, owner, call)
        return Name(operation, owner, Run.FORWARD, self.layer, call)

    def _in_backward(self, operation: str, owner: str, call: Sequence[int]) -> Name:
        """The operation behind a node: its own formula, or an operation of the forward pass."""
        node = self.running or Name("", "", Run.BACKWARD)
        if operation or owner:
            return Name(operation, owner, Run.AGAIN, node.layer, (*node.call, *call))
        return node


def _frames() -> tuple[list[FrameType], list[int]]:
    """The frames from the caller's caller outwards, to that of a node of the backward pass.

    With them the code and the place in it of each. Their local variables are not looked at: that
    would make them live longer.
    """
    found: list[FrameType] = []
    calls: list[int] = []
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        code = frame.f_code
        found.append(frame)
        calls += (id(code), frame.f_lasti)
        frame = None if code is _RUN_NODE else frame.f_back
    return found, calls


def _running(frames: Sequence[FrameType]) -> tuple[str, str, tuple[int, ...]]:
    """The operation that some frames run, the layer that it belongs to, and the calls in layers."""
    operation = owner = ""
    call: list[int] = []
    is_inside = True  # of an operation, or of a layer that is one
    for frame in frames:
        code, module = frame.f_code, frame.f_globals["__name__"]
        if module == operations.__name__ and is_inside:
            operation = code.co_name.replace("_", " ")
        elif module.startswith(OF_LAYERS):
            call.append(frame.f_lasti)
            kind = _class_of(frame)
            if module == basic.__name__:
                if kind is not None and code.co_name == "__call__" and not owner:
                    operation = _in_words(kind)
            elif kind is not None and not issubclass(kind, Block | Stack | Model):
                owner = owner or _in_words(kind)
                is_inside = False
            elif module in OF_LOSSES and code.co_name.endswith("loss"):
                operation = operation or code.co_name.replace("_", " ")
        elif code is _INPUT:
            operation = INPUTS
    return operation, owner, tuple(call)


def _class_of(frame: FrameType) -> type[Layer] | None:
    """The layer whose method a frame runs, by the class that defines it."""
    found = frame.f_globals.get(frame.f_code.co_qualname.partition(".")[0])
    return found if isinstance(found, type) and issubclass(found, Layer) else None


def _in_words(kind: type) -> str:
    """A class's name as words.

    >>> _in_words(basic.RMSNorm)
    'RMS norm'
    >>> _in_words(basic.LayerNorm)
    'layer norm'
    """
    parts = _WORDS.sub(" ", kind.__name__).split()
    return " ".join(part.lower() if part[1:].islower() else part for part in parts)
