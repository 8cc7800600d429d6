"""The README and CONTRIBUTING: what they tell people to type exists."""

import re

import pytest

from calculator.__main__ import main
from tools.commands import _parser
from tools.console import ROOT
from training.__main__ import MODULES, make_parser

README = (ROOT / "README.md").read_text("utf-8")
TYPED = re.findall(
    r"^\$ (?:\.venv/bin/)?python3? (.*?)(?:\s+#.*)?$",
    README + (ROOT / "CONTRIBUTING.md").read_text("utf-8"),
    re.MULTILINE,
)
TRAINING = [
    found.split("#")[0].split()
    for found in re.findall(r"python -m training\s+([^`\n]*(?:\n(?=[^`\n]*`)[^`\n]*)?)", README)
]


@pytest.mark.parametrize("line", [line for line in TYPED if line.startswith("build.py")])
def test_every_build_command_that_is_told_exists(line: str) -> None:
    _, command, *rest = line.split()
    options, left = _parser().parse_known_args([command, *rest])
    assert options.command == command
    assert not left or command in ("test", "bench")


@pytest.mark.parametrize("line", [line for line in TYPED if line.startswith("-m calculator")])
def test_every_calculator_command_that_is_told_works(
    line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(line.split()[2:]) == 0
    assert capsys.readouterr().out


@pytest.mark.parametrize("words", TRAINING, ids=" ".join)
def test_every_training_command_that_is_told_is_understood(words: list[str]) -> None:
    if words[0] not in MODULES and words != ["--help"]:
        assert make_parser().parse_args(words).command == words[0]


def test_the_readme_tells_the_commands_of_the_design() -> None:
    for command in ("build.py serve", "build.py test", "-m calculator estimate"):
        assert any(line.startswith(command) for line in TYPED)
    assert {"rehearse", "doctor", "join"} <= {words[0] for words in TRAINING}


def test_the_python_example_of_the_readme_runs() -> None:
    (example,) = re.findall(r"^```python\n(.*?)^```", README, re.M | re.S)
    names: dict[str, object] = {}
    exec(compile(example, "README.md", "exec"), names)
    assert "report" in names
