"""A real run with local steps, hosted here, which tabs join: its monitor and Python volunteers."""

import threading
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Self

with warnings.catch_warnings():  # the library's own
    warnings.simplefilter("ignore")
    from hivemind.utils.crypto import RSAPrivateKey

from training.data import streaming
from training.monitor.monitor import MonitorOptions
from training.monitor.rounds import RoundsMonitor
from training.network.connection import Endpoint
from training.run.recipes import RECIPES, Recipe
from training.run.runfile import RunFile
from training.run.status import StatusBoard
from training.volunteer.peer import PeerOptions
from training.volunteer.rounds import RoundsVolunteer

# What a visitor with the browser's own tools can do: turn each sign of an update, the higher bit of
# each value, between the moment when it was encoded and the one when it is summed and signed.
LIE = """([bytes, first, end]) => {
  const every = Float32Array.prototype.every, digest = crypto.subtle.digest.bind(crypto.subtle);
  let isOwn = false;
  Float32Array.prototype.every = function (...given) {
    isOwn ||= this.buffer.byteLength === 4 * this.length;
    return every.apply(this, given);
  };
  crypto.subtle.digest = (kind, body) => {
    if (isOwn && body.length === bytes) {
      isOwn = false;
      for (let at = first; at < end; at += 1) body[at] ^= 0xaa;
    }
    return digest(kind, body);
  };
}"""


class Run:
    """A monitor and volunteers, each in a thread, as long as the context lasts.

    Args:
        recipe: with local steps, on captioned shapes.
        names: of the Python volunteers.
        rounds: what differs in the recipe's settings of rounds, its table `sparse`.
    """

    def __init__(self, folder: Path, recipe: Recipe, names: Sequence[str], **rounds: float) -> None:
        with warnings.catch_warnings():  # its own, which would end a volunteer's thread
            warnings.simplefilter("ignore")
            import diffusers  # noqa: F401

        self.folder, self.names = folder, names
        self.stop = threading.Event()
        self.threads: list[threading.Thread] = []
        (name,) = [name for name, known in RECIPES.items() if known == recipe]
        self.data = str(streaming.prepare(recipe))
        self._values = {"name": "our-run", "recipe": name, "steps": 10_000, "data": self.data}
        if rounds:
            self._values["changes"] = {"sparse": rounds}
        options = MonitorOptions(
            source="run.toml",
            folder=folder / "monitor",
            live=folder / "live",
            endpoint=Endpoint(host="127.0.0.1"),
        )
        self.monitor = RoundsMonitor(RunFile(**self._values), options, RSAPrivateKey())  # type: ignore[arg-type]

    def __enter__(self) -> Self:
        """Start all threads."""
        self._start(self._host)
        for name in self.names:
            self._start(self._volunteer, self.folder / name)
        return self

    def __exit__(self, *_: object) -> None:
        """Stop them, and close the monitor."""
        self.stop.set()
        for thread in self.threads:
            thread.join()
        self.monitor.close()

    def identities(self, name: str) -> list[str]:
        """Identities that report under a name."""
        told = self.monitor.host.reports().items()
        return [peer for peer, report in told if report.name == name]

    def _start(self, work: object, *given: object) -> None:
        self.threads.append(threading.Thread(target=work, args=given))  # type: ignore[arg-type]
        self.threads[-1].start()

    def _host(self) -> None:
        while not self.stop.wait(0.05):
            self.monitor.look()

    def _volunteer(self, folder: Path) -> None:
        joined = RunFile(
            **self._values,  # type: ignore[arg-type]
            exchange=self.monitor.web.address,
            initial_peers=(f"/p2p/{self.monitor.identity}",),
        )
        options = PeerOptions(name=folder.name, folder=folder, micro_batch_size=8)
        volunteer = RoundsVolunteer(joined, options, StatusBoard(folder))
        volunteer.train(self.stop)
        volunteer.leave()
