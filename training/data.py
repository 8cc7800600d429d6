"""The stream of training batches: shards read as they come, in an order of the peer's own.

Each peer reads the shards in another order and draws from a shuffle buffer; both follow from the
SHA-256 of its key, so that a restarted peer, on any machine, continues where it was.
"""

import hashlib
import os
import weakref
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from datasets import IterableDataset, load_dataset

from calculator.errors import InputError
from training.captions import load_tokenizer
from training.recipes import Recipe
from training.shapes import draw_sample
from training.shards import kept_rows, list_shards, unpack_codes

if TYPE_CHECKING:
    from training.codes import CodeModel

Batch = dict[str, torch.Tensor]
Rows = Generator[dict[str, Any], None, None]
SHAPES_COUNT = 20_480  # pictures of the shapes that are encoded where a run names no folder
FINGERPRINT_SHAPES = 16


def peer_seed(peer_key: bytes) -> int:
    """The seed of a peer's order, the same in every process."""
    return int.from_bytes(hashlib.sha256(peer_key).digest()[:4], "big")


class SampleStream(Iterator[Batch]):
    """Endless batches of a data set, epoch after epoch.

    A batch is `text_ids`, int64 [B, T], and `image_codes`, int64 [B, I]. `state_dict` and
    `load_state_dict` continue the stream exactly, the shuffle buffer included.
    """

    def __init__(
        self, recipe: Recipe, peer_key: bytes, dataset: IterableDataset, batch_size: int
    ) -> None:
        if batch_size < 1:
            raise InputError("batch_size", batch_size, "must be at least 1")
        self.recipe = recipe
        self.batch_size = batch_size
        self.epoch = 0
        self._drawn_in_epoch = 0
        self._tokenizer = load_tokenizer(recipe)
        self._random = np.random.default_rng(peer_seed(peer_key))
        kept = dataset.filter(
            kept_rows,
            batched=True,
            batch_size=recipe.data.preprocessing_batch,
            fn_kwargs={"settings": recipe.data},
        )
        # Only the order of the shards: the buffer is ours, to be saved, and the library's reading
        # of several shards at once starts threads, which must not live when peers fork.
        self._dataset = kept.shuffle(
            seed=peer_seed(peer_key), buffer_size=1, max_buffer_input_shards=1
        )
        self._rows: Rows | None = None
        self._buffer: list[dict[str, Any]] = []

    def __next__(self) -> Batch:
        """The next batch."""
        rows = [self._draw() for _ in range(self.batch_size)]
        return {
            "text_ids": self._tokenizer([row["caption"] for row in rows]),
            "image_codes": torch.stack([self._codes(row) for row in rows]),
        }

    def state_dict(self) -> dict[str, Any]:
        """Where the stream is; the rows in the shuffle buffer are part of it."""
        return {
            "epoch": self.epoch,
            "drawn_in_epoch": self._drawn_in_epoch,
            "random": self._random.bit_generator.state,
            "dataset": self._dataset.state_dict() if self._rows is not None else None,
            "buffer": list(self._buffer),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a state of a stream of the same data set."""
        self.epoch = state["epoch"]
        self._drawn_in_epoch = state["drawn_in_epoch"]
        self._random.bit_generator.state = state["random"]
        self._buffer = list(state["buffer"])
        self._dataset.set_epoch(self.epoch)
        self._rows = None
        if state["dataset"] is not None:
            self._dataset.load_state_dict(state["dataset"])
            self._open()

    def _draw(self) -> dict[str, Any]:
        """Take a random row out of the shuffle buffer, which the next rows fill up again."""
        rows = self._rows or self._open()
        while len(self._buffer) < self.recipe.data.shuffle_buffer:
            row = next(rows, None)
            if row is None:
                break
            self._buffer.append(row)
        if not self._buffer:
            self._start_epoch()
            return self._draw()
        self._drawn_in_epoch += 1
        place = int(self._random.integers(len(self._buffer)))
        self._buffer[place], self._buffer[-1] = self._buffer[-1], self._buffer[place]
        return self._buffer.pop()

    def _open(self) -> Rows:
        """Start to read; what is open is closed before the interpreter takes its modules apart."""
        rows: Rows = iter(self._dataset)
        weakref.finalize(self, rows.close)
        self._rows = rows
        return rows

    def _start_epoch(self) -> None:
        if self._drawn_in_epoch == 0:
            raise InputError("source", "the data set", "has no picture that the filters keep")
        self.epoch += 1
        self._drawn_in_epoch = 0
        self._dataset.set_epoch(self.epoch)
        self._rows = None

    def _codes(self, row: dict[str, Any]) -> torch.Tensor:
        model = self.recipe.model
        codes = unpack_codes(row["code"])
        if len(codes) != model.image_side**2:
            rule = f"must have {model.image_side**2} codes a picture"
            raise InputError("source", len(codes), rule)
        if codes.min() < 0 or codes.max() >= model.image_vocabulary_size:
            rule = f"must have codes from 0 to {model.image_vocabulary_size - 1}"
            raise InputError("source", int(codes.max()), rule)
        return torch.from_numpy(codes)


def stream(
    recipe: Recipe,
    peer_key: bytes,
    source: str | Path | None = None,
    batch_size: int | None = None,
    report: Callable[[int], None] | None = None,
) -> SampleStream:
    """The training batches of one peer.

    Args:
        recipe: names the data, the filters and the shapes of a batch.
        peer_key: what the peer's order follows from, for example its public key.
        source: folder of shards or data set on the Hub; None takes the recipe's.
        batch_size: sequences B in a batch; None takes the recipe's micro-batch.
        report: told how many per cent are done where the data are made on this machine first.

    Raises:
        InputError: no source is named, or it cannot be read.
    """
    named = source or recipe.data.source
    if named is None:
        raise InputError("source", named, f"must be given: recipe {recipe.name} names none")
    if str(named) == "shapes":
        named = prepare_shapes(recipe, report=report)
    size = recipe.swarm.micro_batch_size if batch_size is None else batch_size
    return SampleStream(recipe, peer_key, load_shards(str(named)), size)


def load_shards(source: str) -> IterableDataset:
    """Stream a folder of shards or a data set on the Hub.

    Raises:
        InputError: it is neither.
    """
    try:
        if Path(source).is_dir():
            files = [str(path) for path in list_shards(Path(source))]
            return load_dataset("parquet", data_files=files, split="train", streaming=True)
        return load_dataset(source, split="train", streaming=True)
    except (IndexError, OSError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else "no shards"
        rule = f"must be a folder of shards or a data set on the Hub ({reason})"
        raise InputError("source", source, rule) from error


def _fingerprint(codes: "CodeModel", pixels: int) -> str:
    """A short hash of the first shapes: their captions, pixels and codes."""
    samples = [draw_sample(index, pixels) for index in range(FINGERPRINT_SHAPES)]
    images = [sample.image for sample in samples]
    digest = hashlib.sha256(" ".join(sample.caption for sample in samples).encode())
    for image in images:
        digest.update(image.tobytes())
    digest.update(codes.encode(images, pixels).to(torch.int16).numpy().tobytes())
    return digest.hexdigest()[:8]


def prepare_shapes(
    recipe: Recipe,
    count: int = SHAPES_COUNT,
    quiet: bool = True,
    report: Callable[[int], None] | None = None,
) -> Path:
    """The folder of the encoded shapes in the user's cache, made at the first call.

    Its name tells how the shapes look and are encoded: another version of either makes another
    folder, so that nobody trains on what the others no longer have. Shards are written as a whole
    and are the same whoever makes them: processes that do it at once do not disturb each other.
    """
    # diffusers takes seconds to import: only those who encode wait for it.
    from training.codes import CodeModel
    from training.encode import encode

    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    settings = recipe.data
    codes = CodeModel.load(settings.codes or "shapes")
    name = f"shapes-{count}-{_fingerprint(codes, settings.image_pixels)}"
    folder = cache / "training-transformers-together" / name

    def tell(done: int) -> None:
        if report is not None:
            report(100 * done // count)

    encode("shapes", folder, settings, codes, count, quiet=quiet, report=tell)
    return folder
