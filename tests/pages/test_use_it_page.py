"""'Use it in your project': everything that the page shows is run."""

import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from pre_commit.clientlib import load_config, load_manifest

from calculator.__main__ import main
from tests.pages.rendered import render_page
from tools.console import ROOT

FILES = ROOT / "tests/calculator/doors/files"


def commands() -> list[str]:
    return re.findall(r"^transformer-memory .*$", render_page("use-it"), re.M)


def block(language: str, containing: str) -> str:
    blocks = re.findall(rf"^```{language}\n(.*?)^```", render_page("use-it"), re.M | re.S)
    (found,) = [text for text in blocks if containing in text]
    return str(found)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files that the page names, which is the current one."""
    (tmp_path / "configs").mkdir()
    for given, name in (
        *(("axolotl.yml", "run.yml"), ("axolotl.yml", "configs/run.yml")),
        *(("accelerate.yaml",) * 2, ("deepspeed.json",) * 2, ("program.py", "train.py")),
    ):
        shutil.copyfile(FILES / given, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("project")
def test_every_command_answers(capsys: pytest.CaptureFixture[str]) -> None:
    for line in commands():
        assert main(shlex.split(line)[1:]) in (0, 1), line
        out, err = capsys.readouterr()
        assert "Qwen/Qwen2.5-7B" in out, line
        assert err == "", line


def test_the_first_command_prints_what_the_page_says(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "run.yml").write_text(block("yaml", "base_model"), "utf-8")
    assert main(shlex.split(commands()[0])[1:]) == 1
    assert capsys.readouterr().out == block("diff", "--- a/run.yml")


@pytest.mark.usefixtures("project")
def test_the_program_prints_a_verdict_and_bytes() -> None:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(block("python", "check_files"), "page", "exec"), {})  # ours
    verdict, size = printed.getvalue().splitlines()
    assert "GeForce RTX 4090" in verdict
    assert int(size) > 4 * 2**30  # 7.6 billion weights, most in 4 bits


def test_the_action_takes_what_the_page_gives_and_runs_without_torch(project: Path) -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
    workflow = yaml.safe_load(block("yaml", "jobs:"))
    given = workflow["jobs"]["memory"]["steps"][1]["with"]
    required = {name for name, item in action["inputs"].items() if item.get("required")}
    assert required <= given.keys() <= action["inputs"].keys()
    step = action["runs"]["steps"][-1]
    assert step["env"].keys() >= {"FILES", "GPU", "OPTIONS", "UNKNOWN", "PYTHONPATH"}
    (project / "torch.py").write_text("raise SystemExit('torch was imported')\n", "utf-8")
    summary = project / "summary.md"
    environment = {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": f"{ROOT}{os.pathsep}{project}",
        "GITHUB_STEP_SUMMARY": str(summary),
        "FILES": given["files"],
        "OPTIONS": "",
        "UNKNOWN": "0",
    }
    for gpu, status in ((given["gpu"], 1), ("80GiB", 0)):
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            check=False,
            env={**environment, "GPU": gpu},
            cwd=project,
            capture_output=True,
            text=True,
        )
        assert (done.returncode, done.stderr) == (status, "")
    assert "```diff" in summary.read_text("utf-8")


@pytest.mark.usefixtures("project")
def test_the_hook_of_the_page_is_one_that_we_publish() -> None:
    (hook,) = load_manifest(str(ROOT / ".pre-commit-hooks.yaml"))
    Path("config.yaml").write_text(block("yaml", "repos:"), "utf-8")
    (used,) = load_config("config.yaml")["repos"][0]["hooks"]
    assert used["id"] == hook["id"]
    assert re.search(used["files"], "configs/run.yml")
    command, *words = shlex.split(hook["entry"])
    assert command == "transformer-memory"
    assert main([*words, *used["args"], "configs/run.yml"]) == 1
