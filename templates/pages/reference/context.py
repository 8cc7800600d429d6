"""Data for the reference's first page: every command with its options, from their parsers."""

import argparse
import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

from calculator.__main__ import build_parser
from training.__main__ import MODULES, make_parser


@dataclass(frozen=True, slots=True)
class Command:
    """A program's command: its call, its description, and its options as HTML cells."""

    call: str
    words: str
    rows: list[list[str]]


def commands(parser: argparse.ArgumentParser) -> Iterator[Command]:
    """The commands of a parser, in its order."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            help_of = {choice.dest: choice.help or "" for choice in action._choices_actions}
            for name, command in action.choices.items():
                yield Command(f"{parser.prog} {name}", help_of.get(name, ""), _rows(command))


def _rows(command: argparse.ArgumentParser) -> list[list[str]]:
    rows: list[list[str]] = []
    for action in command._actions:
        if action.help == argparse.SUPPRESS or isinstance(action, argparse._HelpAction):
            continue
        if action.help is None and action.option_strings:  # the opposite of the one before
            rows[-1][0] += f" {_name(action)}"
        else:
            rows.append([_name(action), _words(action.help or "") + _others(action)])
    return rows


def _words(text: str) -> str:
    """Help as HTML, with text in backticks as code."""
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", escape(text))


def _name(action: argparse.Action) -> str:
    """The option as it is typed, with a placeholder for its value."""
    if not action.option_strings:
        return f"<code>{escape(str(action.metavar or action.dest).upper())}</code>"
    takes = "" if action.nargs == 0 else f" {action.metavar or action.dest.upper()}"
    return f"<code>{escape(action.option_strings[0] + takes)}</code>"


def _others(action: argparse.Action) -> str:
    """The option's names in other libraries, which are also understood with underscores."""
    names = [name for name in action.option_strings[1:] if "_" not in name]
    return f"<br>Also {', '.join(f'<code>{name}</code>' for name in names)}." if names else ""


def context() -> dict[str, object]:
    """The names that `page.md.j2` uses."""
    return {
        "calculator": list(commands(build_parser())),
        "training": list(commands(make_parser())),
        "others": sorted(MODULES),
    }
