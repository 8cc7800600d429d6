"""A small run to host: its layout, states and files."""

import time
from pathlib import Path
from typing import Any

import torch
from hivemind.utils.crypto import RSAPrivateKey

from training.run.recipes import SparseSettings
from training.sparse import payload, report
from training.sparse.closing import Swarm
from training.sparse.codec import encode
from training.sparse.layout import Layout
from training.sparse.report import Report
from training.sparse.shared import SharedState
from training.sparse.store import FolderStore

LAYOUT = Layout((5000, 70))
SETTINGS = SparseSettings(
    seconds=1e-9,
    learning_rate=1e-3,
    outer_learning_rate=1.0,
    quorum=2,
    grace=10.0,
    longest=100.0,
    largest_norm=100.0,
)
RUN = "our-run"


def first_state() -> SharedState:
    generator = torch.Generator().manual_seed(0)
    return SharedState(torch.randn(LAYOUT.elements, generator=generator))


def make_swarm(folder: Path, closer: str, store: Any = None) -> Swarm:
    return Swarm(RUN, LAYOUT, store or FolderStore(folder), {closer}, SETTINGS.outer_learning_rate)


def make_payload(
    swarm: Swarm, state: SharedState, key: RSAPrivateKey, samples: int = 16, size: float = 1e-3
) -> bytes:
    generator = torch.Generator().manual_seed(7)
    update = encode(size * torch.randn(LAYOUT.elements, generator=generator), LAYOUT)
    return payload.write(swarm.round_of(state), samples, update, key)


def make_report(
    key: RSAPrivateKey, number: int = 0, state: str = "training", **fields: Any
) -> bytes:
    now = time.time()
    usual: dict[str, Any] = {
        "name": "alice",
        "session": now - 60,
        "time": now,
        "loss": 2.0,
        "bytes_sent": 1,
        "bytes_received": 2,
    }
    return report.write(RUN, Report(state=state, number=number, **(usual | fields)), key)
