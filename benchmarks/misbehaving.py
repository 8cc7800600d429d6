"""Volunteers that a run must withstand: `python -m benchmarks.misbehaving liar join RUN ...`.

A liar sends its gradients, or its update, times -1000 and claims ten times what it computed; a
turncoat sends an update of an honest length times -1. A poisoner computes nothing and writes what
no honest peer would: keys with two owners, values that nobody signed, steps and paces that cannot
be; or files of other runs, rounds and volunteers.
"""

import logging
import runpy
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from hivemind import DHT
from hivemind.dht.validation import DHTRecord
from hivemind.utils import get_dht_time
from hivemind.utils.crypto import RSAPrivateKey

from training.access.membership import Membership, admitted
from training.access.signatures import PeerKey
from training.averaging.guard import GuardedGradientAverager
from training.network.connection import Identity, Network, alone_in
from training.records.validator import RecordValidator
from training.run import status
from training.run.runfile import RunFile
from training.sparse import payload, report
from training.sparse.codec import encode
from training.sparse.payload import Round
from training.sparse.peer import ErrorFeedback, Peer
from training.sparse.report import Report
from training.sparse.store import StoreError
from training.sparse.web_store import WebStore
from training.volunteer import peer
from training.volunteer.contribution import Contribution

logger = logging.getLogger(__name__)

SPOIL = -1000.0
EXAGGERATION = 10
POISON_SECONDS = 2.0
A_MONTH = 30 * 86_400.0
FAR_STEP = 1_000_000


def lie() -> None:
    """Make this process' volunteer a liar, whatever the run exchanges."""
    forge(SPOIL)
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


def forge(factor: float) -> None:
    """Make it send its updates times a factor, and claim more sequences than it computed."""
    offer, write, settle = ErrorFeedback.offer, payload.write, Peer._settle

    def spoil(self: ErrorFeedback, difference: torch.Tensor) -> bytes:
        offer(self, difference)
        return encode(factor * self.residual, self.layout)

    def exaggerate(of: Round, samples: int, update: bytes, key: PeerKey) -> bytes:
        return write(of, EXAGGERATION * samples, update, key)

    def claim(self: Peer, *, was_taken: bool) -> None:
        claimed = EXAGGERATION * self._pending
        settle(self, was_taken=False)
        self.samples += claimed

    def persist(self: ErrorFeedback) -> None:
        """Keep at it."""

    ErrorFeedback.offer = spoil  # type: ignore[method-assign]
    ErrorFeedback.give_up = persist  # type: ignore[method-assign]
    payload.write = exaggerate
    Peer._settle = claim  # type: ignore[method-assign]


class Signer(RecordValidator):
    """Seals what is under its own key, and takes everything for valid."""

    def validate(self, _record: DHTRecord) -> bool:
        """Accept every record: the others are to refuse it."""
        return True


def poison(_: object, run: RunFile, options: peer.PeerOptions, stop: threading.Event) -> None:
    """Write bad records under every key of a run, or bad files to its host, until `stop` is set."""
    with alone_in(options.folder):
        identity = Identity.read(options.folder)
        with admitted(run, identity.key, options.folder, print, stop) as membership:
            way = _poison_host if run.get_recipe().sparse else _poison_records
            way(run, identity, options, membership, stop)


def _poison_records(
    run: RunFile,
    identity: Identity,
    options: peer.PeerOptions,
    membership: Membership | None,
    stop: threading.Event,
) -> None:
    def make(network: Network) -> Signer:
        return Signer(network.run, network.key, network.membership)

    setattr(Network, "make_validator", make)  # noqa: B010
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


def _poison_host(
    run: RunFile,
    identity: Identity,
    options: peer.PeerOptions,
    membership: Membership | None,
    stop: threading.Event,
) -> None:
    store, count = WebStore(run.exchange, membership), 0
    while not stop.wait(POISON_SECONDS):
        status.write(options.folder, {"started": True, "records": count})
        with suppress(StoreError):
            here = store.describe().round
            for upload, content in bad_files(run.name, here, identity.key):
                count += 1
                with suppress(StoreError):
                    (store.report if upload == "report" else store.put)(content)


def bad_files(run: str, number: int, key: PeerKey) -> list[tuple[str, bytes]]:
    """Files that no host takes in a round: what each pretends to be, and its bytes."""
    now, stranger = time.time(), RSAPrivateKey()
    here = Round(run, number, "0" * 64)
    rounds = [here, replace(here, number=FAR_STEP), replace(here, run="another")]
    told = Report("trudy", "training", now, now, number, 0.0, 0, 0)
    files = [
        b"nobody signed this",
        *(payload.write(of, 10**9, bytes(64), key) for of in rounds),
        payload.write(here, 64, bytes(64), stranger),
    ]
    reports = [
        report.write(run, replace(told, time=now + A_MONTH), key),
        report.write("another", told, key),
        report.write(run, told, stranger),
    ]
    return [*(("update", one) for one in files), *(("report", one) for one in reports)]


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
    "turncoat": partial(forge, -1.0),
    "poisoner": lambda: setattr(peer, "join", poison),
}


if __name__ == "__main__":
    ROLES[sys.argv[1]]()
    del sys.argv[1]
    runpy.run_module("training", run_name="__main__", alter_sys=True)
