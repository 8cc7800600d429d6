"""The README tells commands of `training` that exist."""

import re

import pytest

from tools.console import ROOT
from training.__main__ import MODULES, make_parser
from training.authority.command import make_parser as make_authority_parser
from training.runfile import parse

TEXT = (ROOT / "README.md").read_text("utf-8")
TOLD = [
    found.split("#")[0].split()
    for found in re.findall(r"python -m training\s+([^`\n]*(?:\n(?=[^`\n]*`)[^`\n]*)?)", TEXT)
]


@pytest.mark.parametrize("words", TOLD, ids=" ".join)
def test_every_command_that_is_told_is_understood(words: list[str]) -> None:
    if words[0] == "authority":
        assert words[1:] == ["run.toml"]
    elif words[0] not in MODULES and words != ["--help"]:
        assert make_parser().parse_args(words).command == words[0]


def test_the_commands_of_a_volunteers_way_are_told() -> None:
    assert {"rehearse", "doctor", "join", "monitor", "authority"} <= {words[0] for words in TOLD}


def test_the_moderators_command_is_understood() -> None:
    (words,) = re.findall(r"`\.\.\. authority ([^`]*)`", TEXT)
    assert make_authority_parser().parse_args(words.split()).action == "ban"


def test_the_run_file_that_is_shown_is_one() -> None:
    (block,) = re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL)
    run = parse(re.sub("(?m)^  ", "", block).replace("3KooW...", "3KooWShortened"))
    assert run.authority
    assert run.organisation
