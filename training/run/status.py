"""A volunteer's activity in plain words, in the terminal and in `status.json`."""

import contextlib
import os
import sys
import time
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, TextIO

from calculator.errors import InputError
from training.run import atomic


class Stage(StrEnum):
    """A volunteer's current activity, in words."""

    STARTING = "starting"
    ADMITTING = "asking for access"
    CONNECTING = "looking for the run"
    SEARCHING = "checking the other peers' progress"
    DOWNLOADING = "downloading the state"
    COMPUTING = "computing"
    WAITING = "waiting for the others"
    AVERAGING = "averaging with the others"
    HANDING_IN = "handing in the update"
    DISCONNECTED = "no connection to the run, trying again"
    SHARING = "sharing the result"
    LEAVING = "leaving the run"
    DONE = "done"


@dataclass
class Status:
    """A volunteer's figures; None if one is unknown.

    Attributes:
        started: True once the process has started up, which may hang.
        stage: current activity. percent: fraction of it that is done.
        step: the newest global step. total_steps: of the whole run.
        loss: mean loss of the volunteer's own sequences in the newest step.
        samples: training sequences contributed. pending: sequences computed for the next step.
        target: sequences per step, from all volunteers together; 0 where a step ends with time.
        peers: volunteers in the run, including this one.
        seconds_to_update: expected time until the next global step.
    """

    started: bool = False
    stage: Stage = Stage.STARTING
    percent: int | None = None
    step: int = 0
    total_steps: int = 0
    loss: float | None = None
    samples: int = 0
    pending: int = 0
    target: int = 0
    peers: int = 0
    seconds_to_update: float | None = None

    def in_words(self) -> str:
        """One line for the terminal."""
        doing = self.stage.value if self.percent is None else f"{self.stage}, {self.percent} %"
        if not self.started:
            return doing
        parts = [f"step {self.step:,} of {self.total_steps:,}"]
        if self.loss is not None:
            parts.append(f"loss {self.loss:.3f}")
        parts.append(self._own_work())
        parts.append(f"{self.peers} {'peer' if self.peers == 1 else 'peers'}")
        if self.seconds_to_update is not None and self.stage is Stage.COMPUTING:
            parts.append(f"next update in {max(1.0, self.seconds_to_update):.0f} s")
        parts.append(doing)
        return " · ".join(parts)

    def _own_work(self) -> str:
        if not self.target:  # a round ends with its time
            return f"you {self.samples:,} sequences, {self.pending} in this round"
        return f"you {self.samples:,} sequences, {self.pending} of the next {self.target:,}"


class StatusBoard:
    """Shows a status: one line that is updated in a terminal, one line per change elsewhere.

    Args:
        folder: holds `status.json`, which each `show` replaces.
        stream: output that people read.
    """

    def __init__(self, folder: Path, stream: TextIO | None = None) -> None:
        self.status = Status()
        self.folder = folder
        self._stream = stream or sys.stdout
        self._shown: tuple[Any, ...] = ()

    def show(self) -> None:
        """Write the status to the file and, if it changed enough to be news, to the stream."""
        status = self.status
        with contextlib.suppress(OSError):  # a disk that is full now may have room later
            write(self.folder, asdict(status) | {"stage": status.stage.name.lower()})
        if self._stream.isatty():
            self._stream.write(f"\r\x1b[K{status.in_words()}")
            self._stream.flush()
            return
        news = (status.step, None if status.stage in _BRIEF else status.stage)
        if news != self._shown:
            self._shown = news
            print(status.in_words(), file=self._stream, flush=True)

    def say(self, sentence: str) -> None:
        """Write a sentence of its own."""
        start = "\r\x1b[K" if self._stream.isatty() else ""
        print(f"{start}{sentence}", file=self._stream, flush=True)


# stages that change several times per second, too often for one line each in a log
_BRIEF = (Stage.COMPUTING, Stage.WAITING, Stage.AVERAGING, Stage.HANDING_IN)


def first_line(error: BaseException) -> str:
    """The first line of an error's text, or its type if it has no text."""
    text = str(error).strip()
    return text.splitlines()[0] if text else type(error).__name__


def write(folder: Path, status: dict[str, Any]) -> None:
    """Replace the `status.json` of a peer's folder, with this process' id and the time."""
    atomic.write_json(folder / "status.json", status | {"pid": os.getpid(), "time": time.time()})


def read(folder: Path) -> dict[str, Any]:
    """Read the `status.json` of a volunteer's folder; empty where there is none of use."""
    try:
        told = atomic.read_json(folder / "status.json")
    except InputError:
        return {}
    return told if isinstance(told, dict) else {}
