"""Local steps behind routers: runs of volunteers whom nobody can call, and of reachable ones.

Real processes in network namespaces: a monitor in the open, and three volunteers, all behind
routers that let nobody in, or all in the open, where they also hand out files. The smallest model
on the captioned shapes, the same number of rounds, one run after the other in turns. A round lasts
a fixed time, in which a busy machine computes fewer sequences: losses are compared after as many.
It needs root.
"""

import json
import os
import tempfile
from bisect import bisect_left
from dataclasses import asdict, dataclass
from itertools import accumulate
from pathlib import Path
from statistics import fmean

from benchmarks.figures import Figure, Table
from tests.training.network.homes import Router, Street
from tests.training.network.rounds_street import RoundsStreet
from tools.console import say

ROUNDS = 40
LAST = 5  # rounds over which the loss is averaged
TURNS = ("open", "closed", "closed", "open")
HOMES = {
    "open": dict.fromkeys(("alice", "bob", "carol"), Router.NONE),
    "closed": {"alice": Router.CLOSED, "bob": Router.SYMMETRIC, "carol": Router.CLOSED},
}
WORDS = {"open": "all reachable", "closed": "all behind routers"}


def run(quick: bool) -> Table:
    """Measure runs in turns; the quick way, one of each."""
    from training.data import streaming
    from training.run.recipes import TINY

    streaming.prepare_shapes(TINY)
    found: dict[str, list[Run]] = {"open": [], "closed": []}
    for number, turn in enumerate(TURNS[:2] if quick else TURNS):
        with Street(f"b{number}{os.getpid() % 9999}") as street:
            found[turn].append(measure(street, turn))
        say(json.dumps({turn: asdict(found[turn][-1])}))
    fewest = min(sum(one.samples) for runs in found.values() for one in runs)
    figures = [Figure("sequences after which the loss is compared", fewest, "")]
    for turn, runs in found.items():
        rows = [one.figures(fewest) for one in runs]
        for name in rows[0]:
            values = [row[name] for row in rows]
            unit = {"loss": "nats", "bytes that leave the monitor in a round": "kB"}.get(name, "")
            figures.append(Figure(f"{WORDS[turn]}: {name}, mean", fmean(values), unit))
            figures.append(Figure(f"{WORDS[turn]}: {name}, lowest", min(values), unit))
            figures.append(Figure(f"{WORDS[turn]}: {name}, highest", max(values), unit))
    return Table(f"Three volunteers with local steps, {ROUNDS} rounds", figures)


@dataclass(frozen=True)
class Run:
    """A run, by round.

    Attributes:
        samples: of each round. losses: likewise, None where nobody reported one.
        updates: of all rounds. sent: kB of files that left the monitor in a round.
    """

    samples: list[int]
    losses: list[float | None]
    updates: int
    sent: float

    def figures(self, sequences: int) -> dict[str, float]:
        """The loss is that of the rounds before so many sequences were reached."""
        reached = bisect_left(list(accumulate(self.samples)), sequences)
        losses = [loss for loss in self.losses[: reached + 1] if loss is not None]
        return {
            "loss": fmean(losses[-LAST:]),
            "updates in a round": self.updates / ROUNDS,
            "sequences in a round": fmean(self.samples),
            "bytes that leave the monitor in a round": self.sent,
        }


def measure(street: Street, turn: str) -> Run:
    """Make one run."""
    with tempfile.TemporaryDirectory() as folder:
        swarm = RoundsStreet(Path(folder), ROUNDS, street=street)
        try:
            swarm.begin_behind(**HOMES[turn])
            swarm.await_end()
            swarm.assert_all_ended_well()
            lines = swarm.lines()
            board = json.loads((swarm.live / "peers.json").read_text())
        finally:
            swarm.stop()
    return Run(
        [line["samples"] for line in lines],
        [line["loss"] for line in lines],
        sum(who["steps"] for who in board),
        fmean(line["bytes_received"] / 1e3 for line in lines[LAST:]),
    )
