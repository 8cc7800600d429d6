"""Bytes of files that leave the monitor in a round with local steps, by how many can be reached.

The monitor's web host and four volunteers, with files of the paper's size, over loopback: each
volunteer uploads its update, and then all at once download the list and the others' updates, with
the volunteers' own code. Those that can be reached hand out files by libp2p. Only the host's files
count, not its other answers.
"""

import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import torch
from hivemind.utils.crypto import RSAPrivateKey

from benchmarks.figures import Figure, Table
from benchmarks.sparse_host import OUTER, RUN
from benchmarks.sparse_volunteer import Messenger
from tests.training.sparse.conftest import identity
from training.monitor.web_host import WebHost
from training.network.connection import Endpoint, Identity
from training.network.peer_files import PeerFiles
from training.rehearsal.command import free_port
from training.sparse import report, web
from training.sparse.host import Host
from training.sparse.layout import Layout
from training.sparse.report import Report
from training.sparse.shared import SharedState
from training.sparse.store import FolderStore
from training.sparse.swarm import Swarm
from training.sparse.waiting import ClosingPolicy
from training.sparse.web_store import WebStore

VOLUNTEERS = 4
ROUNDS = 3


def run(quick: bool) -> Table:
    """Measure with none, half and all of them reachable; the quick way, the rehearsal's files."""
    layout = Layout(sizes_of("rehearsal" if quick else "paper"))
    figures = []
    for reachable in (0, VOLUNTEERS // 2, VOLUNTEERS):
        words = f"{reachable} of {VOLUNTEERS} volunteers can be reached"
        figures.append(Figure(words, measure(layout, reachable) / 1e6, "MB"))
    title = "Files that leave the monitor in a round with local steps"
    return Table(f"{title}, {layout.elements / 1e6:.1f} M parameters", figures)


def sizes_of(recipe: str) -> tuple[int, ...]:
    """Elements of each tensor that a recipe's model learns."""
    from training.model.build import build_model
    from training.run.recipes import find_recipe

    with torch.device("meta"):
        model = build_model(find_recipe(recipe))
    return tuple(p.numel() for p in model.parameters() if p.requires_grad)


def measure(layout: Layout, reachable: int) -> float:
    """Bytes that leave the host in a round, the mean of a few."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        key = RSAPrivateKey()
        files = FolderStore(Path(folder) / "exchange")
        state = SharedState(torch.zeros(layout.elements))
        swarm = Swarm(RUN, layout, files, {identity(key)}, OUTER)
        host = Host(swarm, files, state, ClosingPolicy(VOLUNTEERS, 0.0))
        service = WebHost(web.make_service(host), "127.0.0.1", 0)
        stack.callback(service.close)
        start = state.digest()
        volunteers = [
            open_store(stack, Path(folder) / str(place), service.address, place < reachable)
            for place in range(VOLUNTEERS)
        ]
        messengers = [
            Messenger(Swarm(RUN, layout, store, {identity(key)}, OUTER), start, own, lambda: 1)
            for store, own in volunteers
        ]
        before = host.bytes_out
        for _ in range(ROUNDS):
            for one in messengers:
                one.learn(0.0, lambda: 0.0)
                one.publish()
            if host.close_if_due(key) is None:
                raise RuntimeError("the round did not close")
            with ThreadPoolExecutor(VOLUNTEERS) as all_at_once:
                if set(all_at_once.map(Messenger.follow, messengers)) != {1}:
                    raise RuntimeError("a volunteer did not follow")
        return (host.bytes_out - before) / ROUNDS


def open_store(
    stack: ExitStack, folder: Path, address: str, is_reachable: bool
) -> tuple[WebStore, RSAPrivateKey]:
    """A volunteer's store and key; where it can be reached, the host knows its address."""
    own = Identity.read(folder)
    store = WebStore(address)
    stack.callback(store.close)
    endpoint = Endpoint("127.0.0.1", free_port() if is_reachable else 0)
    near = PeerFiles(own.path, endpoint, store.shelf.find)
    stack.callback(near.close)
    store.neighbors = near
    if len(near.addresses) != int(is_reachable):
        raise RuntimeError(f"its addresses are {near.addresses}")
    now = time.time()
    told = Report("volunteer", "training", now, now, 0, None, 0, 0, addresses=near.addresses)
    store.report(report.write(RUN, told, own.key))
    return store, own.key
