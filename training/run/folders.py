"""Folders for a run's files on this machine."""

import os
from pathlib import Path

from training.run.runfile import RunFile


def default_folder(run: RunFile, role: str) -> Path:
    """Give the folder of a run and role in the user's own state folder."""
    state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    return state / "training-transformers-together" / run.name / role
