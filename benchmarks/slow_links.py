"""Exchanges over slow lines: seconds and bytes at 8, 16 and 32 bits, with and without overlap.

Peers are processes in network namespaces whose lines are `router.py`'s. Besides the table, all
rows go to benchmarks/slow-links.json; rows that it has are not measured again, so that it may be
interrupted: remove the file to start over. It takes most of an hour, root and Linux, and is
measured only when asked for by name.
"""

import json
import os
import platform
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.figures import Figure, Table, machine
from benchmarks.namespaces import Namespaces, Process
from benchmarks.router import QUEUE_SECONDS, Lines
from tools.console import ROOT, say
from tools.files import write_atomically

PATH = ROOT / "benchmarks/slow-links.json"
DELAY_MS, LOSS_PERCENT = 50.0, 1.0
FAST, SLOW = 100.0, 20.0  # Mbit/s
BITS = (8, 16, 32)
COMPUTE_SECONDS = 10.0  # for each global step
ATTEMPTS = 3
STEPS, FIRST_STEPS = 3, 1  # of which the first are not counted
METHOD = (
    "Each peer is a process in a network namespace of its own. Its only way out is a TUN device "
    "whose packets a program carries: it queues them at the rate given, in each direction "
    f"({1000 * QUEUE_SECONDS:.0f} ms of buffer), holds each back for the delay on its way out, and "
    "loses the given share at random. TCP is the kernel's own, with the congestion control named. "
    "An exchange lasts from the word to begin, when the group has been found, to the average. "
    "A step's computing is a pause, as when a GPU computes; what is lost is the time of a step in "
    "which the peer does not compute: finding the group, averaging gradients and, without "
    "overlap, updating and averaging the weights."
)


@dataclass
class Laboratory:
    """Peers on lines; what is measured is appended to `rows` and written at once."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    quick: bool = False
    prefixes: Iterator[int] = field(default_factory=count)

    def add(self, **row: Any) -> dict[str, Any]:
        """Keep a row, with what else the machine was doing."""
        row["load"] = round(os.getloadavg()[0], 1)
        self.rows.append(row)
        words = machine("") | {
            "python": platform.python_version(),
            "torch": version("torch"),
            "hivemind": version("hivemind"),
        }
        del words["chromium"]
        content = {"version": 1, "method": METHOD, "machine": words, "rows": self.rows}
        path = ROOT / "bench/slow-links.json" if self.quick else PATH
        write_atomically(path, (json.dumps(content, indent=1) + "\n").encode())
        say(json.dumps(row))
        return row

    def has(self, **words: Any) -> bool:
        """True if there is a row of this description."""
        return any(words.items() <= row.items() for row in self.rows)

    def measure_lines(self, spaces: Namespaces, lines: Lines, congestion: str) -> None:
        """Send a plain file over one connection: what the line gives to anybody."""
        if self.has(measured="line", **_words(lines, congestion)):
            return
        spaces.set_lines(lines)
        size = 4_000_000 if lines.loss_percent else 10_000_000
        port = str(5000 + next(self.prefixes))
        receiver = spaces.start(2, "transfer.py", "receive", spaces.host(2), port)
        sender = spaces.start(1, "transfer.py", "send", spaces.host(2), port, str(size))
        received, sent = receiver.answer(), sender.answer()
        receiver.end()
        sender.end()
        counted = spaces.set_lines(lines)
        if sent["congestion_control"] != congestion:
            raise RuntimeError(f"TCP used {sent['congestion_control']}, not {congestion}")
        self.add(
            measured="line",
            **_words(lines, congestion),
            bytes_sent=size,
            seconds=round(received["seconds"], 3),
            reached_mbit_per_second=round(size * 8e-6 / received["seconds"], 2),
            connecting_ms=round(1000 * sent["round_trip"], 1),
            packets=counted["packets"],
            packets_lost=counted["lost"],
        )

    def measure_exchange(self, group: "Group", lines: Lines, bits: int, repeats: int = 3) -> None:
        """Average gradients so many times; the median is kept."""
        group.spaces.set_lines(lines)
        words = {
            "measured": "exchange",
            "bits": bits,
            **_words(lines, group.congestion),
            "peers": len(group.peers),
            "reachable": group.reachable,
            "recipe": group.recipe,
        }
        if self.has(**words):
            return
        runs = [group.exchange(bits) for _ in range(repeats)]
        slowest = [max(answer["seconds"] for answer in run["answers"]) for run in runs]
        middle = runs[slowest.index(sorted(slowest)[len(runs) // 2])]
        answers, wire = middle["answers"], middle["counted"]
        self.add(
            **words,
            parameters=answers[0]["parameters"],
            overlap=None,
            seconds=round(median(slowest), 3),
            seconds_of_each=[round(seconds, 3) for seconds in slowest],
            bytes_sent=max(answer["sent"] for answer in answers),
            bytes_sent_each=[answer["sent"] for answer in answers],
            expected_bytes=answers[0]["expected"],
            bytes_on_line_each=wire["bytes"],
            packets_lost=wire["lost"],
            calls_refused=wire["refused"],
        )

    def measure_steps(self, group: "Group", lines: Lines, bits: int, overlap: bool) -> None:
        """Train, and keep what a step took beyond its computing."""
        group.spaces.set_lines(lines)
        words = {
            "measured": "step",
            "bits": bits,
            **_words(lines, group.congestion),
            "peers": len(group.peers),
            "reachable": group.reachable,
            "recipe": group.recipe,
            "overlap": overlap,
        }
        answers = group.train(bits, f"t{next(self.prefixes)}", overlap)
        later = slice(FIRST_STEPS, None)
        took = [s for answer in answers for s in answer["step_seconds"][later]]
        computed = [s for answer in answers for s in answer["compute_seconds"][later]]
        lost = [a - b for a, b in zip(took, computed, strict=True)]
        self.add(
            **words,
            parameters=answers[0]["parameters"],
            compute_seconds=round(median(computed), 3),
            step_seconds=round(median(took), 3),
            seconds=round(median(lost), 3),
            seconds_of_each=[round(seconds, 3) for seconds in lost],
            bytes_sent=round(median(s for answer in answers for s in answer["sent"][later])),
        )


@dataclass
class Group:
    """Peers that have found each other."""

    spaces: Namespaces
    peers: list[Process]
    congestion: str
    reachable: int
    recipe: str

    def exchange(self, bits: int) -> dict[str, Any]:
        """Average once; the answers of all, and what the lines carried meanwhile."""
        size = len(self.peers)
        for rank, peer in enumerate(self.peers):
            peer.tell(do="exchange", bits=bits, peers=size, rank=rank)
        lines = self._begin()
        answers = [peer.answer() for peer in self.peers]
        counted = self.spaces.set_lines(lines)
        for answer in answers:
            # who fails keeps its own gradients: that must not pass for a fast exchange
            if answer["peers"] != size or abs(answer["mean"] - (size - 1) / 2) > 0.02:
                raise RuntimeError(f"the exchange failed: {answer}")
        return {"answers": answers, "counted": counted}

    def train(self, bits: int, run: str, overlap: bool) -> list[dict[str, Any]]:
        """Make global steps together."""
        for peer in self.peers:
            peer.tell(
                do="train",
                bits=bits,
                run=run,
                peers=len(self.peers),
                overlap=overlap,
                compute=COMPUTE_SECONDS,
                steps=FIRST_STEPS + STEPS,
            )
        self._begin()
        answers = [peer.answer() for peer in self.peers]
        for peer in self.peers:
            peer.tell(go=True)
        return answers

    def _begin(self) -> Lines:
        for peer in self.peers:
            peer.answer()
        lines = self.spaces.lines
        self.spaces.set_lines(lines)  # counts from now on
        for peer in self.peers:
            peer.tell(go=True)
        return lines


@contextmanager
def gather(
    size: int,
    bits: Sequence[int] = (),
    congestion: str = "cubic",
    recipe: str = "slow",
    reachable: int | None = None,
) -> Iterator[Group]:
    """Start peers on fast lines; those beyond `reachable` are behind a firewall."""
    reachable = size if reachable is None else reachable
    closed = list(range(reachable + 1, size + 1))
    with (
        tempfile.TemporaryDirectory() as folder,
        Namespaces(size, Path(folder), congestion) as spaces,
    ):
        spaces.set_lines(Lines(closed=closed))
        peers: list[Process] = []
        entry_points: list[str] = []
        try:
            for number in range(1, size + 1):
                options = {
                    "folder": str(Path(folder) / str(number)),
                    "host": spaces.host(number),
                    "entry_points": entry_points,
                    "reachable": number <= reachable,
                    "recipe": recipe,
                    "peers": size,
                    "bits": bits,
                }
                peers.append(spaces.start(number, "slow_peer.py", json.dumps(options)))
                addresses = peers[-1].answer()["addresses"]
                entry_points = entry_points or addresses
            yield Group(spaces, peers, congestion, reachable, recipe)
        finally:
            for peer in peers:
                peer.end()


def run(quick: bool) -> Table:
    """Measure everything; the quick way, only exchanges of two peers over fast lines."""
    kept = json.loads(PATH.read_text())["rows"] if PATH.exists() else []
    laboratory = Laboratory([] if quick else kept, quick)
    measure(laboratory, quick)
    figures = [
        Figure(_title(row), row["seconds"], "s")
        for row in laboratory.rows
        if row["measured"] != "line"
    ]
    return Table("Averaging over slow lines", figures)


def measure(laboratory: Laboratory, quick: bool) -> None:
    """Measure what the laboratory has no row of yet."""
    rates = (FAST,) if quick else (FAST, SLOW)
    lossless = [Lines(rate, DELAY_MS) for rate in rates]
    lossy = [Lines(rate, DELAY_MS, LOSS_PERCENT) for rate in rates]
    _again(_measure_two, laboratory, lossless, 3)
    if not quick:
        _again(_measure_paper, laboratory, lossless[:1])
        _again(_measure_four, laboratory, lossless, 4)
        _again(_measure_four, laboratory, lossless, 2)
        _again(_measure_steps, laboratory, lossless)
        _again(_measure_other_control, laboratory, lossy)
        _again(_measure_two, laboratory, lossy, 1)  # the slowest by far


def _again(part: Callable[..., None], *arguments: Any) -> None:
    """Measure a part; a peer that ended or found no group is started again, twice at most."""
    for attempt in range(ATTEMPTS):
        try:
            part(*arguments)
        except RuntimeError as error:
            if attempt == ATTEMPTS - 1:
                raise
            say(f"{error}; again")
        else:
            return


def _measure_two(laboratory: Laboratory, kinds: list[Lines], repeats: int) -> None:
    """Two peers that can call each other, in every wire format."""
    if _lacks(laboratory, kinds, BITS, peers=2, recipe="slow", congestion_control="cubic"):
        with gather(2, BITS) as group:
            for lines in kinds:
                laboratory.measure_lines(group.spaces, lines, group.congestion)
                for bits in BITS:
                    laboratory.measure_exchange(group, lines, bits, repeats)


def _measure_paper(laboratory: Laboratory, kinds: list[Lines]) -> None:
    """Gradients of the paper's size."""
    if _lacks(laboratory, kinds, (8,), recipe="paper"):
        with gather(2, (8,), recipe="paper") as group:
            for lines in kinds:
                laboratory.measure_exchange(group, lines, 8, repeats=1)


def _measure_four(laboratory: Laboratory, kinds: list[Lines], reachable: int) -> None:
    """Four peers, of which some may be behind a firewall."""
    closed = list(range(reachable + 1, 5))
    if _lacks(laboratory, kinds, (8,), peers=4, reachable=reachable):
        with gather(4, (8,), reachable=reachable) as group:
            for lines in kinds:
                laboratory.measure_exchange(group, replace(lines, closed=closed), 8)


def _lacks(laboratory: Laboratory, kinds: list[Lines], bits: Sequence[int], **words: Any) -> bool:
    """True if an exchange of this description has no row yet."""
    return not all(
        laboratory.has(measured="exchange", **(_words(lines, "cubic") | words), bits=each)
        for lines in kinds
        for each in bits
    )


def _measure_steps(laboratory: Laboratory, kinds: list[Lines]) -> None:
    """Seconds lost per step, with and without overlapping the update."""
    for lines in kinds:
        for bits in (8, 32):
            for overlap in (False, True):
                words = _words(lines, "cubic") | {"bits": bits, "overlap": overlap}
                if not laboratory.has(measured="step", **words):
                    with gather(2) as group:
                        laboratory.measure_steps(group, lines, bits, overlap)


def _measure_other_control(laboratory: Laboratory, kinds: list[Lines]) -> None:
    """A congestion control that does not take every loss for a full line."""
    with gather(2, (8,), congestion="bbr") as group:
        for lines in kinds:
            laboratory.measure_lines(group.spaces, lines, group.congestion)
            laboratory.measure_exchange(group, lines, 8)


def _words(lines: Lines, congestion: str) -> dict[str, Any]:
    return {
        "mbit_per_second": lines.mbit_per_second,
        "delay_ms": lines.delay_ms,
        "round_trip_ms": 2 * lines.delay_ms,
        "loss_percent": lines.loss_percent,
        "congestion_control": congestion,
    }


def _title(row: dict[str, Any]) -> str:
    parts = [
        row["measured"],
        f"{row['bits']} bits",
        f"{row['mbit_per_second']:g} Mbit/s",
        f"{row['loss_percent']:g} % loss",
        f"{row['peers']} peers",
        f"{row['parameters'] / 1e6:.1f} M",
    ]
    if row["reachable"] < row["peers"]:
        parts.append(f"{row['peers'] - row['reachable']} behind a firewall")
    if row["overlap"] is not None:
        parts.append("overlap" if row["overlap"] else "no overlap")
    if row["congestion_control"] != "cubic":
        parts.append(row["congestion_control"])
    return ", ".join(parts)
