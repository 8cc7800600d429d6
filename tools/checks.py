"""`build.py check`: formatting, lint, types, spelling, prose, and things that no file may hold."""

import re
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from tools.console import ROOT, say
from tools.node import NODE_MODULES, find_node
from tools.prose import findings
from tools.source import files

PYTHON_TOOLS = (
    ("Formatting", ("ruff", "format", "--check", "--quiet", ".")),
    ("Lint", ("ruff", "check", "--quiet", ".")),
    ("Types", ("mypy",)),
    ("Spelling", ("codespell_lib", ".")),
)
COMPILER = "typescript/bin/tsc"
SCRIPT_TOOLS = (
    ("Lint of scripts", ("eslint/bin/eslint.js", "--max-warnings", "0", ".")),
    ("Types of the pages' scripts", (COMPILER, "--project", "tsconfig.json")),
    ("Types of the tools' scripts", (COMPILER, "--project", "tools/tsconfig.json")),
    ("Types of the build's scripts", (COMPILER, "--project", "templates/tsconfig.json")),
)

# What makes a file true on one machine only, or fetch from somewhere that nobody chose.
# Each is written so that this file does not match itself.
FORBIDDEN = {
    "the address of a package registry": re.compile(
        r"registry\.npmjs|npmjs\.(?:org|com)/|pypi\.org/(?:simple|pypi)|pythonhosted\.org"
        r"|download\.pytorch\.org|registry\.yarnpkg"
    ),
    "an absolute path of somebody's machine": re.compile(
        r"(?<![\w./:-])/(?:home|Users|root|work|opt)/\w"
    ),
    "a key or token": re.compile(r"\b(?:ghp|hf|sk|pypi)[_-][A-Za-z0-9]{20,}"),
}
TEXT_SUFFIXES = {
    ".cfg", ".css", ".html", ".j2", ".js", ".json", ".jsonl", ".md", ".mjs", ".py", ".svg",
    ".toml", ".txt", ".yaml", ".yml", "", ".npmrc",
}  # fmt: skip


def main() -> int:
    """Run all checks, also after one has failed; return the exit status."""
    run = partial(subprocess.run, cwd=ROOT, check=False)
    failed = [title for title, command in commands() if run(command).returncode]
    tracked = tracked_files()
    for title, finder in (("Prose", findings), ("Forbidden things", forbidden_things)):
        found = list(finder(tracked))
        for line in found:
            say(line)
        if found:
            failed.append(title)
    say(f"Failed: {', '.join(failed)}." if failed else "All checks pass.")
    return 1 if failed else 0


def commands() -> Iterator[tuple[str, list[str | Path]]]:
    """The tools that look at the whole checkout: what each looks at, and its command."""
    for title, words in PYTHON_TOOLS:
        yield title, [sys.executable, "-m", *words]
    node = find_node().node
    for title, (script, *options) in SCRIPT_TOOLS:
        yield title, [node, NODE_MODULES / script, *options]


def tracked_files() -> list[Path]:
    """The files that git knows, and the new ones that it does not ignore."""
    return [ROOT / name for name in files()]


def forbidden_things(paths: list[Path]) -> Iterator[str]:
    """One line a finding: where, and what."""
    for path in paths:
        if path.suffix not in TEXT_SUFFIXES or path == Path(__file__):
            continue
        for number, line in enumerate(path.read_text("utf-8", "replace").splitlines(), 1):
            for what, pattern in FORBIDDEN.items():
                if found := pattern.search(line):
                    yield f"{path.relative_to(ROOT)}:{number}: {what}: {found[0]}"


if __name__ == "__main__":
    sys.exit(main())
