"""`python sparse_volunteer.py OPTIONS`: a volunteer with local steps on a slow line.

OPTIONS is a JSON object: folder, address and closer of the host, start (the shared weights'
digest), sizes of the model's tensors, compute (seconds), whole. Each line of input begins a round
of `RoundsVolunteer`, and is answered with the seconds of its parts: those of the clock where files
travel, those of the processor where this process works. Computing is a pause, as a GPU
would leave the processor free. A volunteer that is not whole moves the same files through the same
code, but has neither weights nor the memory for them: it checks the files' sums and decodes none.
"""

import json
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import torch
from hivemind.utils.crypto import RSAPrivateKey

from benchmarks.sparse_host import RUN, SETTINGS, tell
from training.access.signatures import PeerKey
from training.run.runfile import RunFile
from training.run.status import StatusBoard
from training.sparse import closing, payload
from training.sparse.closing import Swarm
from training.sparse.layout import PLACE_BITS, VALUE_BITS, Layout, pack
from training.sparse.object_store import Begun
from training.sparse.peer import Peer
from training.sparse.shared import SharedState
from training.sparse.web_store import WebStore
from training.volunteer.rounds import RoundsVolunteer
from training.volunteer.rounds_reporter import RoundsReporter

SAMPLES = 64  # that a round claims
POLL_SECONDS = 2.0  # of SparseSettings, where a recipe says nothing else
DRIFT = 1e-3


class TimedStore(WebStore):
    """A store that counts the seconds of its downloads."""

    downloading = 0.0

    def _ask(self, path: str, most_bytes: int, begun: Begun | None = None) -> bytes | None:
        began = time.perf_counter()
        try:
            return super()._ask(path, most_bytes, begun)
        finally:
            self.downloading += time.perf_counter() - began


class Volunteer(RoundsVolunteer):
    """A volunteer's rounds on weights without a model.

    Attributes:
        seconds: of the parts of a round, by the clock. worked: likewise, of the processor.
    """

    def __init__(self, options: dict[str, Any]) -> None:
        self.run = RunFile(name=RUN, recipe="sparse")
        self.recipe = self.run.get_recipe()
        assert self.recipe.sparse is not None
        self.settings = replace(
            self.recipe.sparse, seconds=options["compute"], poll_seconds=POLL_SECONDS
        )
        self.board = StatusBoard(Path(options["folder"]), sys.stderr)
        self.store = self._files = TimedStore(options["address"])
        layout = Layout(tuple(options["sizes"]))
        self.swarm = Swarm(
            RUN, layout, self.store, {options["closer"]}, SETTINGS.outer_learning_rate
        )
        self._key = RSAPrivateKey()
        self._losses = []
        self.seconds: dict[str, float] = defaultdict(float)
        self.worked: dict[str, float] = defaultdict(float)
        self._downloaded = 0.0
        self.reporter = RoundsReporter(self.board, self.store, RUN, self._key, "volunteer")
        sizes = layout.sizes if options["whole"] else (1,)
        self._parameters = [torch.nn.Parameter(torch.zeros(size)) for size in sizes]
        self._optimizer = torch.optim.SGD(self._parameters, lr=1.0)  # type: ignore[assignment]
        self.peer: Any
        if options["whole"]:
            self.peer = Peer(
                self.swarm,
                SharedState(torch.zeros(layout.elements)),
                self._parameters,
                self._optimizer,
                self._compute,
                self._key,
            )
        else:
            self.peer = Messenger(self.swarm, options["start"], self._key, self._compute)
        self.learn, self.peer.learn = self.peer.learn, self._learn
        self.reporter.start()

    def make_round(self) -> dict[str, Any]:
        """Make a round, and give its parts in seconds and its bytes."""
        self.seconds.clear()
        self.worked.clear()
        self._files.downloading = 0.0
        sent, received = self._files.bytes_sent, self._files.bytes_received
        before, began = self.peer.state.round, time.perf_counter()
        self._make_round(self.peer, threading.Event())
        whole = time.perf_counter() - began
        if self.peer.state.round != before + 1 or self.peer.rounds != before + 1:
            raise RuntimeError(f"round {before} did not take this volunteer's update")
        seconds, worked = self.seconds, self.worked
        return {
            "seconds": whole,
            "computing": seconds["computing"],
            "preparing": worked["learning"] - worked["computing"],
            "handing_in": seconds["handing_in"],
            "waiting": seconds["following"] - seconds["catching_up"],
            "downloading": self._downloaded,
            "applying": worked["catching_up"],
            "sent": self._files.bytes_sent - sent,
            "received": self._files.bytes_received - received,
        }

    @contextmanager
    def _timed(self, part: str) -> Iterator[None]:
        began, worked = time.perf_counter(), time.process_time()
        yield
        self.seconds[part] += time.perf_counter() - began
        self.worked[part] += time.process_time() - worked

    def _learn(self, seconds: float, clock: Callable[[], float]) -> str | None:
        with self._timed("learning"):
            found: str | None = self.learn(seconds, clock)
            return found

    def _compute(self) -> int:
        with self._timed("computing"), torch.no_grad():
            end = time.perf_counter() + self.settings.seconds
            for parameter in self._parameters:
                parameter.uniform_(-DRIFT, DRIFT)
            time.sleep(max(0.0, end - time.perf_counter()) + 1e-3)
        return SAMPLES

    def _hand_in(self, peer: Peer, stop: threading.Event) -> None:
        with self._timed("handing_in"):
            super()._hand_in(peer, stop)

    def _follow(self, peer: Peer, stop: threading.Event) -> bool:
        with self._timed("following"):
            return super()._follow(peer, stop)

    def _catch_up(self, peer: Peer, stop: threading.Event) -> None:
        before = self._files.downloading
        with self._timed("catching_up"):
            super()._catch_up(peer, stop)
        self._downloaded = self._files.downloading - before


@dataclass(frozen=True)
class Reached:
    """The place of a shared state that is not at hand."""

    round: int
    sum: str

    def digest(self) -> str:
        """The state's digest, as the host's lists say."""
        return self.sum


class Messenger:
    """Moves a volunteer's files as `Peer` does, and applies none."""

    def __init__(self, swarm: Swarm, start: str, key: PeerKey, compute: Callable[[], int]) -> None:
        self.swarm, self.state = swarm, Reached(0, start)
        self.samples = self.rounds = 0
        self._key, self._compute = key, compute
        self._update = make_update(swarm.layout)
        self._content = b""

    def learn(self, _seconds: float, _clock: Callable[[], float]) -> str:
        """Make the payload for `publish`."""
        samples = self._compute()
        of = self.swarm.round_of(self.state)  # type: ignore[arg-type]
        self._content = payload.write(of, samples, self._update, self._key)
        return of.start

    def publish(self) -> None:
        """Hand in the payload."""
        self.swarm.store.put(self._content)

    def follow(self) -> int:
        """Download what closed rounds took; gives how many rounds."""
        rounds = 0
        while (found := closing.find(self.swarm, self.state.round)) is not None:
            for one in found.taken:
                self.swarm.store.get(one.sha256, payload.most_bytes(self.swarm.layout))
            self.state = Reached(self.state.round + 1, found.end)
            self.rounds += 1
            rounds += 1
        return rounds


def make_update(layout: Layout) -> bytes:
    """An update of the first elements of each block."""
    scales = torch.full((layout.blocks, 2), DRIFT).to(torch.bfloat16).view(torch.int16)
    firsts = layout.kept.cumsum(0) - layout.kept
    places = torch.arange(layout.sent) - firsts[layout.block_of]
    codes = torch.randint(2**VALUE_BITS, (layout.sent,))
    return b"".join(
        [
            scales.numpy().astype("<i2").tobytes(),
            pack(codes, VALUE_BITS).numpy().tobytes(),
            pack(places, PLACE_BITS).numpy().tobytes(),
        ]
    )


if __name__ == "__main__":
    torch.set_num_threads(1)
    volunteer = Volunteer(json.loads(sys.argv[1]))
    tell(ready=True)
    for _ in sys.stdin:
        tell(**volunteer.make_round())
    volunteer.reporter.close()
    volunteer.store.close()
