"""build.py and tools/commands.py: the one way in."""

import ast
import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

import build
from tools import chromium, commands, node, website
from tools.console import ROOT, BuildError
from tools.environment import Group


def test_an_old_python_can_read_the_file_that_names_the_one_to_take(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ast.parse((ROOT / "build.py").read_text("utf-8"), feature_version=(3, 5))
    monkeypatch.setattr(sys, "version_info", (3, 9, 2))
    monkeypatch.setattr(build.shutil, "which", lambda name: name == "python3.12" or None)
    with pytest.raises(SystemExit, match=r"this is Python 3\.9.*Run it with python3\.12\."):
        build.refuse_old_python()


def test_an_unknown_command_exits_with_status_2() -> None:
    answer = subprocess.run(
        [sys.executable, "build.py", "bulid"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert answer.returncode == 2
    assert "serve" in answer.stderr


def test_an_old_node_is_passed_over_for_the_wheels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Group] = []

    def ensure(groups: list[Group]) -> Path:
        asked.extend(groups)
        return Path(sys.executable)

    monkeypatch.setattr(node.shutil, "which", lambda name: name)
    monkeypatch.setattr(node, "_version", lambda _: (node.OLDEST_NODE[0] - 1, 99))
    monkeypatch.setattr(node, "ensure", ensure)
    monkeypatch.setattr(node, "run", lambda *_: f"{tmp_path}\n")
    found = node.find_node()
    assert asked == [Group.NODE]
    assert tmp_path in found.node.parents


@pytest.mark.parametrize("options", [[], ["-k", "checkpointing"]])
def test_every_test_is_run_unless_options_choose(
    monkeypatch: pytest.MonkeyPatch, options: list[str]
) -> None:
    runs: list[tuple[str, ...]] = []
    for name in ("_ensure_everything", "_build"):
        monkeypatch.setattr(commands, name, lambda: None)
    monkeypatch.setattr(commands, "_compiling", nullcontext)
    monkeypatch.setattr(commands, "_in_venv", lambda *words: runs.append(words) or 0)
    assert commands.main(["test", *options]) == 0
    assert runs[-1] == ("-m", "pytest", *(options or commands.SIDE_BY_SIDE))
    assert not any((ROOT / word).exists() for word in runs[-1])


def test_without_a_chromium_that_starts_it_is_said_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHROMIUM", str(tmp_path / "none"))
    with pytest.raises(BuildError, match=r"CHROMIUM = .*none: must be a browser that starts"):
        chromium.find_chromium.__wrapped__()
    monkeypatch.delenv("CHROMIUM")
    for name in ("_of_the_machine", "_of_playwright", "_install_playwrights", "_install_debians"):
        monkeypatch.setattr(chromium, name, list)
    with pytest.raises(BuildError, match=r"apt install chromium.*CHROMIUM="):
        chromium.find_chromium.__wrapped__()


@pytest.mark.skipif(os.name == "nt", reason="the stub is a shell script")
def test_a_chromium_that_only_pretends_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stub, real = tmp_path / "stub", tmp_path / "real"
    stub.write_text("#!/bin/sh\necho 'please install the snap' >&2\nexit 1\n")
    real.write_text("#!/bin/sh\necho Chromium 1\n")
    for program in (stub, real):
        program.chmod(0o755)
    monkeypatch.delenv("CHROMIUM", raising=False)
    monkeypatch.setattr(chromium, "_of_the_machine", lambda: [str(stub), str(real)])
    monkeypatch.setattr(chromium, "_of_playwright", list)
    assert chromium.find_chromium.__wrapped__() == real


def test_where_debian_has_no_shell_its_whole_chromium_is_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []

    def run(command: list[str], *_: str, environment: dict[str, str]) -> None:
        asked.append(command[-1])
        if command[-1] == "chromium-headless-shell":
            raise BuildError("no such package")

    monkeypatch.setattr(chromium, "run", run)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(chromium.shutil, "which", lambda name: f"/usr/bin/{name}")
    found = chromium._install_debians()
    assert asked[1:] == ["chromium-headless-shell", "chromium"]
    assert found[:2] == ["/usr/bin/chromium-headless-shell", "/usr/bin/chromium"]


def test_a_site_is_built_again_if_a_build_failed_or_something_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built: list[bool] = []

    def build_or_fail(to_publish: bool) -> None:
        built.append(to_publish)
        if len(built) <= 2:
            raise BuildError("no")

    sources = ["build.py"]
    (tmp_path / "site").mkdir()
    monkeypatch.setattr(website, "SITE", tmp_path / "site")
    monkeypatch.setattr(website, "BUILT", tmp_path / "built")
    monkeypatch.setattr(website, "files", lambda: sources)
    monkeypatch.setattr(website, "_build", build_or_fail)
    for _ in range(2):
        with pytest.raises(BuildError):
            website.build_site(to_publish=False)
    website.build_site(to_publish=False)
    website.build_site(to_publish=False)
    assert built == [False] * 3
    website.build_site(to_publish=True)  # lacked the compressed files
    website.build_site(to_publish=False)
    assert built[3:] == [True]
    sources.append("README.md")
    website.build_site(to_publish=True)
    (tmp_path / "site").rmdir()
    website.build_site(to_publish=True)
    monkeypatch.setenv("SITE_URL", "https://example.org/run/")
    website.build_site(to_publish=True)
    assert built[3:] == [True] * 4
