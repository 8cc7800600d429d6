"""A run that is written while somebody looks at it, and the server that its page comes from."""

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from email.utils import formatdate
from pathlib import Path

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Scope

from tools import server
from tools.server import Site, listen
from training.run.live import (
    CheckpointEntry,
    Contributor,
    LiveFolder,
    PeerState,
    ProgressLine,
    RunCard,
    timestamp,
)
from training.run.recipes import ScheduleSettings, corners

NAME = "watched"
STEP_BYTES = 1_500_000


@dataclass
class WrittenRun:
    """A run's folder, written by the monitor's own code; its steps are a second apart."""

    path: Path
    step: int = 0
    live: LiveFolder = field(init=False)

    def __post_init__(self) -> None:
        self.live = LiveFolder(self.path)

    @property
    def progress(self) -> Path:
        """Its append-only file."""
        return self.path / "progress.jsonl"

    def open(self, total_steps: int = 1000) -> None:
        """Write run.json."""
        settings = ScheduleSettings(total_steps, warmup_steps=10)
        schedule = asdict(settings) | {
            "target_batch_size": 128,
            "learning_rate": 0.05,
            "corners": corners(settings, 0.05),
        }
        start = timestamp(time.time() - 3600)
        join = "python -m training join watched.toml"
        card = RunCard(NAME, "A run being watched", "rehearsal", {}, 464_234, schedule, start, join)
        self.live.start(card)

    def add(self, count: int, ago: float = 0.0) -> None:
        """Append steps, the last one `ago` seconds old."""
        for left in reversed(range(count)):
            self.step += 1
            self.live.append(self.line(self.step, time.time() - ago - left))

    def line(self, step: int, seconds: float) -> ProgressLine:
        """A step as the monitor would note it."""
        return ProgressLine(
            step=step,
            time=timestamp(seconds),
            loss=4.0 / step**0.25,
            samples=128,
            samples_per_second=128.0,
            training=3,
            syncing=1,
            left=2,
            bytes_sent=STEP_BYTES,
            bytes_received=STEP_BYTES,
            rejected=0,
        )

    def write_people(self, *names: str, seen_ago: float = 0.0, traffic: bool = False) -> None:
        """Write peers.json: the first has done most, each other was last seen an hour earlier.

        With `traffic`, each has sent one MiB more than the one before, and received twice that.
        """
        now = time.time() - seen_ago
        people = [
            Contributor(
                id=f"{rank:012x}",
                name=name,
                samples=1000 * (len(names) - rank),
                seconds=60.0 * (rank + 1),
                first_seen=timestamp(now - 100_000),
                last_seen=timestamp(now - 3600 * rank),
                state=PeerState.TRAINING if rank == 0 else PeerState.LEFT,
                steps=10 * (rank + 1),
                bytes_sent=2**20 * (rank + 1) if traffic else None,
                bytes_received=2**21 * (rank + 1) if traffic else None,
            )
            for rank, name in enumerate(names)
        ]
        self.live.write_peers(people)

    def write_checkpoints(self, *steps: int) -> None:
        """Write checkpoints.json, the newest with its file, and a picture for each caption."""
        entries = [
            CheckpointEntry(
                step,
                3.0,
                timestamp(time.time()),
                f"checkpoints/{step:06d}/model.safetensors" if step == steps[-1] else None,
                f"{step:064x}",
            )
            for step in steps
        ]
        self.live.write_checkpoints(entries)


def write_crowd(run: WrittenRun, steps: int, people: int) -> None:
    """Write a long run at once: its files are as the monitor leaves them."""
    now = time.time()
    lines = (run.line(step, now - 200 * (steps - step)) for step in range(1, steps + 1))
    text = "".join(f"{json.dumps(vars(line))}\n" for line in lines)
    run.progress.write_text(text)
    run.step = steps
    run.open(total_steps=31_250)
    run.live.write_peers(
        [
            Contributor(
                id=f"{number:012x}",
                name=f"<b>volunteer {number}</b>",
                samples=10 * (people - number),
                seconds=3600.0,
                first_seen=timestamp(now - 200 * steps),
                last_seen=timestamp(now - 60 * number),
                state="training" if number < 37 else "left",
                steps=1 + number % 100,
            )
            for number in range(people)
        ]
    )


@dataclass
class LiveServer:
    """Serves a site; notes what is asked of it. `ranges` and `clock` may change at any time.

    Attributes:
        ranges: whether it sends parts of files. clock: seconds that its clock is fast.
        asked: the paths asked for with their Range header.
    """

    folder: Path
    ranges: bool = True
    clock: float = 0.0
    asked: list[tuple[str, str]] = field(default_factory=list)
    _running: ExitStack = field(default_factory=ExitStack)
    _port: int = 0

    @property
    def address(self) -> str:
        """The address of the site; ends with a slash."""
        return f"http://127.0.0.1:{self._port}/"

    def start(self) -> None:
        """Listen, on the same port as before."""
        listener = listen(self._port)
        self._port = listener.getsockname()[1]
        self._running.enter_context(server.serving(_Noted(self), listener, date_header=False))

    def stop(self) -> None:
        """Answer no more."""
        self._running.close()

    def ranges_of(self, name: str) -> list[str]:
        """The Range headers with which a file was asked for, in order."""
        return [wanted for path, wanted in self.asked if path.endswith(name)]


class _Noted(Site):
    """The site of a `LiveServer`, which hears of each request."""

    def __init__(self, owner: LiveServer) -> None:
        super().__init__(owner.folder)
        self.owner = owner

    async def get_response(self, path: str, scope: Scope) -> Response:
        """An answer by the server's own clock; no part of a file where it has none."""
        self.owner.asked.append((scope["path"], Headers(scope=scope).get("range", "")))
        if not self.owner.ranges:
            scope["headers"] = [header for header in scope["headers"] if header[0] != b"range"]
        response = await super().get_response(path, scope)
        response.headers["Date"] = formatdate(time.time() + self.owner.clock, usegmt=True)
        return response


@contextmanager
def serving(site: Path, folder: Path) -> Iterator[tuple[LiveServer, WrittenRun]]:
    """Serve a site whose live data are written in `folder`, its only run being open."""
    for item in site.iterdir():
        if item.name != "live":
            (folder / item.name).symlink_to(item, target_is_directory=item.is_dir())
    live = folder / "live"
    live.mkdir()
    (live / "index.html").symlink_to(site / "live" / "index.html")
    runs = '{"runs": [{"name": "watched", "title": "A run being watched", "note": ""}]}'
    (live / "runs.json").write_text(runs)
    watched = LiveServer(folder)
    watched.start()
    try:
        yield watched, WrittenRun(live / NAME)
    finally:
        watched.stop()
