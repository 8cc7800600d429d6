"""A language model rehearsed by real processes, for a few steps."""

import json
import subprocess
from pathlib import Path

import pytest

from training.run.live import LiveFolder
from training.run.recipes import LANGUAGE
from training.run.supervisor import COMMAND

PATIENCE = 600  # seconds, for a busy machine


@pytest.mark.swarm
def test_a_language_model_is_trained_published_and_continues_the_prompts(tmp_path: Path) -> None:
    folder = tmp_path / "rehearsal"
    options = ["--recipe", "language", "--minutes", "0.4", "--peers", "2", "--calm"]
    command = [*COMMAND, "rehearse", *options, "--folder", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = LiveFolder(folder / "live").progress.read()
    assert lines[0]["loss"] == pytest.approx(3.69, abs=0.1)  # ln 40, for 40 words
    assert lines[-1]["loss"] < lines[0]["loss"] - 0.1
    (drawn,) = json.loads((folder / "live" / "samples.json").read_text())["checkpoints"]
    for prompt, texts in zip(LANGUAGE.generation.prompts, drawn["texts"], strict=True):
        assert len(texts) == 4
        assert all(text.startswith(prompt) for text in texts)
    assert f"  {LANGUAGE.generation.prompts[0]} " in done.stdout
