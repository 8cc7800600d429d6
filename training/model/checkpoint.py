"""Published checkpoints: the monitor writes them beside the live data, a volunteer reads them.

A checkpoint is a folder as `save_pretrained` makes it, with the weights in safetensors. The
list with their sums, `checkpoints.json`, is written last, so that what it names is there. An
address in it is relative to the live data, or one on the Hub once the checkpoint is there too.

Reading one runs no code but ours: of ``config.json`` only the model's shape is taken (see
`configuration.parse`), and the weights must be those of that shape, all of them and no others.
"""

import hashlib
import json
import math
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urljoin

import torch
from huggingface_hub import hf_hub_download
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from transformers import PreTrainedConfig, PreTrainedModel

from calculator.errors import InputError
from training.model.build import make_model, parse_config
from training.run import atomic, download
from training.run.live import CheckpointEntry, LiveFolder
from training.run.status import first_line

KEPT = 3  # a newcomer needs the newest; two more are for whoever is downloading right now
LARGEST_FILE = 2**50  # bytes: weights are in one file
MAX_LIST_BYTES = 2**20  # a list of checkpoints or a configuration; what is longer is neither
HEADER_BYTES = 2**20  # of a file of weights, beside the weights themselves

WEIGHTS, CONFIG, STATES = "model.safetensors", "config.json", "optimizer.safetensors"
DRAWING = "drawing.safetensors"  # see pictures/in_page.py

Published = tuple[int, PreTrainedModel]  # the step and the model


class CheckpointError(RuntimeError):
    """A published checkpoint cannot be used; the message says why."""


class NothingPublishedError(CheckpointError):
    """The run has published no checkpoint yet."""


def publish(
    live: LiveFolder,
    model: PreTrainedModel,
    step: int,
    loss: float | None,
    time: str,
    states: Sequence[torch.Tensor] = (),
    drawing: bytes | None = None,
) -> Path:
    """Save the weights under `checkpoints/`, list them, and remove old ones.

    Gives the checkpoint's folder.

    Args:
        states: the optimizer's, in its own order; without them a volunteer begins with new ones.
        drawing: the model as the live page draws with it, if it is small enough.
    """
    folder = live.path / "checkpoints" / f"{step:06d}"
    temporary = folder.with_name(f".{folder.name}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    model.save_pretrained(temporary, max_shard_size=LARGEST_FILE)
    # safetensors writes for the owner alone; a web server of another account is to read it too.
    (temporary / WEIGHTS).chmod((temporary / CONFIG).stat().st_mode)
    if states:
        named = {f"{place:05d}": state.contiguous() for place, state in enumerate(states)}
        save_file(named, temporary / STATES)
        (temporary / STATES).chmod((temporary / CONFIG).stat().st_mode)
    if drawing is not None:
        (temporary / DRAWING).write_bytes(drawing)
    shutil.rmtree(folder, ignore_errors=True)
    temporary.rename(folder)
    entry = _entry_of(live, folder, CheckpointEntry(step, loss, time, None, ""))
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


def _entry_of(live: LiveFolder, folder: Path, entry: CheckpointEntry) -> CheckpointEntry:
    """The entry with the addresses and sums of the files that are in a checkpoint's folder."""

    def address(name: str) -> str:
        return (folder / name).relative_to(live.path).as_posix()

    entry = replace(
        entry,
        address=address(WEIGHTS),
        sha256=atomic.sha256(folder / WEIGHTS),
        config_sha256=atomic.sha256(folder / CONFIG),
    )
    if (folder / STATES).exists():
        digest = atomic.sha256(folder / STATES)
        entry = replace(entry, optimizer=address(STATES), optimizer_sha256=digest)
    if (folder / DRAWING).exists():
        entry = replace(
            entry,
            drawing=address(DRAWING),
            drawing_sha256=atomic.sha256(folder / DRAWING),
            drawing_bytes=(folder / DRAWING).stat().st_size,
        )
    return entry


def fetch(
    live: str,
    folder: Path | None = None,
    report: download.Report | None = None,
    config: PreTrainedConfig | None = None,
) -> Published:
    """Get the newest published checkpoint from an address or a folder: its step and the model.

    Args:
        folder: where a download that breaks off is kept and goes on the next time.
        report: told how many per cent have come.
        config: the run's own, which its members know; None: the one published with the weights.

    Raises:
        CheckpointError: when there is none, its sum differs from the list's, or it is no model.
        OSError: when the place does not answer.
    """
    newest = find_newest(live)
    shape = _fetch_config(live, newest) if config is None else config
    with (
        tempfile.TemporaryDirectory() as temporary,
        _weights(live, newest, folder or Path(temporary), report, _file_bytes(shape)) as weights,
    ):
        return newest.step, read(weights, shape)


def fetch_states(
    live: str, step: int, like: Sequence[torch.Tensor], folder: Path | None = None
) -> list[torch.Tensor] | None:
    """Get the optimizer's states beside the newest checkpoint; None where there are none.

    Args:
        step: that the checkpoint must be of.
        like: states of the same run: shapes and types must be theirs.
        folder: where a download that breaks off is kept.

    Raises:
        CheckpointError: its sum differs from the list's, or they are another optimizer's.
        OSError: when the place does not answer.
    """
    newest = find_newest(live)
    if newest.step != step or not newest.optimizer or not newest.optimizer_sha256:
        return None
    entry = replace(newest, address=newest.optimizer, sha256=newest.optimizer_sha256)
    most = sum(state.nbytes for state in like) + HEADER_BYTES
    with (
        tempfile.TemporaryDirectory() as temporary,
        _weights(live, entry, folder or Path(temporary), None, most) as path,
    ):
        try:
            named = load_file(path)
        except SafetensorError as error:
            raise CheckpointError(f"{newest.optimizer} holds no optimizer's states") from error
    states = [named[name] for name in sorted(named)]
    wanted = [(state.shape, state.dtype) for state in like]
    if [(state.shape, state.dtype) for state in states] != wanted:
        raise CheckpointError(f"{newest.optimizer} holds another optimizer's states")
    if not all(bool(s.isfinite().all()) for s in states if s.is_floating_point()):
        raise CheckpointError(f"{newest.optimizer} holds states that are not finite")
    return states


def load(folder: Path | str) -> PreTrainedModel:
    """Load a checkpoint's folder, or one of the Hub's by name.

    Raises:
        CheckpointError: it is not a checkpoint of this model.
        OSError: it is not there.
    """
    place = Path(folder)
    if place.is_dir():
        return load_files(place / WEIGHTS, place / CONFIG)
    try:
        config, weights = (hf_hub_download(str(folder), name) for name in (CONFIG, WEIGHTS))
    except ValueError as error:  # a name that the Hub cannot have
        raise CheckpointError(f"{folder} is no model: {first_line(error)}") from error
    return load_files(Path(weights), Path(config))


def load_files(weights: Path, config: Path) -> PreTrainedModel:
    """Load the two files of a checkpoint; raises what `load` raises."""
    return read(weights, _parse_config(str(config), _read(config)))


def read(weights: Path, config: PreTrainedConfig) -> PreTrainedModel:
    """The model of that shape with the weights of a file, which must be all of its own.

    Raises:
        CheckpointError: names, shapes or types are others.
        OSError: the file is not there.
    """
    try:
        with safe_open(weights, framework="pt") as file:
            found = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
            shapes = {name: tuple(part.get_shape()) for name, part in found.items()}
            kinds = {part.get_dtype() for part in found.values()}
        if getattr(config, "num_hidden_layers", 0) > len(shapes):  # before so many are built
            raise CheckpointError(f"{weights} has fewer tensors than the model has layers")
        with torch.device("meta"):
            model = make_model(config)
        # parameters that are the same as another one, and that one's name: written once
        tied = dict(getattr(model, "all_tied_weights_keys", None) or {})
        wanted = {
            name: tuple(tensor.shape)
            for name, tensor in model.state_dict().items()
            if name not in tied
        }
        for name in sorted(wanted.keys() | shapes.keys()):
            if wanted.get(name) != shapes.get(name):
                rule = f"{shapes.get(name)}, but the model's is {wanted.get(name)}"
                raise CheckpointError(f"{weights} is no such model: {name} is {rule}")
        if not kinds <= {"F32", "F16", "BF16"}:
            raise CheckpointError(f"{weights} has tensors of {', '.join(sorted(kinds))}")
        state = {name: tensor.float() for name, tensor in load_file(weights).items()}
        state |= {name: state[source] for name, source in tied.items()}
    except SafetensorError as error:
        raise CheckpointError(f"{weights} is no model: {first_line(error)}") from error
    if tied or list(model.buffers()):  # buffers that no file has, such as angles of positions
        model = make_model(config)
    model.load_state_dict(state, strict=True, assign=not tied)
    return model


def _file_bytes(config: PreTrainedConfig) -> int:
    """The largest file that the weights of a model of that shape can be in, in bytes."""
    with torch.device("meta"):
        model = make_model(config)
    return 4 * sum(math.prod(part.shape) for part in model.parameters()) + HEADER_BYTES


def _fetch_config(live: str, entry: CheckpointEntry) -> PreTrainedConfig:
    name = (entry.address or "").removesuffix(WEIGHTS) + CONFIG
    content = _read(_locate(live, name))
    if entry.config_sha256 not in (None, hashlib.sha256(content).hexdigest()):
        raise CheckpointError(f"{name} at {live} is not what the list says")
    return _parse_config(name, content)


def _parse_config(name: str, content: bytes) -> PreTrainedConfig:
    try:
        return parse_config(content)
    except InputError as error:
        raise CheckpointError(f"{name} is no configuration of this model: {error}") from error


def find_newest(live: str) -> CheckpointEntry:
    """The newest checkpoint in a run's list that can be had.

    Raises:
        CheckpointError: when there is none, or the list is none.
        OSError: when the place does not answer.
    """
    try:
        content = _read(_locate(live, "checkpoints.json"))
        listed = [CheckpointEntry.read(one) for one in json.loads(content)]
    except FileNotFoundError as error:
        raise NothingPublishedError(f"no checkpoint is published at {live} yet") from error
    except HTTPError as error:
        if error.code != HTTPStatus.NOT_FOUND:
            raise
        raise NothingPublishedError(f"no checkpoint is published at {live} yet") from error
    except (RecursionError, TypeError, ValueError) as error:
        raise CheckpointError(f"checkpoints.json at {live} is no list of checkpoints") from error
    entries = [entry for entry in listed if entry.address]
    if not entries:
        raise NothingPublishedError(f"no checkpoint is published at {live} yet")
    return entries[-1]


@contextmanager
def _weights(
    live: str, entry: CheckpointEntry, folder: Path, report: download.Report | None, largest: int
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
        try:
            download.download(address, path, entry.sha256, report, largest)
        except (download.TooLongError, download.WrongSumError) as error:
            raise CheckpointError(str(error)) from error
        yield path
    finally:
        path.unlink(missing_ok=True)


def _locate(live: str, name: str) -> str | Path:
    """Location of a file of the live data: an http(s) address, or a path in the live folder."""
    if download.is_web(live) or download.is_web(name):
        try:
            address = urljoin(live.rstrip("/") + "/", name) if download.is_web(live) else name
        except ValueError:
            address = ""
        if not download.is_web(address):
            raise CheckpointError(f"{name} at {live} is no http(s) address")
        return address
    try:
        root = Path(live).resolve()
        path = (root / name).resolve()
    except ValueError as error:  # such as a zero byte
        raise CheckpointError(f"{name!r} at {live} is no file") from error
    if not path.is_relative_to(root):
        raise CheckpointError(f"{name} at {live} is not in that folder")
    return path


def _read(place: str | Path) -> bytes:
    try:
        return download.read(place, MAX_LIST_BYTES)
    except download.TooLongError as error:
        raise CheckpointError(str(error)) from error


def _without_file(entry: CheckpointEntry) -> CheckpointEntry:
    """The entry of a checkpoint whose folder here is removed; on the Hub it stays."""
    on_hub = entry.address is not None and download.is_web(entry.address)
    entry = replace(entry, optimizer=None, drawing=None)
    return entry if on_hub else replace(entry, address=None)
