"""The README and CONTRIBUTING: what they tell people to type exists."""

import re

import pytest

from calculator.__main__ import main
from tools.commands import _parser
from tools.console import ROOT

TYPED = re.findall(
    r"^\$ (?:\.venv/bin/)?python3? (.*?)(?:\s+#.*)?$",
    "".join((ROOT / name).read_text("utf-8") for name in ("README.md", "CONTRIBUTING.md")),
    re.MULTILINE,
)


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


def test_the_readme_tells_the_commands_of_the_design() -> None:
    for command in ("build.py serve", "build.py test", "-m calculator estimate"):
        assert any(line.startswith(command) for line in TYPED)


def test_the_python_example_of_the_readme_runs() -> None:
    (example,) = re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(), re.M | re.S)
    names: dict[str, object] = {}
    exec(compile(example, "README.md", "exec"), names)
    assert "report" in names
