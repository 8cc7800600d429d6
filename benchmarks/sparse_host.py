"""`python sparse_host.py OPTIONS`: the web host of a run with local steps, for `sparse_links.py`.

OPTIONS is a JSON object: folder, host, sizes of the model's tensors, quorum. It closes rounds as
the monitor does, until its input ends, and answers each line of input with the seconds of
the clock and of the processor that it took to close those since the last. The monitor's judging
is left out: it needs the model's data.
"""

import json
import math
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from training.run.recipes import SparseSettings

sys.path.insert(0, str(Path(__file__).parents[1]))

import torch
from hivemind.utils.crypto import RSAPrivateKey

from training.access.grants import peer_id_of
from training.monitor.web_host import WebHost
from training.sparse import web
from training.sparse.closing import Swarm
from training.sparse.host import Host
from training.sparse.layout import Layout
from training.sparse.shared import SharedState
from training.sparse.store import FolderStore

RUN = "benchmark"
LOOK_SECONDS = 0.1  # as the monitor's
SETTINGS = SparseSettings(
    seconds=1e-9,
    learning_rate=1e-3,
    outer_learning_rate=2.0,
    quorum=1,
    grace=2.0,
    longest=math.inf,
    largest_norm=math.inf,
)


def main(options: dict[str, Any]) -> None:
    """Serve until the input ends."""
    torch.set_num_threads(1)
    key = RSAPrivateKey()
    identity = peer_id_of(key.get_public_key().to_bytes().decode())
    layout = Layout(tuple(options["sizes"]))
    store = FolderStore(Path(options["folder"]) / "exchange")
    state = SharedState(torch.zeros(layout.elements))
    host = Host(
        Swarm(RUN, layout, store, {identity}, SETTINGS.outer_learning_rate),
        store,
        state,
        replace(SETTINGS, quorum=options["quorum"]),
    )
    service = WebHost(web.make_service(host), options["host"], 0)
    seconds: list[tuple[float, float]] = []
    stop = threading.Event()
    closing = threading.Thread(target=close_rounds, args=(host, key, seconds, stop))
    closing.start()
    tell(address=service.address, closer=identity, start=state.digest())
    for _ in sys.stdin:
        tell(clock=sum(one for one, _ in seconds), worked=sum(one for _, one in seconds))
        seconds.clear()
    stop.set()
    closing.join()
    service.close()


def close_rounds(
    host: Host, key: RSAPrivateKey, seconds: list[tuple[float, float]], stop: threading.Event
) -> None:
    """Close each round when it is due."""
    while not stop.wait(LOOK_SECONDS):
        began, worked = time.perf_counter(), time.thread_time()
        if host.close_if_due(key) is not None:
            seconds.append((time.perf_counter() - began, time.thread_time() - worked))


def tell(**answer: Any) -> None:
    """Answer."""
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
