"""Joining late: a checkpoint of the shared state, and every round since then applied again."""

import struct

import numpy as np
import torch

from training.sparse import closing, peer
from training.sparse.closing import ClosingError, Swarm
from training.sparse.layout import Layout
from training.sparse.shared import SharedState
from training.sparse.store import FolderStore, Store, StoreError

_MAGIC = b"TTS2"
_HEADER = struct.Struct("<4sQQ")  # round and samples; then the weights in float32
FOLDER = "checkpoints"  # of the checkpoints' names


def follow(swarm: Swarm, state: SharedState) -> SharedState:
    """Apply all rounds that have been closed since a state.

    Raises:
        ClosingError: a list or a payload cannot be had or does not hold.
    """
    while (found := closing.find(swarm, state.round)) is not None:
        state = closing.apply(swarm, found, state)
    return state


def publish(store: Store, state: SharedState) -> str:
    """Publish a checkpoint under the number of its round; gives the file's SHA-256."""
    content = _HEADER.pack(_MAGIC, state.round, state.samples)
    content += state.weights.numpy().astype("<f4", copy=False).tobytes()
    sha256 = store.put(content)
    store.point(f"{FOLDER}/{state.round:09d}", sha256)
    return sha256


def join(swarm: Swarm) -> SharedState:
    """The newest state of a run, from its newest checkpoint and the rounds since then.

    A checkpoint is believed when the list of the round before it names its digest, or, of round
    0, when the first round begins with it.

    Raises:
        ClosingError: there is no checkpoint, or it is not the run's, or a round does not hold.
    """
    try:
        content = swarm.store.get(*newest(swarm))
    except StoreError as error:
        raise ClosingError(f"the checkpoint: {error}") from error
    state = _parse(content, swarm.layout)
    if state.round:
        before = closing.find(swarm, state.round - 1)
        if before is None or before.end != state.digest():
            raise ClosingError(f"no list vouches for the checkpoint of round {state.round}")
    return follow(swarm, state)


def newest(swarm: Swarm) -> tuple[str, int]:
    """The newest checkpoint's SHA-256, and its bytes.

    Raises:
        ClosingError: there is none. StoreError: the store cannot say.
    """
    names = swarm.store.names(FOLDER)
    sha256 = swarm.store.find(names[-1]) if names else None
    if sha256 is None:
        raise ClosingError("there is no checkpoint")
    return sha256, _file_bytes(swarm.layout)


def forget_before(store: FolderStore, kept: int) -> None:
    """Remove all but the newest checkpoints, and the rounds before the oldest that is kept.

    The list of the round just before it stays: it vouches for that checkpoint.
    """
    names = store.names(FOLDER)
    for name in names[:-kept]:
        store.forget(name)
    oldest = _number_of(names[-kept:][0]) if names else 0
    for name in store.names(closing.FOLDER):
        number = _number_of(name)
        if number < oldest - 1:
            for one in [*peer.names_of(store, number), name]:
                store.forget(one)


def _number_of(name: str) -> int:
    return int(name.rpartition("/")[2])


def _file_bytes(layout: Layout) -> int:
    return _HEADER.size + 4 * layout.elements


def _parse(content: bytes, layout: Layout) -> SharedState:
    if len(content) != _file_bytes(layout):
        raise ClosingError("the checkpoint is of another model")
    magic, number, samples = _HEADER.unpack_from(content)
    if magic != _MAGIC:
        raise ClosingError("the checkpoint is none")
    weights = torch.from_numpy(np.frombuffer(content, "<f4", offset=_HEADER.size).copy())
    if not bool(weights.isfinite().all()):
        raise ClosingError("the checkpoint holds values that are not finite")
    return SharedState(weights, number, samples)
