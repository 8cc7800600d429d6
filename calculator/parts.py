"""The purpose of bytes, and when they are in use: the five Parts and the four Phases."""

from enum import IntEnum, StrEnum
from typing import Self


class Part(IntEnum):
    """A purpose of bytes, with a label and a sentence for readers."""

    label: str
    words: str

    def __new__(cls, number: int, label: str, words: str) -> Self:
        """A member with its words."""
        part = int.__new__(cls, number)
        part._value_ = number
        part.label, part.words = label, words
        return part

    WEIGHTS = 0, "Weights", "The parameters being trained."
    GRADIENTS = 1, "Gradients", "The slope of the loss for each parameter."
    OPTIMIZER = 2, "Optimizer states", "The optimizer's running values for each parameter."
    ACTIVATIONS = 3, "Activations", "Tensors that the forward pass keeps for the backward pass."
    TEMPORARIES = 4, "Temporaries", "Tensors that an operation needs only while it runs."

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

    FORWARD = "forward", "Forward", "Activations accumulate, layer by layer."
    LOSS = "loss", "Loss", "Every token gets a score for every word of the vocabulary."
    BACKWARD = "backward", "Backward", "Layer by layer, activations are freed and gradients appear."
    UPDATE = "update", "Update", "The optimizer changes the weights."
