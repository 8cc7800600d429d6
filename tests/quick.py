"""`build.py test --quick`: the tests nearest to what changed, for less than two minutes.

A file of tests is as near to a changed file as it takes imports to get there; one that names a
changed file that is no Python imports it. Browsers and swarms are left to the whole run.
"""

import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.scheduling import SECONDS, expected_seconds
from tools.checks import tracked_files
from tools.console import ROOT, say

MOST_SECONDS: Final = 90.0  # of each process; starting takes the rest of two minutes
PROCESSES: Final = min(4, os.cpu_count() or 1)
LEFT_OUT: Final = ("mark.swarm", "mark.browser")
Graph = dict[Path, set[Path]]


def main() -> int:
    """Run the tests, or say that nothing has changed; return pytest's exit status."""
    changed, files = changed_files(), tracked_files()
    near = nearest(changed, importers(files, changed))
    tests = [path for path in near if _is_chosen(path)]
    chosen = list(within(tests, _timed()))
    if not chosen:
        say("No test is near to what has changed since the main branch.")
        return 0
    say(f"{len(chosen)} files of tests, of {len(tests)} that import what has changed.")
    options = ("-n", str(PROCESSES), "--dist", "loadfile")
    command = [sys.executable, "-m", "pytest", *options, *chosen]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def changed_files() -> set[Path]:
    """Files that differ from where this branch left the main branch."""
    since = _git("merge-base", "HEAD", "main") or ["HEAD"]
    names = _git("diff", "--name-only", *since) + _git("ls-files", "--others", "--exclude-standard")
    return {ROOT / name for name in names if (ROOT / name).is_file()}


def _git(*words: str) -> list[str]:
    answer = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return answer.stdout.split("\n")[:-1]


def importers(files: list[Path], changed: set[Path]) -> Graph:
    """For each file, those that import it."""
    data = [path for path in changed if path.suffix != ".py"]
    graph: Graph = {}
    for path in files:
        if path.suffix == ".py":
            for imported in (*imports(path), *_named(path, data)):
                graph.setdefault(imported, set()).add(path)
    return graph


def imports(path: Path) -> Iterator[Path]:
    """The project's files that a file imports, its folders' fixtures included."""
    for folder in path.relative_to(ROOT).parents:
        yield ROOT / folder / "conftest.py"
    yield from map(_module, names_imported(ast.parse(path.read_text("utf-8"))))


def names_imported(tree: ast.Module) -> Iterator[str]:
    """Full names of the modules that a program imports, and of what it takes from them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{name.name}" for name in node.names)


def _module(name: str) -> Path:
    place = ROOT.joinpath(*name.split("."))
    return place / "__init__.py" if place.is_dir() else place.with_suffix(".py")


def _named(path: Path, data: list[Path]) -> list[Path]:
    text = path.read_text("utf-8") if data else ""
    return [each for each in data if f'"{each.stem}"' in text or each.name in text]


def nearest(changed: set[Path], graph: Graph) -> list[Path]:
    """Changed files and all that import them, directly or not, the nearest first."""
    found = dict.fromkeys(sorted(changed))
    for path in (queue := list(found)):
        for importer in sorted(graph.get(path, ())):
            if importer not in found:
                found[importer] = None
                queue.append(importer)
    return list(found)


def _is_chosen(path: Path) -> bool:
    """True for tests, and for modules of the calculator, whose docstrings hold some."""
    if path.suffix != ".py" or path.is_relative_to(ROOT / "tests" / "browser"):
        return False
    folder = path.relative_to(ROOT).parts[0]
    is_test = folder == "tests" and path.name.startswith("test_")
    text = path.read_text("utf-8")
    return (is_test or folder == "calculator") and not any(mark in text for mark in LEFT_OUT)


def _timed() -> dict[str, float]:
    kept = ROOT / ".pytest_cache" / "v" / SECONDS
    return json.loads(kept.read_text()) if kept.is_file() else {}


def within(tests: list[Path], timed: dict[str, float]) -> Iterator[Path]:
    """The first of the tests that fit into the time."""
    left = MOST_SECONDS * PROCESSES
    for path in tests:
        left -= (seconds := expected_seconds(path.relative_to(ROOT).as_posix(), timed))
        if left >= 0:
            yield path
        else:
            left += seconds  # a shorter one may fit


if __name__ == "__main__":
    sys.exit(main())
