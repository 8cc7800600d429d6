"""Answers of the command line, and refusals as a caller and a terminal get them."""

import re
from collections.abc import Sequence

import pytest

from calculator.__main__ import main
from calculator.errors import InputError


def refused(start: str, words: str = "") -> pytest.RaisesExc[InputError]:
    """Expect an error that starts with a field, perhaps with its value, and has these words."""
    return pytest.raises(InputError, match=rf"(?s)^{re.escape(start)}(?!\w).*{re.escape(words)}")


def refusal(words: Sequence[str], capsys: pytest.CaptureFixture[str]) -> str:
    """The one line by which the command line refuses its words, with status 2."""
    assert main(words) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith("error: ")
    return err


def answered(words: str, capsys: pytest.CaptureFixture[str]) -> str:
    """The output of the command line, with status 0 and no complaint."""
    assert main(words.split()) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out
