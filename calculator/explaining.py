"""``explain``: an out-of-memory message beside a plan, in words for a terminal."""

import sys
from pathlib import Path

from calculator.architecture import Architecture
from calculator.cards import Card, card_of_size
from calculator.errors import InputError
from calculator.plan import Plan
from calculator.planner.need import judged
from calculator.planner.out_of_memory import (
    FIELD,
    LONGEST_MESSAGE,
    Message,
    explain,
    read_message,
    sizes_of,
)
from calculator.planner.verdict import describe_fit
from calculator.units import format_bytes


def is_message(text: str) -> bool:
    """True for text that is a message, not a path."""
    return "out of memory" in text


def read_text(path: str) -> str:
    """A file's text, standard input's for ``-``, or a message that stands in place of the path.

    Raises:
        InputError: if it cannot be read.
    """
    if path == "-":
        return sys.stdin.read(LONGEST_MESSAGE + 1)
    if is_message(path):
        return path
    try:
        with Path(path).open(encoding="utf-8", errors="replace") as file:
            return file.read(LONGEST_MESSAGE + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(FIELD, path, f"cannot be read: {reason}") from None


def describe_message(architecture: Architecture, plan: Plan, gpu: Card | None, text: str) -> str:
    """The message's sizes, what they mean for the plan, and what to change.

    Without a GPU it is a card with the memory that the message names.

    Raises:
        InputError: for a text that is no such message, or a plan that the model does not support.
    """
    message = read_message(text)
    card = gpu or _card_of(message)
    report = judged(architecture, plan.on(card))
    lines = ["The message:"]
    lines += [f"  {label:<22}{format_bytes(size):>12}" for label, size in sizes_of(message).items()]
    for finding in explain(message, report, card):
        lines.append(f"{finding.title}. {finding.words} {finding.remedy}".rstrip())
    fit = describe_fit(architecture, plan.on(card), report)
    return "\n".join([*lines, fit])


def _card_of(message: Message) -> Card:
    return card_of_size(message.capacity, FIELD, "its total capacity")
