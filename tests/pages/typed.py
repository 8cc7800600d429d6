"""The commands on a generated page, and whether our own command line takes them."""

import argparse
import re
import shlex
from importlib import import_module

import pytest

from tests.pages.rendered import render_page


class Parsed(Exception):  # noqa: N818  # no error: the way out of a command that would start
    """A command line was understood."""


def commands_of(page: str) -> list[str]:
    """Commands of ours that a page tells people to type, in blocks and in running text."""
    text = render_page(page)
    blocks = re.findall(r"^ *```sh\n(.*?)^ *```", text, re.M | re.S)
    lines = [line.strip() for block in blocks for line in block.splitlines()]
    lines += re.findall(r"`([^`\n]+)`", text)
    return sorted({line for line in lines if line.startswith("python -m training ")})


def is_understood(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parse a command of a package of ours with the very parser that would run it, and stop there.

    Raises:
        SystemExit: the command line does not take it.
    """
    parse_args = argparse.ArgumentParser.parse_args

    def parse_and_stop(parser: argparse.ArgumentParser, *arguments: object) -> None:
        parse_args(parser, *arguments)  # type: ignore[call-overload]
        raise Parsed

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", parse_and_stop)
    package, *words = shlex.split(line.removeprefix("python -m "))
    with pytest.raises(Parsed):
        import_module(f"{package}.__main__").main(words)
