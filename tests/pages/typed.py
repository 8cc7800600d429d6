"""The commands on a generated page, and whether our own command line takes them."""

import argparse
import re
import shlex

import pytest

from tests.pages.rendered import render_page
from training.__main__ import main

PROGRAM = "python -m training "


class Parsed(Exception):  # noqa: N818  # no error: the way out of a command that would start
    """A command line was understood."""


def commands_of(page: str) -> list[str]:
    """Commands of ours that a page tells people to type, in blocks and in running text."""
    text = render_page(page)
    blocks = re.findall(r"^ *```sh\n(.*?)^ *```", text, re.M | re.S)
    lines = [line.strip() for block in blocks for line in block.splitlines()]
    lines += re.findall(r"`([^`\n]+)`", text)
    return sorted({line for line in lines if line.startswith(PROGRAM)})


def is_understood(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parse a command with the very parser that would run it, and stop there.

    Raises:
        SystemExit: the command line does not take it.
    """
    parse_args = argparse.ArgumentParser.parse_args

    def parse_and_stop(parser: argparse.ArgumentParser, *arguments: object) -> None:
        parse_args(parser, *arguments)  # type: ignore[call-overload]
        raise Parsed

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", parse_and_stop)
    with pytest.raises(Parsed):
        main(shlex.split(line.removeprefix(PROGRAM)))
