"""Published checkpoints: the monitor writes them beside the live data, a volunteer reads them.

A checkpoint is a folder as `save_pretrained` makes it, with the weights in safetensors. The
list with their sums, `checkpoints.json`, is written last, so that what it names is there. An
address in it is relative to the live data, or one on the Hub once the checkpoint is there too.
"""

import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import urljoin
from urllib.request import urlopen

from safetensors import SafetensorError

from training import atomic, download
from training.live import CheckpointEntry, LiveFolder
from training.model import TextToImageTransformer

KEPT = 3  # a newcomer needs the newest; two more are for whoever is downloading right now
MAX_LIST_BYTES = 2**20  # a list of checkpoints or a configuration; what is longer is neither

WEIGHTS, CONFIG = "model.safetensors", "config.json"

Published = tuple[int, TextToImageTransformer]  # the step and the model


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
    # safetensors writes for the owner alone; a web server of another account is to read it too.
    (temporary / WEIGHTS).chmod((temporary / CONFIG).stat().st_mode)
    shutil.rmtree(folder, ignore_errors=True)
    temporary.rename(folder)
    weights = folder / WEIGHTS
    address = weights.relative_to(live.path).as_posix()
    entry = CheckpointEntry(step, loss, time, address, atomic.sha256(weights))
    with live.lock:
        others = [other for other in live.read_checkpoints() if other.step != step]
        entries = sorted([*others, entry], key=lambda entry: entry.step)
        entries = [_without_file(old) for old in entries[:-KEPT]] + entries[-KEPT:]
        live.write_checkpoints(entries)
    kept = {f"{entry.step:06d}" for entry in entries[-KEPT:]}
    for old in folder.parent.iterdir():
        if old.name not in kept:
            shutil.rmtree(old, ignore_errors=True)
    return folder


def fetch(
    live: str, folder: Path | None = None, report: download.Report | None = None
) -> Published:
    """Get the newest published checkpoint from an address or a folder: its step and the model.

    Args:
        live: http(s) address or folder of the live data.
        folder: where a download that breaks off is kept and goes on the next time.
        report: told how many per cent have come.

    Raises:
        CheckpointError: when there is none, its sum differs from the list's, or it is no model.
        OSError: when the place does not answer.
    """
    newest = find_newest(live)
    with (
        tempfile.TemporaryDirectory() as temporary,
        _weights(live, newest, folder or Path(temporary), report) as weights,
    ):
        place = Path(temporary)
        (place / WEIGHTS).symlink_to(weights.resolve())
        config = (newest.address or "").replace(WEIGHTS, CONFIG)
        (place / CONFIG).write_bytes(_read(live, config))
        return newest.step, load(place)


def load(folder: Path | str) -> TextToImageTransformer:
    """Load a checkpoint's folder, or one of the Hub's by name.

    Raises:
        CheckpointError: it is not a checkpoint of this model.
        OSError: it is not there.
    """
    try:
        model: TextToImageTransformer = TextToImageTransformer.from_pretrained(
            folder, use_safetensors=True
        )
    except (RuntimeError, SafetensorError, TypeError, ValueError) as error:
        raise CheckpointError(f"{folder} is no model: {str(error).splitlines()[0]}") from error
    return model


def find_newest(live: str) -> CheckpointEntry:
    """The newest checkpoint in a run's list that can be had.

    Raises:
        CheckpointError: when there is none, or the list is none.
        OSError: when the place does not answer.
    """
    try:
        listed = [CheckpointEntry(**entry) for entry in json.loads(_read(live, "checkpoints.json"))]
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"checkpoints.json at {live} is no list of checkpoints") from error
    entries = [entry for entry in listed if entry.address]
    if not entries:
        raise CheckpointError(f"no checkpoint is published at {live}")
    return entries[-1]


@contextmanager
def _weights(
    live: str, entry: CheckpointEntry, folder: Path, report: download.Report | None
) -> Iterator[Path]:
    """The file of the weights, whose sum is right; one that was downloaded is removed after use."""
    address = _locate(live, entry.address or "")
    if isinstance(address, Path):
        if atomic.sha256(address) != entry.sha256:
            raise CheckpointError(f"{entry.address} at {live} is not what the list says")
        yield address
        return
    path = folder / f".{entry.sha256[:16]}.safetensors"
    try:
        download.download(address, path, entry.sha256, report)
        yield path
    except download.WrongSumError as error:
        raise CheckpointError(str(error)) from error
    finally:
        path.unlink(missing_ok=True)


def _locate(live: str, name: str) -> str | Path:
    """Where a file of the live data is: an http(s) address, or a path in the live folder."""
    if download.is_web(live) or download.is_web(name):
        address = urljoin(live.rstrip("/") + "/", name) if download.is_web(live) else name
        if not download.is_web(address):
            raise CheckpointError(f"{name} at {live} is no http(s) address")
        return address
    root = Path(live).resolve()
    path = (root / name).resolve()
    if not path.is_relative_to(root):
        raise CheckpointError(f"{name} at {live} is not in that folder")
    return path


def _read(live: str, name: str) -> bytes:
    place = _locate(live, name)
    if isinstance(place, Path):
        return place.read_bytes()
    with urlopen(place, timeout=download.ANSWER_SECONDS) as answer:
        content: bytes = answer.read(MAX_LIST_BYTES + 1)
    if len(content) > MAX_LIST_BYTES:
        raise CheckpointError(f"{place} is longer than {MAX_LIST_BYTES:,} bytes")
    return content


def _without_file(entry: CheckpointEntry) -> CheckpointEntry:
    """The entry of a checkpoint whose folder here is removed; on the Hub it stays."""
    on_hub = entry.address is not None and download.is_web(entry.address)
    return entry if on_hub else replace(entry, address=None)
