"""Forty real averagers in groups drawn again in each round, on one machine.

Each has a process and a network daemon of its own, and begins with a number of its own. After each
round a peer should hold the mean of its group; round by round all should come to the mean of all.
"""

import statistics
from typing import Any

from benchmarks.averagers import Group, averagers
from benchmarks.figures import Figure, Table, median
from tools.console import say

PEERS, ROUNDS = 40, 6
VALUES = 100_000  # that each peer averages
PATIENCE = 30.0
MIB = 2**20


def run(quick: bool) -> Table:
    """Average a few times: how many groups were complete, how far the peers are apart after."""
    from calculator.swarm.aggregation import Aggregation

    peers, rounds = (34, 1) if quick else (PEERS, ROUNDS)
    free = _available()
    with averagers(peers, [(VALUES,)], Aggregation.MEAN, 1.0, PATIENCE) as group:
        figures = [Figure("memory of each, with its daemon", (free - _available()) / peers, "MiB")]
        names = [str(averager.peer_id) for averager in group.averagers]
        held = [float(number) for number in range(peers)]
        apart, seconds, sent, complete = [statistics.pstdev(held)], [], [], 0
        for number in range(rounds):
            groups = _meet(group, names, f"round {number}")
            averaged, took, passed = group.average([_filled(value) for value in held])
            wanted = _means(groups, held)
            held = [float(values[0].mean()) for values in averaged]
            complete += sum(
                abs(value - mean) < 0.05 for value, mean in zip(held, wanted, strict=True)
            )
            apart.append(statistics.pstdev(held))
            seconds.append(took)
            sent.append(passed / peers)
            say(f"round {number + 1}: {took:.1f} s, {apart[-1]:.3f} apart")
    figures += [
        Figure("hold the mean of their whole group", 100 * complete / (rounds * peers), "%"),
        Figure("a round", median(seconds), "s"),
        Figure("sent by each in a round", median(sent) / 1e3, "kB"),
        Figure("apart before", apart[0], ""),
        *(Figure(f"apart after {n} rounds", apart[n], "") for n in range(1, rounds + 1)),
    ]
    return Table(f"{peers} real peers in groups drawn again in each round", figures)


def _meet(group: Group, names: list[str], round_name: str) -> list[str]:
    """Tell each averager whom to meet; the group of each."""
    from training.averaging.matchmaking import meet

    for averager, name in zip(group.averagers, names, strict=True):
        averager.meet(name, names, round_name)
    return [meet(name, names, round_name)[0] for name in names]


def _means(groups: list[str], held: list[float]) -> list[float]:
    members: dict[str, list[float]] = {}
    for name, value in zip(groups, held, strict=True):
        members.setdefault(name, []).append(value)
    return [statistics.fmean(members[name]) for name in groups]


def _filled(value: float) -> list[Any]:
    import torch

    return [torch.full((VALUES,), value)]


def _available() -> float:
    """Memory of this machine that programs can still have, MiB."""
    import psutil

    return float(psutil.virtual_memory().available) / MIB
