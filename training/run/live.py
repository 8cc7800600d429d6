"""The live data of a run: a folder of small files that the monitor writes and the site reads.

    run.json          what this run is
    progress.jsonl    append-only, a line a global step
    peers.json        the contributors
    checkpoints.json  the published checkpoints
    samples.json      the fixed prompts and what was made of them: pictures in samples/, or texts
    feed.xml          an Atom feed: start, checkpoints, end

A large peers.json or progress.jsonl also lies there compressed, as NAME.gz, which run.json says.
The twin of progress.jsonl follows at a distance, and has what it has from the first line on.

Any static host can carry the folder; every address in it is relative to it, but for those of
checkpoints that are on the Hub.
"""

import gzip
import math
import re
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from training.run import atomic, feed, tables

VERSION = 1


class PeerState(StrEnum):
    """Current activity of a volunteer's device."""

    TRAINING = "training"
    SYNCING = "syncing"
    HELPING = "helping"  # averages for others and computes nothing
    LEFT = "left"


@dataclass(frozen=True)
class RunCard:
    """A run's description in `run.json`; `finished` is the time of its end or None.

    `schedule` has the sizes of the run's schedule, and `corners`, the steps between which the
    learning rate is a straight line, with its value there.
    `notice` is a sentence for whoever looks at the run, such as that nobody can be called.
    `compressed` names the files that also lie there as NAME.gz.
    `tab` says where a browser's tab can take part, and with how much memory (`monitor.tab`).
    """

    name: str
    title: str
    recipe: str
    model: dict[str, Any]
    parameters: int
    schedule: dict[str, Any]
    start: str
    join: str
    links: dict[str, str] = field(default_factory=dict)
    finished: str | None = None
    notice: str = ""
    compressed: list[str] = field(default_factory=list)
    tab: dict[str, Any] | None = None
    version: int = VERSION


@dataclass(frozen=True)
class ProgressLine:
    """One global step as in `progress.jsonl`.

    Attributes:
        step: the number of the step, from 1.
        time: ISO 8601, UTC.
        loss: mean over the micro-batches of all volunteers; None where nobody reported one.
        samples: training sequences that this step was made of.
        samples_per_second: of all volunteers together, by the clock, since the step before; 0 where
            that was not seen.
        training, syncing, left: volunteers by what they are doing; `left` counts since the start.
        bytes_sent, bytes_received: gradients, weights and states that the volunteers exchanged
            for this step; with local steps, without the checkpoints that newcomers download.
        rejected: reports and micro-batches not counted since the line before, such as those
            whose loss was not finite.
    """

    step: int
    time: str
    loss: float | None
    samples: int
    samples_per_second: float
    training: int
    syncing: int
    left: int
    bytes_sent: int
    bytes_received: int
    rejected: int


@dataclass(frozen=True)
class Contributor:
    """A volunteer as in `peers.json`; times in ISO 8601, UTC.

    Attributes:
        id: the beginning of the SHA-256 of the volunteer's identity.
        samples: training sequences computed, as the others saw them arrive.
        seconds: time in the run, as the monitor heard it.
        steps: global steps to which the volunteer contributed.
        milestones: cumulative seconds from the decision to join to the first gradient that the
            others accepted, by `training.run.milestones.Milestone`; those that were reached.
        bytes_sent, bytes_received: exchanged for the steps that the monitor saw, as the volunteer
            reports; None in runs that were recorded before this was noted.
    """

    id: str
    name: str
    samples: int
    seconds: float
    first_seen: str
    last_seen: str
    state: str
    steps: int
    milestones: dict[str, float] = field(default_factory=dict)
    bytes_sent: int | None = None
    bytes_received: int | None = None


@dataclass(frozen=True)
class CheckpointEntry:
    """A published checkpoint.

    Attributes:
        address: of the weights, relative to the live data, or an http(s) one; None once the file is
            removed.
        sha256: of the weights, in hexadecimal.
        config_sha256: of the ``config.json`` beside them; None in lists of before it was noted.
        optimizer: address of the optimizer's states, None where there are none.
        optimizer_sha256: of these states.
        drawing: address of the model as the live page draws with it (`pictures.in_page`); None if
            it is too large for a page.
        drawing_sha256, drawing_bytes: of that file.
    """

    step: int
    loss: float | None
    time: str
    address: str | None
    sha256: str
    config_sha256: str | None = None
    optimizer: str | None = None
    optimizer_sha256: str | None = None
    drawing: str | None = None
    drawing_sha256: str | None = None
    drawing_bytes: int | None = None

    @classmethod
    def read(cls, value: object) -> "CheckpointEntry":
        """The entry that a value of JSON stands for.

        Raises:
            TypeError: it is no object.
            ValueError: a field is missing or of another type, or a sum is none.
        """
        if not isinstance(value, dict):
            raise TypeError("an entry must be an object")
        known = {key: value[key] for key in cls.__annotations__ if key in value}
        entry: CheckpointEntry = tables.read(cls, known)
        for name in ("sha256", "config_sha256", "optimizer_sha256", "drawing_sha256"):
            if getattr(entry, name) is not None and not _SHA256.fullmatch(getattr(entry, name)):
                raise ValueError(f"{name} is no SHA-256")
        return entry


_SHA256 = re.compile("[0-9a-f]{64}")


class LiveFolder:
    """Writes the live data of one run; a new process continues where the last one stopped."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lock = threading.Lock()  # of the list of checkpoints, which two threads change
        self._feed_lock = threading.Lock()  # both threads write it
        self.progress = atomic.AppendOnlyLines(path / "progress.jsonl")
        self._covered = 0  # bytes of progress.jsonl that are in its twin

    def start(self, card: RunCard) -> None:
        """Write `run.json`; a run that was started before keeps its time of start."""
        before = atomic.read_json(self.path / "run.json")
        if before is not None:
            card = replace(card, start=before["start"], compressed=before.get("compressed", []))
        atomic.write_json(self.path / "run.json", asdict(card))
        self.write_feed()
        self._compress_progress(ahead=SMALLEST_BYTES)

    def finish(self, time: str) -> None:
        """Note in `run.json` that the run is over: the page becomes an archive."""
        if self._covered:
            self._compress_progress(ahead=0)
        card = atomic.read_json(self.path / "run.json")
        atomic.write_json(self.path / "run.json", card | {"finished": time})
        self.write_feed()

    def is_finished(self) -> bool:
        """True once the run is over."""
        return bool((atomic.read_json(self.path / "run.json") or {}).get("finished"))

    def notify(self, notice: str) -> None:
        """Put a sentence into `run.json`, or take it out with an empty one."""
        card = atomic.read_json(self.path / "run.json")
        atomic.write_json(self.path / "run.json", card | {"notice": notice})

    def last_step(self) -> int:
        """The newest step in `progress.jsonl`, 0 before the first."""
        lines = self.progress.read()
        return int(lines[-1]["step"]) if lines else 0

    def append(self, line: ProgressLine) -> None:
        """Add a step to `progress.jsonl`; a loss that is not finite is written as null."""
        loss = math.nan if line.loss is None else round(line.loss, 6)
        self.progress.append(asdict(line) | {"loss": loss if math.isfinite(loss) else None})
        self._compress_progress(ahead=SMALLEST_BYTES)

    def write_peers(self, contributors: list[Contributor]) -> None:
        """Replace `peers.json`."""
        path = self.path / "peers.json"
        atomic.write_json(path, [asdict(entry) for entry in contributors])
        if path.stat().st_size >= SMALLEST_BYTES or twin_of(path).exists():
            write_twin(path)
            self._announce(path.name)

    def read_peers(self) -> list[Contributor]:
        """The contributors of `peers.json`."""
        return atomic.read_objects(self.path / "peers.json", lambda entry: Contributor(**entry))

    def _compress_progress(self, ahead: int) -> None:
        """Write the twin of `progress.jsonl` once the file is so many bytes ahead of it."""
        path = self.progress.path
        if path.stat().st_size - self._covered >= ahead:
            self._covered = write_twin(path)
            self._announce(path.name)

    def _announce(self, name: str) -> None:
        """Say in `run.json` that a file has a twin, once the run has a `run.json`."""
        card = atomic.read_json(self.path / "run.json")
        if card is not None and name not in card.get("compressed", []):
            names = sorted([*card.get("compressed", []), name])
            atomic.write_json(self.path / "run.json", card | {"compressed": names})

    def write_checkpoints(self, entries: list[CheckpointEntry]) -> None:
        """Replace `checkpoints.json`."""
        atomic.write_json(self.path / "checkpoints.json", [asdict(entry) for entry in entries])
        self.write_feed()

    def read_checkpoints(self) -> list[CheckpointEntry]:
        """The checkpoints of `checkpoints.json`, oldest first."""
        return atomic.read_objects(self.path / "checkpoints.json", CheckpointEntry.read)

    def write_feed(self) -> None:
        """Replace `feed.xml`, once the run has a `run.json`."""
        with self._feed_lock:
            card = atomic.read_json(self.path / "run.json")
            if card is not None:
                checkpoints = [asdict(entry) for entry in self.read_checkpoints()]
                atomic.write_bytes(self.path / "feed.xml", feed.atom(card, checkpoints))

    def add_samples(
        self,
        step: int,
        time: str,
        prompts: Sequence[str],
        samples: Sequence[Sequence[bytes]] | Sequence[Sequence[str]],
    ) -> None:
        """Add what a checkpoint made of the prompts to `samples.json`, a row a prompt.

        Texts are in the list itself; PNGs are stored under `samples/`, and named there. A
        checkpoint that is drawn again replaces its samples.
        """
        rows: list[list[str]] = []
        for number, row in enumerate(samples):
            rows.append([])
            for column, sample in enumerate(row):
                text = sample if isinstance(sample, str) else ""
                if isinstance(sample, bytes):
                    text = f"samples/{step:06d}-{number:02d}-{column:02d}.png"
                    atomic.write_bytes(self.path / text, sample)
                rows[-1].append(text)
        kind = "texts" if any(isinstance(one, str) for row in samples for one in row) else "images"
        others = [
            entry for entry in read_samples(self.path)["checkpoints"] if entry["step"] != step
        ]
        entry = {"step": step, "time": time, kind: rows}
        checkpoints = sorted([*others, entry], key=lambda entry: int(entry["step"]))
        content = {"prompts": list(prompts), "checkpoints": checkpoints}
        atomic.write_json(self.path / "samples.json", content)


def read_samples(folder: Path) -> dict[str, Any]:
    """Read `samples.json`: `prompts`, and `checkpoints` with a row of samples a prompt.

    A checkpoint has the names of its `images`, or its `texts`.
    """
    empty: dict[str, Any] = {"prompts": [], "checkpoints": []}
    samples: dict[str, Any] = atomic.read_json(folder / "samples.json") or empty
    return samples


def timestamp(seconds: float) -> str:
    """Seconds since 1970 as ISO 8601 in UTC with milliseconds.

    >>> timestamp(0.25)
    '1970-01-01T00:00:00.250Z'
    """
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


SMALLEST_BYTES = 1 << 16  # of a file that is worth it, and of what a growing one may be ahead
LEVEL = 6  # 9 saves another 6 % of a long progress.jsonl and takes three times as long


def twin_of(plain: Path) -> Path:
    """The path of a file's twin."""
    return plain.with_name(f"{plain.name}.gz")


def write_twin(plain: Path) -> int:
    """Write the twin of what a file holds now; the bytes that it covers.

    It is one gzip member, since browsers refuse a second one in a file.
    """
    content = plain.read_bytes()
    atomic.write_bytes(twin_of(plain), gzip.compress(content, LEVEL, mtime=0))
    return len(content)
