"""Two averagers that expect each other, or a third: `python expectant.py` prints what came of it.

A group may wait for ten minutes; the process ends after one, so it must have closed before. The
rounds that wait for the third are cancelled, slowly.
"""

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))

import hivemind
import torch
from hivemind.averaging.control import StepControl
from hivemind.utils import MPFuture

from training.averaging.matchmaking import ExpectantAverager
from training.network.tasks import keep_tasks

MATCHMAKING_SECONDS = 600.0
MEETING_SECONDS = 5.0  # in which two that are enough have met
PATIENCE = 60.0


def cancel_slowly(control: StepControl) -> None:
    """Cancel a round that looks for a group; its own process sees each part of it separately."""
    cancel = MPFuture.cancel

    def slowly(future: MPFuture) -> bool:
        time.sleep(0.5)
        return bool(cancel(future))

    MPFuture.cancel = slowly
    control.cancel()
    MPFuture.cancel = cancel


def begin(averagers: list[ExpectantAverager], expected: int) -> list[StepControl]:
    """Begin a round of each that expects so many peers."""
    for averager in averagers:
        averager.expected_peers = expected
    return [averager.step(wait=False, timeout=MATCHMAKING_SECONDS) for averager in averagers]


if __name__ == "__main__":
    keep_tasks()  # as `Network` does
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
    rounds = begin(averagers, 3)
    try:
        rounds[0].result(MEETING_SECONDS)
    except TimeoutError:
        print("waiting for", rounds[0].stage.name, flush=True)
    for control in rounds:
        cancel_slowly(control)
    for control in begin(averagers, 2):
        control.result(PATIENCE)
    with averagers[0].get_tensors() as tensors:
        print("mean", float(tensors[0].mean()), flush=True)
    for member in (*averagers, first, second):
        member.shutdown()
