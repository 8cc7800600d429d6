"""Named values that are texts."""

from enum import StrEnum


class Choice(StrEnum):
    """A text of a fixed set, with the hash of that text.

    Enum's own hash is a function in Python, which caches of plans would call thousands of times.
    """

    __hash__ = str.__hash__
