"""Whole rehearsals by their command."""

import json
import subprocess
from pathlib import Path

from PIL import Image

from training.data import streaming
from training.rehearsal.command import CANDIDATES
from training.run.recipes import TINY
from training.run.supervisor import COMMAND

PATIENCE = 1200  # seconds: beside another swarm, drawing takes a while


def rehearse(folder: Path, *options: str) -> str:
    """Rehearse with two volunteers, and see how it ended; what it said."""
    streaming.prepare_shapes(TINY)
    command = [*COMMAND, "rehearse", *options, "--peers", "2", "--folder", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "'s machine crashes during its work" in done.stdout
    assert f"pictures.png, the best 4 of {CANDIDATES} pictures of each caption" in done.stdout
    with Image.open(folder / "pictures.png") as sheet:
        assert sheet.width > 4 * 128
    card = json.loads((folder / "live" / "run.json").read_text())
    assert card["finished"] > card["start"]
    return done.stdout
