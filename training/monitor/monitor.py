"""The part that every run's monitor shares: live data, checkpoints, the end of a run.

How volunteers exchange what they learn is the part that a run's recipe chooses: see `averaging`
and `rounds`.
"""

import abc
import contextlib
import logging
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from training.model import checkpoint
from training.model.build import build_model
from training.monitor import publish
from training.network.connection import Endpoint
from training.pictures import in_page, sampling
from training.run import atomic
from training.run import status as status_file
from training.run.live import LiveFolder, ProgressLine, RunCard, timestamp
from training.run.recipes import corners
from training.run.runfile import RunFile

logger = logging.getLogger(__name__)

FIRST_STEP_SECONDS = 180.0  # from the first report: a run whose time is limited ends without steps
UPLOAD_SECONDS = 300.0  # at the end of a run, for the last checkpoint


@dataclass(frozen=True)
class MonitorOptions:
    """Options of the organizers.

    Attributes:
        folder: where identity, books and address book are kept.
        live: the folder of the live data, to be served by any static host.
        source: path or address of the run file, as volunteers are to give it.
        minutes: end the run so long after its first step; None: with its schedule.
        sequences: end the run after so many; None: with its schedule.
        authority_folder: of the run's authority, if it is on this machine; else the monitor needs
            a token as volunteers do.
    """

    folder: Path
    live: Path
    source: str
    endpoint: Endpoint
    minutes: float | None = None
    sequences: int | None = None
    authority_folder: Path | None = None


def say(sentence: str) -> None:
    """Write a sentence to the terminal at once, or to a log on a disk that has no room for it."""
    with contextlib.suppress(OSError):
        print(sentence, flush=True)


@contextlib.contextmanager
def going_on(what: str) -> Iterator[None]:
    """Note a failure and go on: a monitor that stops at the first one is no use."""
    try:
        yield
    except Exception:
        logger.exception("%s failed; continuing", what)


class Monitor(abc.ABC):
    """Looks at the run now and then, and writes what it sees.

    Attributes:
        model: in which the newest weights are published.
        pause: seconds between two looks.
        step, samples: the run's so far, as they are written.
        is_stuck: this process must end and another one begin.
    """

    def __init__(self, run: RunFile, options: MonitorOptions) -> None:
        self.run, self.options, self.recipe = run, options, run.get_recipe()
        self.model = build_model(self.recipe)
        self.model.train(mode=False)
        self.live = LiveFolder(options.live)
        self.pause, self.is_stuck = self.recipe.swarm.poll_seconds, False
        self.step = self.live.last_step()
        self.samples = sum(line["samples"] for line in self.live.progress.read())
        self.uploader: publish.Uploader | None = None
        self._begun_path = options.folder / "begun.json"
        begun = atomic.read_json(self._begun_path)
        self._begun: dict[str, float] = begun if isinstance(begun, dict) else {}
        self._last_line: ProgressLine | None = None
        self._unwritten: list[ProgressLine] = []
        self._checkpoint_step = max((e.step for e in self.live.read_checkpoints()), default=0)
        self._background = ThreadPoolExecutor(max_workers=1)
        self._job: Future[None] | None = None

    @abc.abstractmethod
    def introduce(self) -> None:
        """Say how others get here."""

    @abc.abstractmethod
    def look(self) -> None:
        """See once what the volunteers did, and write what is new."""

    @abc.abstractmethod
    def _take_weights(self) -> tuple[int, Sequence[torch.Tensor]]:
        """Bring the newest weights into the model: their step, and the optimizer's states."""

    @abc.abstractmethod
    def _hear_last(self, stop: threading.Event) -> None:
        """Hear the volunteers' last words, before the last checkpoint."""

    @property
    def is_over(self) -> bool:
        """True if the schedule has ended, or the given time or number of sequences."""
        if self.step >= self.recipe.schedule.total_steps:
            return True
        if self.options.sequences is not None and self.samples >= self.options.sequences:
            return True
        if self.options.minutes is None or not self._begun:
            return False
        since = self._begun.get("steps") or self._begun["reports"] + FIRST_STEP_SECONDS
        return time.time() - since > 60 * self.options.minutes

    def finish(self, stop: threading.Event) -> None:
        """End the run: the last reports, a last checkpoint, and the page becomes an archive."""
        self._hear_last(stop)
        self._write_lines()
        if self._job is not None:
            self._job.result()
        if self.step > self._checkpoint_step:
            self._make_checkpoint()
        if self.uploader is not None and not self.uploader.finish(UPLOAD_SECONDS):
            print("the last checkpoint is not on the Hub: start again to upload it", flush=True)
        self.live.finish(timestamp(time.time()))

    def close(self) -> None:
        """Begin nothing new."""
        self._background.shutdown(wait=False, cancel_futures=True)
        if self.uploader is not None:
            self.uploader.close()

    def open_page(self, schedule: dict[str, Any], tab: dict[str, Any] | None = None) -> None:
        """Begin the live data, with the exchange's schedule, and how a browser's tab joins.

        No process may be forked later.
        """
        self.uploader = publish.Uploader(self.run, self.live, say) if self.run.checkpoints else None
        self.live.start(self._make_card(asdict(self.recipe.schedule) | schedule, tab))

    def write_status(self, addresses: Sequence[str], training: int, **further: str) -> None:
        """Write the file from which others on this machine learn how the run is."""
        content = {"started": True, "step": self.step, "addresses": list(addresses)}
        status_file.write(self.options.folder, content | {"training": training} | further)

    def write(self, line: ProgressLine) -> None:
        """Write a step to the live data and the terminal; where the disk is full, with the next."""
        self._unwritten.append(line)
        self._write_lines()
        self.step, self.samples = line.step, self.samples + line.samples
        self.note_beginning("steps")
        self._last_line = line
        say(in_words(line))

    def _write_lines(self) -> None:
        with going_on("writing a step"):
            while self._unwritten:
                self.live.append(self._unwritten[0])
                del self._unwritten[0]

    def note_beginning(self, of: str) -> None:
        """Remember when something began, by the clock: it goes on over a restart."""
        if of not in self._begun:
            self._begun[of] = time.time()
            atomic.write_json(self._begun_path, self._begun)

    def publish_if_due(self) -> None:
        """Begin to make a checkpoint if it is time to."""
        due = self.step >= self._checkpoint_step + self.recipe.swarm.checkpoint_every
        if due and (self._job is None or self._job.done()):
            self._job = self._background.submit(self._make_checkpoint)

    def _make_checkpoint(self) -> None:
        with going_on("making a checkpoint"):
            step, states = self._take_weights()
            if step <= self._checkpoint_step:
                return
            time_now = timestamp(time.time())
            loss = self._last_line.loss if self._last_line else None
            drawing = None
            with going_on("packing the model for the page"):
                drawing = in_page.pack(self.model, self.recipe)
            checkpoint.publish(self.live, self.model, step, loss, time_now, states, drawing)
            self._checkpoint_step = step
            if self.uploader is not None:
                self.uploader.look()
            print(f"checkpoint of step {step}", flush=True)
            pictures = sampling.draw_prompts(self.model, self.recipe)
            self.live.add_samples(step, time_now, self.recipe.generation.prompts, pictures)

    def _make_card(self, schedule: dict[str, Any], tab: dict[str, Any] | None) -> RunCard:
        return RunCard(
            name=self.run.name,
            title=self.run.title or self.run.name,
            recipe=self.recipe.name,
            model=asdict(self.recipe.model),
            parameters=sum(parameter.numel() for parameter in self.model.parameters()),
            schedule=schedule
            | {"corners": corners(self.recipe.schedule, schedule["learning_rate"])},
            start=timestamp(time.time()),
            join=f"python -m training join {public_name(self.options.source)}",
            links=self.run.links,
            tab=tab,
        )


def public_name(source: str) -> str:
    """Give a run file as others would name it: paths of this machine say nothing to them."""
    return source if "://" in source else Path(source).name


def in_words(line: ProgressLine) -> str:
    """A step in one line."""
    loss = "no loss reported" if line.loss is None else f"loss {line.loss:.3f}"
    return (
        f"step {line.step}: {loss}, {line.samples} samples, "
        f"{line.samples_per_second:.0f} a second, "
        f"{line.training} training, {line.syncing} syncing, {line.left} left"
    )
