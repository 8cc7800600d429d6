"""A small run to host: its layout, states and files."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from hivemind.utils.crypto import RSAPrivateKey
from torch.nn import functional

from training.run.recipes import SparseSettings
from training.sparse import payload, report
from training.sparse.closing import Swarm
from training.sparse.codec import encode
from training.sparse.host import Host
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


class Student:
    """A small model that learns a sum of some of 70 numbers, and its first weights.

    Args:
        seed: of its data. summed: numbers of the sum. count: of a local step's samples.
    """

    def __init__(self, seed: int = 0, summed: int = 70, count: int = 8) -> None:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            layers = torch.nn.Linear(70, 70), torch.nn.Tanh(), torch.nn.Linear(70, 1)
        self.model, self.summed, self.count = torch.nn.Sequential(*layers), summed, count
        self.parameters = list(self.model.parameters())
        self.generator = torch.Generator().manual_seed(seed)

    def draw(self, count: int) -> tuple[torch.Tensor, torch.Tensor]:
        inputs = torch.randn(count, 70, generator=self.generator)
        return inputs, inputs[:, : self.summed].sum(1, keepdim=True)

    def loss(self, inputs: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        return functional.mse_loss(self.model(inputs), wanted)

    def compute(self) -> int:
        self.loss(*self.draw(self.count)).backward()
        return self.count

    def peer_arguments(
        self, swarm: Swarm, state: SharedState, key: RSAPrivateKey, rate: float
    ) -> tuple[Any, ...]:
        """Arguments of a `Peer`."""
        optimizer = torch.optim.AdamW(self.parameters, lr=rate)
        return swarm, state.copy(), self.parameters, optimizer, self.compute, key


def make_host(
    folder: Path, closer: str, *, settings: SparseSettings = SETTINGS, **options: Any
) -> Host:
    """A host of the small run in a folder."""
    store = FolderStore(folder)
    return Host(make_swarm(folder, closer, store), store, first_state(), settings, **options)


def make_swarm(folder: Path, closer: str, store: Any = None) -> Swarm:
    return Swarm(RUN, LAYOUT, store or FolderStore(folder), {closer}, SETTINGS.outer_learning_rate)


def make_payload(
    swarm: Swarm,
    state: SharedState,
    key: RSAPrivateKey,
    samples: int = 16,
    size: float = 1e-3,
    **changes: Any,
) -> bytes:
    """A payload for the round of a state, or for one with such changes."""
    vector = torch.randn(swarm.layout.elements, generator=torch.Generator().manual_seed(7))
    of = replace(swarm.round_of(state), **changes)
    return payload.write(of, samples, encode(size * vector, swarm.layout), key)


def make_report(
    key: RSAPrivateKey, number: int = 0, state: str = "training", **fields: Any
) -> bytes:
    now = time.time()
    usual = Report("alice", state, now - 60, now, number, 2.0, bytes_sent=1, bytes_received=2)
    return report.write(RUN, replace(usual, **fields), key)
