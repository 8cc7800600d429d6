"""Two averagers that expect each other: `python expectant.py EXPECTED` prints what came of it.

A group may wait for ten minutes; the process ends after one, so it must have closed before.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))

import hivemind
import torch

from training.averaging.matchmaking import ExpectantAverager

MATCHMAKING_SECONDS = 600.0
PATIENCE = 60.0

if __name__ == "__main__":
    expected = int(sys.argv[1])
    local = ["/ip4/127.0.0.1/tcp/0"]
    first = hivemind.DHT(start=True, host_maddrs=local)
    second = hivemind.DHT(start=True, host_maddrs=local, initial_peers=first.get_visible_maddrs())
    averagers = [
        ExpectantAverager(
            [torch.full((10,), float(index))],
            dht,
            prefix="expectant",
            min_matchmaking_time=MATCHMAKING_SECONDS,
            request_timeout=3.0,
            start=True,
        )
        for index, dht in enumerate((first, second))
    ]
    for averager in averagers:
        averager.expected_peers = expected
    rounds = [averager.step(wait=False, timeout=MATCHMAKING_SECONDS) for averager in averagers]
    try:
        for control in rounds:
            control.result(PATIENCE if expected == 2 else 10.0)
        with averagers[0].get_tensors() as tensors:
            print("mean", float(tensors[0].mean()), flush=True)
    except TimeoutError:
        print("waiting for more", flush=True)
    for member in (*averagers, first, second):
        member.shutdown()
