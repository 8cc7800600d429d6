"""tools/checks.py: what no file of this repository may hold."""

import json
import subprocess
from pathlib import Path

import pytest

from tools import checks
from tools.console import ROOT
from tools.node import NODE_MODULES, find_node

FORBIDDEN = [
    '"resol' + 'ved": "https://registry.npm' + 'js.org/pyodide"',
    "--index" + "-url https://pypi" + ".org/simple",
    "/home" + "/somebody/project",
    "see /ro" + "ot/notes.txt",
    "token = hf" + "_abcdefghijklmnopqrstuvwxyz",
]
ORDINARY = ["docs/home/page.md", "https://example.org/wo" + "rk/x", "a/opt/b"]


def test_forbidden_things_are_found_where_they_stand_and_ordinary_paths_are_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "ROOT", tmp_path)
    path = tmp_path / "file.txt"
    path.write_text("\n".join([*ORDINARY, *FORBIDDEN]))
    found = [finding.split(": ")[0] for finding in checks.forbidden_things([path])]
    assert found == [f"file.txt:{line}" for line in range(4, 9)]


def test_a_misspelt_word_is_found_and_a_name_in_code_is_none(tmp_path: Path) -> None:
    *command, _ = dict(checks.commands())["Spelling"]
    path = tmp_path / "page.md"
    for text, finds in (("the statics of a model", False), ("what was reci" + "eved", True)):
        path.write_text(f"{text}\n")
        finished = subprocess.run([*command, path], cwd=ROOT, capture_output=True, check=False)
        assert bool(finished.returncode) == finds


def node(*words: str | Path, text: str = "") -> subprocess.CompletedProcess[str]:
    script, *options = words
    command = [find_node().node, NODE_MODULES / script, *options]
    return subprocess.run(
        command, cwd=ROOT, input=text, capture_output=True, text=True, check=False
    )


def test_every_script_has_its_types_checked() -> None:
    scripts = [path for path in checks.tracked_files() if path.suffix in (".js", ".mjs")]
    listed: set[Path] = set()
    for _, (tool, *options) in checks.SCRIPT_TOOLS:
        if "tsc" in tool:
            found = node(tool, *options, "--listFilesOnly").stdout.splitlines()
            listed |= {Path(name) for name in found}
    assert scripts
    assert set(scripts) - listed == set()


def test_a_wrong_type_in_a_script_is_found(tmp_path: Path) -> None:
    project = {"extends": str(ROOT / "tsconfig.json"), "include": ["*.js"]}
    (tmp_path / "tsconfig.json").write_text(json.dumps(project))
    (tmp_path / "page.js").write_text("/** @param {number} n */\nexport const f = (n) => n.size;\n")
    finished = node("typescript/bin/tsc", "--project", tmp_path)
    assert finished.returncode != 0
    assert "page.js(2,27)" in finished.stdout


@pytest.mark.parametrize(
    ("script", "rule"),
    [("let a = 1;\nexport { a };\n", "prefer-const"), ("require('fs');\n", "no-undef")],
)
def test_a_script_that_breaks_a_rule_is_found(script: str, rule: str) -> None:
    name = ROOT / "docs" / "assets" / "page.js"
    tool = "eslint/bin/eslint.js"
    finished = node(tool, "--stdin", "--stdin-filename", name, text=script)
    assert finished.returncode == 1
    assert rule in finished.stdout
