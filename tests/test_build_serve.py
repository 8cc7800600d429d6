"""tools/serve.py: which changes build the site again."""

import itertools
import subprocess
import threading
from pathlib import Path

import pytest

from tools import serve, source
from tools.console import ROOT


def test_every_source_of_the_repository_is_watched() -> None:
    command = ["git", "ls-files", "-z"]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    sources = {ROOT / name for name in names.split("\0") if name and not name.startswith("tests/")}
    shown = {path for path in sources if path.is_file() and not _is_hidden(path)}
    assert shown - set(serve.watched()) == set()


def test_what_is_generated_is_not_watched() -> None:
    tops = {path.relative_to(ROOT).parts[0] for path in serve.watched()}
    assert not tops & {"site", "node_modules", ".build", ".venv", ".git"}


@pytest.mark.parametrize("name", ["training/run/recipes.py", "package-lock.json"])
def test_a_changed_source_is_noticed(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (serve, source):
        monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(serve, "POLL_SECONDS", 0.01)
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("before")
    writer = threading.Thread(target=_write_until_seen, args=(path, seen := threading.Event()))
    first = serve.changes()
    writer.start()
    try:
        (changed,) = itertools.islice(first, 1)
    finally:
        seen.set()
        writer.join()
    assert changed.as_posix() == name


def _write_until_seen(path: Path, seen: threading.Event) -> None:
    """Change `path` once and again while nobody has seen it."""
    for count in itertools.count(1):
        path.write_text("after" * count)
        if seen.wait(0.5):
            return


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.relative_to(ROOT).parts)
