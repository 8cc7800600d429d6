"""Published checkpoints: the monitor writes them beside the live data, a volunteer reads them.

A checkpoint is a folder as `save_pretrained` makes it, with the weights in safetensors. The
list with their sums, `checkpoints.json`, is written last, so that what it names is there.
"""

import json
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from urllib.parse import urljoin
from urllib.request import urlopen

from training import atomic
from training.live import CheckpointEntry, LiveFolder
from training.model import TextToImageTransformer

KEPT = 3  # a newcomer needs the newest; two more are for whoever is downloading right now
ANSWER_SECONDS = 60.0

WEIGHTS, CONFIG = "model.safetensors", "config.json"


class CheckpointError(RuntimeError):
    """A published checkpoint cannot be used; the message says why."""


def publish(
    live: LiveFolder, model: TextToImageTransformer, step: int, loss: float | None, time: str
) -> Path:
    """Save the weights under `checkpoints/`, list them, and remove old ones.

    Gives the checkpoint's folder.
    """
    folder = live.path / "checkpoints" / f"{step:06d}"
    temporary = folder.with_name(f".{folder.name}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    model.save_pretrained(temporary)
    shutil.rmtree(folder, ignore_errors=True)
    temporary.rename(folder)
    weights = folder / WEIGHTS
    address = weights.relative_to(live.path).as_posix()
    entry = CheckpointEntry(step, loss, time, address, atomic.sha256(weights))
    others = [other for other in live.read_checkpoints() if other.step != step]
    entries = sorted([*others, entry], key=lambda entry: entry.step)
    entries = [replace(old, address=None) for old in entries[:-KEPT]] + entries[-KEPT:]
    live.write_checkpoints(entries)
    kept = {entry.address for entry in entries}
    for old in folder.parent.iterdir():
        if f"checkpoints/{old.name}/{WEIGHTS}" not in kept:
            shutil.rmtree(old, ignore_errors=True)
    return folder


def fetch(live: str) -> tuple[int, TextToImageTransformer]:
    """Get the newest published checkpoint from an address or a folder: its step and the model.

    Raises:
        CheckpointError: when there is none or its sum differs from the list's.
        OSError: when the place does not answer.
    """
    entries = [entry for entry in json.loads(_read(live, "checkpoints.json")) if entry["address"]]
    if not entries:
        raise CheckpointError(f"no checkpoint is published at {live}")
    newest = entries[-1]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        weights = folder / WEIGHTS
        weights.write_bytes(_read(live, newest["address"]))
        (folder / CONFIG).write_bytes(_read(live, newest["address"].replace(WEIGHTS, CONFIG)))
        if atomic.sha256(weights) != newest["sha256"]:
            raise CheckpointError(f"{newest['address']} at {live} is not what the list says")
        model: TextToImageTransformer = TextToImageTransformer.from_pretrained(folder)
    return newest["step"], model


def _read(live: str, name: str) -> bytes:
    if not live.startswith(("http://", "https://")):
        return (Path(live) / name).read_bytes()
    with urlopen(urljoin(live.rstrip("/") + "/", name), timeout=ANSWER_SECONDS) as answer:
        content: bytes = answer.read()
    return content
