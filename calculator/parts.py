"""What bytes are for and when they live: one Part and one Phase for everybody."""

from enum import IntEnum, StrEnum
from typing import Self


class Part(IntEnum):
    """What bytes are for, with a label and a sentence for readers."""

    label: str
    words: str

    def __new__(cls, number: int, label: str, words: str) -> Self:
        """A member with its words."""
        part = int.__new__(cls, number)
        part._value_ = number
        part.label, part.words = label, words
        return part

    WEIGHTS = 0, "Weights", "The numbers being trained."
    GRADIENTS = 1, "Gradients", "How the loss changes with each weight."
    OPTIMIZER = 2, "Optimizer states", "What the optimizer remembers of each weight."
    ACTIVATIONS = 3, "Activations", "What the forward pass keeps for the backward pass."
    TEMPORARIES = 4, "Temporaries", "What one operation needs while it runs."

    @property
    def key(self) -> str:
        """The part's name in `Memory` and in ``--json``."""
        return self.name.lower()


class Phase(StrEnum):
    """The four phases of a step, with a label and a sentence for readers."""

    label: str
    words: str

    def __new__(cls, name: str, label: str, words: str) -> Self:
        """A member with its words."""
        phase = str.__new__(cls, name)
        phase._value_ = name
        phase.label, phase.words = label, words
        return phase

    FORWARD = "forward", "Forward", "Layer after layer, activations pile up."
    LOSS = "loss", "Loss", "Every token gets a score for every word of the vocabulary."
    BACKWARD = "backward", "Backward", "Layer by layer back: activations go, gradients come."
    UPDATE = "update", "Update", "The optimizer changes the weights."
