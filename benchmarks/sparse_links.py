"""Rounds with local steps over slow lines: seconds and bytes, with files of the paper's size.

The monitor's web host and the volunteers are processes in network namespaces whose lines are
`router.py`'s. Besides the table, all rows go to benchmarks/sparse-links.json; rows that it has are
not measured again, so that it may be interrupted: remove the file to start over. It needs root,
Linux and 14 GB of memory, and is measured only when asked for by name.
"""

import json
import os
import platform
import tempfile
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.figures import Figure, Table, machine
from benchmarks.namespaces import Namespaces, Process
from benchmarks.router import QUEUE_SECONDS, SERVER_MBIT, Lines
from tools.console import ROOT, say
from tools.files import write_atomically

PATH = ROOT / "benchmarks/sparse-links.json"
DELAY_MS = 50.0
# Mbit/s by the number of volunteers: more is more than `router.py` can carry
RATES = {2: (20.0, 50.0), 4: (20.0, 50.0), 8: (20.0,)}
COMPUTE_SECONDS = 6.0  # longer than the host keeps a connection that is not used
ROUNDS, FIRST_ROUNDS = 3, 1  # of which the first are not counted
PARTS = ("preparing", "handing_in", "asking", "closing", "downloading", "applying")
HOST = 1  # its number among the namespaces
METHOD = (
    "The monitor's web host and each volunteer are processes in network namespaces of their own. "
    "A volunteer's only way out is a TUN device whose packets a program carries: it queues them "
    f"at the rate given, in each direction ({1000 * QUEUE_SECONDS:.0f} ms of buffer), and holds "
    f"each back for the delay on its way out. The host has a server's line, {SERVER_MBIT:,.0f} "
    "Mbit/s in each direction, with the same delay. TCP is the kernel's own (cubic). Files have "
    "the size of the paper's model. Computing is a pause, as when a GPU computes. The first "
    "volunteer is whole, and the figures are its own: it encodes its update, signs and uploads "
    "it, asks every 2 s whether the round has closed, downloads the list and the others' updates, "
    "applies them and checks the digest of the weights. The others upload and download the same "
    "files with the same code and check their sums, but neither decode nor apply them, for which "
    "this machine has not enough memory. The host checks every update and makes the step, without "
    "judging effects on the loss, for which it would need the model's data and a GPU. All "
    "volunteers begin each round at once. Each process has one thread. Uploading, asking and "
    "downloading are seconds of the clock; preparing, closing and applying are seconds of the "
    "processor, as this machine had other programs to run. A round without its computing is their "
    "sum; `clock_seconds` is what it took here. Medians of the rounds."
)


class Laboratory:
    """Measures rounds; each row is appended to `rows`, and all are written at once."""

    def __init__(self, rows: list[dict[str, Any]], quick: bool) -> None:
        self.rows, self.quick = rows, quick

    def add(self, **row: Any) -> None:
        """Keep a row, with what else the machine was doing."""
        row["load"] = round(os.getloadavg()[0], 1)
        self.rows.append(row)
        words = machine("") | {"python": platform.python_version(), "torch": version("torch")}
        del words["chromium"]
        content = {"version": 1, "method": METHOD, "machine": words, "rows": self.rows}
        path = ROOT / "bench/sparse-links.json" if self.quick else PATH
        write_atomically(path, (json.dumps(content, indent=1) + "\n").encode())
        say(json.dumps(row))

    def lacks(self, peers: int, rate: float) -> bool:
        """True if there is no row of so many volunteers at a rate."""
        return not any((row["peers"], row["mbit_per_second"]) == (peers, rate) for row in self.rows)


def run(quick: bool) -> Table:
    """Measure everything; the quick way, two volunteers with the rehearsal's files."""
    kept = json.loads(PATH.read_text())["rows"] if PATH.exists() and not quick else []
    laboratory = Laboratory(kept, quick)
    sizes = sizes_of("rehearsal" if quick else "paper")
    for peers, all_rates in RATES.items():
        rates = [rate for rate in all_rates if laboratory.lacks(peers, rate)]
        if quick and peers > 2:
            break
        if rates:
            measure(laboratory, peers, rates, sizes)
    figures = []
    for row in laboratory.rows:
        words = f"{row['peers']} volunteers, {row['mbit_per_second']:g} Mbit/s"
        figures += [
            Figure(f"{words}: a round without computing", row["seconds"], "s"),
            Figure(f"{words}: sent", row["line_sent"] / 1e6, "MB"),
            Figure(f"{words}: received", row["line_received"] / 1e6, "MB"),
        ]
    return Table(f"Rounds with local steps, {sum(sizes) / 1e6:.1f} M parameters", figures)


def sizes_of(recipe: str) -> list[int]:
    """Elements of each tensor that a recipe's model learns."""
    from training.model.build import build_model
    from training.run.recipes import find_recipe

    model = build_model(find_recipe(recipe))
    return [p.numel() for p in model.parameters() if p.requires_grad]


def measure(laboratory: Laboratory, peers: int, rates: list[float], sizes: list[int]) -> None:
    """Measure rounds of so many volunteers at each rate."""
    from training.sparse.layout import Layout

    with (
        tempfile.TemporaryDirectory() as folder,
        Namespaces(peers + 1, Path(folder), "cubic") as spaces,
    ):
        spaces.set_lines(Lines())
        running: list[Process] = []
        try:
            options: dict[str, Any] = {"sizes": sizes, "quorum": peers, "host": spaces.host(HOST)}
            folder_of = str(Path(folder) / "host")
            host = spaces.start(HOST, "sparse_host.py", json.dumps(options | {"folder": folder_of}))
            running.append(host)
            told = host.answer()
            for number in range(peers):
                options = told | {
                    "folder": str(Path(folder) / f"volunteer-{number}"),
                    "sizes": sizes,
                    "compute": COMPUTE_SECONDS,
                    "whole": number == 0,
                }
                script = json.dumps(options)
                running.append(spaces.start(HOST + 1 + number, "sparse_volunteer.py", script))
            volunteers = running[1:]
            for volunteer in volunteers:
                volunteer.answer()
            for rate in rates:
                lines = Lines(rate, DELAY_MS, servers=[HOST])
                rounds = make_rounds(spaces, lines, host, volunteers)
                laboratory.add(
                    measured="round",
                    peers=peers,
                    mbit_per_second=rate,
                    delay_ms=DELAY_MS,
                    round_trip_ms=2 * DELAY_MS,
                    parameters=sum(sizes),
                    payload_bytes=Layout(tuple(sizes)).update_bytes,
                    compute_seconds=COMPUTE_SECONDS,
                    **summed(rounds),
                )
        finally:
            for process in reversed(running):
                process.end()


def make_rounds(
    spaces: Namespaces, lines: Lines, host: Process, volunteers: list[Process]
) -> list[dict[str, Any]]:
    """Make rounds, and give what the first volunteer, the host and its line say of each."""
    rounds = []
    for _ in range(FIRST_ROUNDS + ROUNDS):
        spaces.set_lines(lines)  # counts from now on
        for volunteer in volunteers:
            volunteer.tell(go=True)
        answers = [volunteer.answer() for volunteer in volunteers]
        counted = spaces.set_lines(lines)
        host.tell(ask=True)
        closing = host.answer()
        found = answers[0] | {
            "asking": max(0.0, answers[0]["waiting"] - closing["clock"]),
            "closing": closing["worked"],
            "line_sent": counted["bytes"][HOST],  # of the namespace after the host's
            "line_received": counted["bytes_received"][HOST],
            "packets_overflowed": counted["overflowed"],
            "latest_ms": counted["latest_ms"],
        }
        say(json.dumps({name: round(value, 2) for name, value in found.items()}))
        rounds.append(found)
    return rounds[FIRST_ROUNDS:]


def summed(rounds: list[dict[str, Any]]) -> dict[str, Any]:
    """The middle of each figure, and of the seconds each round's."""

    def middle(name: str) -> float:
        return float(median(one[name] for one in rounds))

    lost = [sum(one[part] for part in PARTS) for one in rounds]
    clock = [one["seconds"] - one["computing"] for one in rounds]
    return {
        "seconds": round(median(lost), 3),
        "seconds_of_each": [round(seconds, 3) for seconds in lost],
        "parts": {part: round(middle(part), 3) for part in PARTS},
        "clock_seconds": round(median(clock), 3),
        "sent": round(middle("sent")),
        "received": round(middle("received")),
        "line_sent": round(middle("line_sent")),
        "line_received": round(middle("line_received")),
        "packets_overflowed": round(middle("packets_overflowed")),
        "latest_ms": middle("latest_ms"),
    }
