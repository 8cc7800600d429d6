"""The README and CONTRIBUTING: what they tell people to type exists."""

import re

import pytest

from calculator.__main__ import main
from tests.pages.typed import is_understood
from tools.commands import _parser
from tools.console import ROOT

README = (ROOT / "README.md").read_text("utf-8")
TYPED = re.findall(
    r"^\$ (?:\.?v?env/bin/)?python3? (.*?)(?:\s+#.*)?$",
    README + (ROOT / "CONTRIBUTING.md").read_text("utf-8"),
    re.MULTILINE,
)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # libraries' own, when imported
@pytest.mark.parametrize("line", TYPED)
def test_every_command_that_is_told_works(
    line: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    match line.split():
        case ["build.py", *words]:
            options, left = _parser().parse_known_args(words)
            assert not left or options.command in ("test", "bench")
        case ["-m", "calculator", *words]:
            assert main(words) == 0
            assert capsys.readouterr().out
        case ["-m", "training" | "validation", *_]:
            is_understood(f"python {line}", monkeypatch)
        case _:
            assert line == "-m venv env"


def test_the_readme_tells_the_commands_of_the_design() -> None:
    own = ("build.py serve", "build.py test", "-m calculator estimate")
    for command in (*own, *(f"-m training {name}" for name in ("rehearse", "doctor", "join"))):
        assert any(line.startswith(command) for line in TYPED)


def test_the_python_example_of_the_readme_runs() -> None:
    (example,) = re.findall(r"^```python\n(.*?)^```", README, re.M | re.S)
    names: dict[str, object] = {}
    exec(compile(example, "README.md", "exec"), names)
    assert "report" in names
