"""The README tells commands of `training` that exist."""

import re

import pytest

from tools.console import ROOT
from training.__main__ import MODULES, make_parser

TEXT = (ROOT / "README.md").read_text("utf-8")
TOLD = [
    found.split("#")[0].split()
    for found in re.findall(r"python -m training\s+([^`\n]*(?:\n(?=[^`\n]*`)[^`\n]*)?)", TEXT)
]


@pytest.mark.parametrize("words", TOLD, ids=" ".join)
def test_every_command_that_is_told_is_understood(words: list[str]) -> None:
    if words[0] not in MODULES and words != ["--help"]:
        assert make_parser().parse_args(words).command == words[0]


def test_the_commands_of_a_volunteers_way_are_told() -> None:
    assert {"rehearse", "doctor", "join"} <= {words[0] for words in TOLD}
