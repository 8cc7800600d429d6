"""The stream of training batches: shards read as they come, in an order of the peer's own.

Each peer reads the shards in another order and draws from a shuffle buffer; both follow from the
SHA-256 of its key, so that a restarted peer, on any machine, continues where it was. Rows and
shards that are broken are left out and counted, and a host that does not answer is waited for.
"""

import hashlib
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch

from calculator.errors import InputError
from training.data.pictures import Pictures
from training.data.reading import Format, Omissions, Sample, ShardError, read_samples
from training.data.sources import DOWN, Source, find_source
from training.data.texts import SENTENCES_COUNT, Texts, write_sentences
from training.run.recipes import OWN_DATA, LanguageSettings, Recipe
from training.run.status import first_line

Batch = dict[str, torch.Tensor]
Result = TypeVar("Result")
# As `python -m training encode shapes --count 20480` writes them.
SHAPES_FOLDER = Path(__file__).parents[1] / "shapes" / "data"
SHAPES_PIXELS = 32
PATIENT_ROWS = 100_000  # read without a sample among them; then the data are of another run
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0  # seconds before a host that is down is asked again


def count(batch: Batch) -> int:
    """Sequences in a batch."""
    return len(next(iter(batch.values())))


def peer_seed(peer_key: bytes) -> int:
    """The seed of a peer's order, the same in every process."""
    return int.from_bytes(hashlib.sha256(peer_key).digest()[:4], "big")


class SampleStream(Iterator[Batch]):
    """Endless batches of a data set, epoch after epoch.

    `state_dict` and `load_state_dict` continue the stream exactly, the shuffle buffer included.

    Attributes:
        epoch: how often all of the data set was read before.
        omitted: what was left out.
        closed: once set, nobody waits for a host any more.
    """

    def __init__(
        self,
        recipe: Recipe,
        peer_key: bytes,
        source: Source,
        batch_size: int,
        say: Callable[[str], None] | None = None,
    ) -> None:
        if batch_size < 1:
            raise InputError("batch_size", batch_size, "must be at least 1")
        self.recipe = recipe
        self.batch_size = batch_size
        self.epoch = 0
        self.omitted = Omissions()
        self.closed = threading.Event()
        self._source, self._say = source, say or (lambda _line: None)
        self._drawn_in_epoch = 0
        self._read_in_vain = 0
        self._format: Format = (
            Texts(recipe)
            if isinstance(recipe.model, LanguageSettings)
            else Pictures(recipe.data, recipe.model)
        )
        self._seed = peer_seed(peer_key)
        self._random = np.random.default_rng(self._seed)
        self._place = (0, 0)  # the shard in the epoch's order, and the row in it, to be read next
        self._samples: Iterator[Sample] | None = None
        self._buffer: list[Sample] = []

    def __next__(self) -> Batch:
        """The next batch."""
        return self._format.batch(self._draw, self._leave_out, self.batch_size)

    def state_dict(self) -> dict[str, Any]:
        """The stream's position, including the samples in the shuffle buffer."""
        return {
            "epoch": self.epoch,
            "drawn_in_epoch": self._drawn_in_epoch,
            "random": self._random.bit_generator.state,
            "place": self._place,
            "buffer": list(self._buffer),
            "rest": self._format.rest,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a state of a stream of the same data set; one of before is left."""
        if "place" not in state:
            return
        self.epoch = state["epoch"]
        self._drawn_in_epoch = state["drawn_in_epoch"]
        self._random.bit_generator.state = state["random"]
        shard, row = state["place"]
        self._place = (shard, row)
        self._buffer = [tuple(sample) for sample in state["buffer"]]
        self._format.rest = list(state.get("rest", ()))
        self._samples = None

    def _draw(self) -> Sample:
        """Take a random sample out of the shuffle buffer, which the next ones fill up again."""
        self._samples = self._samples or self._read_epoch()
        while len(self._buffer) < self.recipe.data.shuffle_buffer:
            sample = next(self._samples, None)
            if sample is None:
                break
            self._buffer.append(sample)
        if not self._buffer:
            self._start_epoch()
            return self._draw()
        self._drawn_in_epoch += 1
        place = int(self._random.integers(len(self._buffer)))
        self._buffer[place], self._buffer[-1] = self._buffer[-1], self._buffer[place]
        return self._buffer.pop()

    def _read_epoch(self) -> Iterator[Sample]:
        """The samples of an epoch from the present place on."""
        names = self._wait_for(self._source.names)
        order = np.random.default_rng((self._seed, self.epoch)).permutation(len(names))
        shard, first_row = self._place
        for number in range(shard, len(order)):
            yield from self._read_shard(names[order[number]], number, first_row)
            first_row = 0
            self._place = (number + 1, 0)

    def _read_shard(self, name: str, number: int, first_row: int) -> Iterator[Sample]:
        try:
            with ExitStack() as stack:
                path = self._wait_for(lambda: stack.enter_context(self._source.take(name)))
                rows = read_samples(path, self._format, self.omitted, first_row)
                for row, sample in rows:
                    self._place = (number, row)
                    self._count(sample)
                    if sample is not None:
                        yield sample
        except ShardError as error:
            self.omitted.shards[str(error)] += 1
            self._say(f"the rest of shard {name} is left out: {error}")

    def _count(self, sample: Sample | None) -> None:
        self._read_in_vain = 0 if sample is not None else self._read_in_vain + 1
        if self._read_in_vain >= PATIENT_ROWS:
            raise self._no_data()

    def _leave_out(self, reason: str) -> None:
        self.omitted.rows[reason] += 1
        self._drawn_in_epoch -= 1

    def _start_epoch(self) -> None:
        if self._drawn_in_epoch <= 0:
            raise self._no_data()
        if self.omitted.rows or self.omitted.shards:
            self._say(f"left out of the data so far: {self.omitted}")
        self.epoch += 1
        self._drawn_in_epoch = 0
        self._place = (0, 0)
        self._samples = None

    def _no_data(self) -> InputError:
        why = self.omitted.commonest
        return InputError("source", "the data set", why or "has nothing that the filters keep")

    def _wait_for(self, ask: Callable[[], Result]) -> Result:
        """A host's answer; while there is none, ask again and again."""
        pause, told = FIRST_PAUSE, False
        while True:
            try:
                return ask()
            except DOWN as error:
                if self.closed.is_set():
                    raise
                if not told:
                    self._say(f"the data do not come ({first_line(error)}): waiting for their host")
                    told = True
                self.closed.wait(pause)
                pause = min(2 * pause, LONGEST_PAUSE)


def stream(
    recipe: Recipe,
    peer_key: bytes,
    source: str | Path | None = None,
    batch_size: int | None = None,
    say: Callable[[str], None] | None = None,
) -> SampleStream:
    """The training batches of one peer.

    Args:
        recipe: names the data, the filters and the shapes of a batch.
        peer_key: what the peer's order follows from, for example its public key.
        source: folder of shards or data set on the Hub; None takes the recipe's.
        batch_size: sequences B in a batch; None takes the recipe's micro-batch.
        say: told in plain words what is waited for, and what was left out.

    Raises:
        InputError: no source is named, or it is none.
    """
    named = source or recipe.data.source
    if named is None:
        raise InputError("source", named, f"must be given: recipe {recipe.name} names none")
    if str(named) in OWN_DATA:
        named = prepare(recipe)
    size = recipe.swarm.micro_batch_size if batch_size is None else batch_size
    found = find_source(str(named))
    with suppress(*DOWN):  # a name that is none is told now, a host that is down waited for later
        found.names()
    return SampleStream(recipe, peer_key, found, size, say)


def prepare(recipe: Recipe) -> Path:
    """The folder of a recipe's own data: the shapes come with us, texts go to the user's cache.

    Raises:
        InputError: the recipe reads pictures of another size, or has another VQ-GAN.
    """
    data = recipe.data
    if not isinstance(recipe.model, LanguageSettings):
        if (data.codes, data.image_pixels) != ("shapes", SHAPES_PIXELS):
            rule = (
                f"has the codes `shapes` of {SHAPES_PIXELS} pixels, but the recipe has "
                f"{data.codes} of {data.image_pixels}: encode them with `python -m training encode "
                "shapes`"
            )
            raise InputError("source", "shapes", rule)
        return SHAPES_FOLDER
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    name = f"grammar-{SENTENCES_COUNT}-{data.text_column}"
    folder = cache / "training-transformers-together" / name
    write_sentences(folder, data.text_column)
    return folder
