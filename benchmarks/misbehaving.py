"""Volunteers that a run must withstand: `python -m benchmarks.misbehaving liar join RUN ...`.

A liar sends its gradients times -1000 and claims ten times what it computed. A poisoner computes
nothing and writes records that no honest peer would: keys with two owners, values that nobody
signed, steps and paces that cannot be.
"""

import logging
import runpy
import sys
import threading
from collections.abc import Callable
from typing import Any

import torch
from hivemind import DHT
from hivemind.dht.crypto import RSASignatureValidator
from hivemind.dht.validation import DHTRecord
from hivemind.utils import get_dht_time

from training.access.entrance import admitted
from training.averaging.guard import GuardedGradientAverager
from training.network.connection import Identity, Network, alone_in
from training.run import status
from training.run.runfile import RunFile
from training.volunteer import peer
from training.volunteer.contribution import Contribution

logger = logging.getLogger(__name__)

SPOIL = -1000.0
EXAGGERATION = 10
POISON_SECONDS = 2.0
A_MONTH = 30 * 86_400.0
FAR_STEP = 1_000_000


def lie() -> None:
    """Make this process' volunteer a liar."""
    load, add = GuardedGradientAverager.load_accumulators_into_averager_, Contribution.add

    @torch.no_grad()
    def spoil(self: GuardedGradientAverager) -> None:
        load(self)
        with self.get_tensors() as gradients:
            for gradient in gradients:
                gradient.mul_(SPOIL)

    def exaggerate(self: Contribution, samples: int, loss: float) -> None:
        add(self, EXAGGERATION * samples, loss)

    GuardedGradientAverager.load_accumulators_into_averager_ = spoil  # type: ignore[method-assign]
    Contribution.add = exaggerate  # type: ignore[method-assign]


class Signer(RSASignatureValidator):
    """Signs what is under its own key, and takes everything for valid."""

    def validate(self, _record: DHTRecord) -> bool:
        """Accept every record: the others are to refuse it."""
        return True


def poison(_: object, run: RunFile, options: peer.PeerOptions, stop: threading.Event) -> None:
    """Write bad records under every key of a run until `stop` is set."""
    setattr(Network, "make_validator", lambda network: Signer(network.key))  # noqa: B010
    with alone_in(options.folder):
        identity = Identity.read(options.folder)
        with admitted(run, identity.key, options.folder, print, stop) as membership:
            network = Network(
                run.name, identity, run.initial_peers, options.endpoint, membership=membership
            )
            try:
                count = 0
                while not stop.wait(POISON_SECONDS):
                    status.write(options.folder, {"started": True, "records": count})
                    count += _write_all(network.dht, run.name, identity)
            finally:
                network.close()


def _write_all(dht: DHT, run: str, identity: Identity) -> int:
    """Try to store one record of each kind; how many were tried."""
    owner = identity.subkey
    now = get_dht_time()
    progress = {
        "peer_id": dht.peer_id.to_bytes(),
        "epoch": FAR_STEP,
        "samples_accumulated": 10**9,
        "samples_per_second": 1e12,
        "time": now,
        "client_mode": False,
    }
    averagers = (f"{run}_grad_averager.0b", f"{run}_state_averager.all_averagers")
    records: list[tuple[str, bytes | None, Any]] = [
        (f"{run}_progress", owner + owner, progress),
        (f"{run}_orders", owner + owner, {"step": FAR_STEP}),
        (f"{run}_access", None, b"nobody signed this"),
        *((key, None, 1.0) for key in averagers),
        (f"{run}_state_averager.all_averagers", dht.peer_id.to_bytes(), 1e9),
        (f"{run}_orders", owner, {"checkpoint": "\x1b[2J"}),
        *((f"{run}_progress", owner + bytes([n]), progress) for n in range(20)),
        (f"{run}_progress", owner, progress),
    ]
    for key, subkey, value in records:
        store = {"subkey": subkey} if subkey is not None else {}
        dht.store(key, value, now + A_MONTH, return_future=True, **store)
    return len(records)


ROLES: dict[str, Callable[[], None]] = {
    "liar": lie,
    "poisoner": lambda: setattr(peer, "join", poison),
}


if __name__ == "__main__":
    ROLES[sys.argv[1]]()
    del sys.argv[1]
    runpy.run_module("training", run_name="__main__", alter_sys=True)
