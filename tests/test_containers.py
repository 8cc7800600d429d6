"""The Dockerfile, which is not built here: read, linted, and its files tried without the image."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tools.console import ROOT
from training.__main__ import make_parser

TEXT = (ROOT / "Dockerfile").read_text("utf-8")
INSTRUCTIONS = re.findall(r"^([A-Z]+) (.*)$", re.sub(r"\\\n\s*", "", TEXT), re.MULTILINE)


def arguments_of(instruction: str) -> list[str]:
    return [rest for name, rest in INSTRUCTIONS if name == instruction]


def copied() -> list[str]:
    return [source for rest in arguments_of("COPY") for source in rest.split()[:-1]]


def test_every_copied_path_is_there_and_let_through() -> None:
    let_through = (ROOT / ".dockerignore").read_text().split()
    for source in copied():
        assert (ROOT / source).exists()
        assert f"!{source.rstrip('/')}" in let_through


def test_every_package_is_installed_by_its_hash() -> None:
    commands = re.findall(r"pip install (.*?)(?= \|\||$)", "\n".join(arguments_of("RUN")), re.M)
    assert len(commands) == 4
    for command in commands:
        assert "--require-hashes" in command
        assert "--no-deps" in command
        (file,) = re.findall(r"-r (\S+)", command)
        assert (ROOT / file).is_file()


def test_the_base_image_is_pinned_by_a_whole_version_and_runs_as_an_ordinary_user() -> None:
    python, variant = arguments_of("ARG")[:2]
    assert re.fullmatch(r"PYTHON=3\.1[1-3]\.\d+-slim-\w+", python)
    assert variant == "VARIANT=cuda"
    stages = arguments_of("FROM")
    assert stages == ["python:${PYTHON} AS base", "base AS cuda", "base AS cpu", "${VARIANT}"]
    assert arguments_of("USER") == ["10001"]
    assert INSTRUCTIONS.index(("USER", "10001")) < len(INSTRUCTIONS) - 1


def test_the_files_in_the_image_are_enough(tmp_path: Path) -> None:
    for source in copied():
        place = ROOT / source
        if place.is_dir():
            shutil.copytree(place, tmp_path / source, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(place, tmp_path / source)
    (entry,) = arguments_of("ENTRYPOINT")
    (default,) = arguments_of("CMD")
    (watch,) = re.findall(r"CMD (\[.*\])", arguments_of("HEALTHCHECK")[0])
    for words, wanted in ((json.loads(entry) + json.loads(default), 0), (json.loads(watch), 1)):
        assert words[0] == "python"
        answer = subprocess.run(
            [sys.executable, *words[1:]], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert (answer.returncode, answer.stderr) == (wanted, "")


def test_the_command_in_its_head_is_one_of_ours() -> None:
    head = re.sub(r"(?m)\\\n#\s*|^#\s?", "", TEXT.split("ARG", 1)[0])
    (typed,) = re.findall(r"^\s*docker run .*? volunteer (join .*)$", head, re.MULTILINE)
    assert make_parser().parse_args(typed.split()).port == 31337


def test_the_linter_finds_nothing() -> None:
    linter = Path(sys.executable).with_name("hadolint")
    if not linter.exists():
        pytest.skip("hadolint is not installed")
    command = [linter, ROOT / "Dockerfile"]
    assert subprocess.run(command, capture_output=True, check=False).stdout == b""
