"""Two averagers that expect each other: `python expectant.py EXPECTED` prints what came of it.

A group may wait for ten minutes; the process ends after one, so it must have closed before. With
`--cancel` one of them begins with a round that it cancels, slowly.
"""

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))

import hivemind
import torch
from hivemind.averaging.control import AveragingStage
from hivemind.utils import MPFuture

from training.averaging.matchmaking import ExpectantAverager

MATCHMAKING_SECONDS = 600.0
PATIENCE = 60.0


def cancel_a_round_slowly(averager: ExpectantAverager) -> None:
    """Cancel a round that looks for a group; its own process sees each part of it separately."""
    control = averager.step(wait=False, timeout=MATCHMAKING_SECONDS)
    while control.stage is not AveragingStage.LOOKING_FOR_GROUP:
        time.sleep(0.01)
    cancel = MPFuture.cancel

    def slowly(future: MPFuture) -> bool:
        time.sleep(0.5)
        return bool(cancel(future))

    MPFuture.cancel = slowly
    control.cancel()
    MPFuture.cancel = cancel


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
    if "--cancel" in sys.argv:
        cancel_a_round_slowly(averagers[0])
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
