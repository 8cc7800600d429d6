"""A whole rehearsal by its command: authority, monitor, volunteers, a death, a late joiner."""

import json
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from PIL import Image

from training import data
from training.__main__ import make_parser
from training.recipes import TINY
from training.rehearsal import CANDIDATES
from training.supervisor import COMMAND

pytestmark = pytest.mark.swarm


def test_a_rehearsal_trains_and_ends_with_pictures(tmp_path: Path) -> None:
    data.prepare_shapes(TINY)
    folder = tmp_path / "rehearsal"
    options = ["--minutes", "0.5", "--recipe", "tiny", "--peers", "2", "--folder", str(folder)]
    done = subprocess.run(
        [*COMMAND, "rehearse", *options], capture_output=True, text=True, timeout=400, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "'s machine dies in the middle of its work" in done.stdout
    assert f"pictures.png, the best 4 of {CANDIDATES} pictures of each caption" in done.stdout
    with Image.open(folder / "pictures.png") as sheet:
        assert sheet.width > 4 * 128
        assert sheet.height > len(TINY.generation.prompts) * 128
    card = json.loads((folder / "live" / "run.json").read_text())
    assert card["finished"] > card["start"]
    told = re.search(r"join from another terminal:  HF_TOKEN=.+ \\\n  (.+)", done.stdout)
    assert told is not None
    command = shlex.split(told[1])
    assert command[1:3] == ["-m", "training"]
    assert make_parser().parse_args(command[3:]).run == str(folder / "run.toml")
