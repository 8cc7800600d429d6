"""A newcomer's state: from a peer or from the published checkpoint, whichever is here sooner."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from tests.training.hub_repository import serve
from training.averaging.optimizer import StateUnavailableError
from training.averaging.state import StateDownload, TrainingState
from training.model import checkpoint
from training.model.build import build_model
from training.run.live import LiveFolder
from training.run.recipes import TINY
from training.volunteer.recovery import Recovery

MODEL = build_model(TINY)
STEP = 10


@dataclass
class Optimizer:
    """Waits for a peer's state as the real one does, or takes what is offered meanwhile."""

    global_epoch: int
    peers: Callable[[], int | None]  # the step of the state that peers sent, None: none yet
    patience: float = 20.0
    local_epoch: int = 0
    adopted: list[TrainingState] = field(default_factory=list)
    opt: torch.optim.Optimizer = field(
        default_factory=lambda: torch.optim.SGD([torch.zeros(1)], lr=0.1)
    )
    state_averager: Any = field(
        default_factory=lambda: SimpleNamespace(offered=None, took_offered=False)
    )

    @property
    def tracker(self) -> Any:
        return SimpleNamespace(global_epoch=self.global_epoch)

    def load_state_from_peers(self) -> None:
        deadline = time.monotonic() + self.patience
        while time.monotonic() < deadline:
            if self.state_averager.offered is not None:
                self.state_averager.took_offered = True
                self.local_epoch = self.state_averager.offered.epoch
                return
            if (step := self.peers()) is not None:
                self.local_epoch = step
                return
            time.sleep(0.01)
        raise StateUnavailableError("no peer sent a usable state")

    def with_parameters(
        self,
        epoch: int,
        parameters: list[torch.Tensor],
        states: list[torch.Tensor] | None = None,
    ) -> TrainingState:
        assert states is None  # these checkpoints were published without
        return TrainingState(epoch, [], parameters)

    def adopt(self, state: TrainingState) -> None:
        self.adopted.append(state)
        self.local_epoch = state.epoch


def recover(optimizer: Optimizer, live: str, folder: Path) -> tuple[Recovery, list[str]]:
    said: list[str] = []
    stream: Any = None
    return Recovery(optimizer, stream, TINY, live, folder, said.append), said  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> str:
    live = LiveFolder(tmp_path_factory.mktemp("live"))
    checkpoint.publish(live, MODEL, STEP, 3.0, "")
    return str(live.path)


def test_a_new_checkpoint_that_is_here_first_is_taken(live: str, tmp_path: Path) -> None:
    optimizer = Optimizer(global_epoch=STEP + 1, peers=lambda: None)
    recovery, said = recover(optimizer, live, tmp_path)
    recovery.download()
    assert optimizer.local_epoch == STEP
    (told,) = said
    assert f"the published checkpoint of step {STEP}, which arrived before" in told
    assert optimizer.state_averager.offered is None


def test_a_peers_state_that_is_here_first_is_taken(live: str, tmp_path: Path) -> None:
    optimizer = Optimizer(global_epoch=STEP + 1, peers=lambda: STEP + 1)
    recovery, said = recover(optimizer, live, tmp_path)
    recovery.download()
    assert (optimizer.local_epoch, said) == (STEP + 1, [])
    time.sleep(0.3)  # the checkpoint arrives when nobody waits for it any more
    assert optimizer.state_averager.offered is None
    assert not optimizer.adopted


def test_an_older_checkpoint_waits_for_the_peers_to_fail(live: str, tmp_path: Path) -> None:
    optimizer = Optimizer(global_epoch=STEP + 5, peers=lambda: None, patience=1.5)
    recovery, said = recover(optimizer, live, tmp_path)
    recovery.download()
    assert not optimizer.state_averager.took_offered
    assert [state.epoch for state in optimizer.adopted] == [STEP]
    assert said == [
        "no peer sent a usable state: taking the published checkpoint",
        f"continuing from the published checkpoint of step {STEP}",
    ]
    for ours, theirs in zip(optimizer.adopted[0].tensors, recovery_parameters(), strict=True):
        assert torch.equal(ours, theirs)


def test_without_a_checkpoint_the_volunteer_is_told(tmp_path: Path) -> None:
    optimizer = Optimizer(global_epoch=1, peers=lambda: None, patience=0.1)
    recovery, said = recover(optimizer, str(tmp_path / "nowhere"), tmp_path)
    recovery.download()
    assert "no peer sent a usable state" in said[0]
    assert "the run has not published a checkpoint yet" in said[1]


def test_a_changed_checkpoint_is_refused_and_the_volunteer_told(tmp_path: Path) -> None:
    with serve() as server:
        server.commits["main"] = {
            "checkpoints.json": (
                b'[{"step": 10, "loss": null, "time": "", "address": "model.safetensors",'
                b' "sha256": "' + b"0" * 64 + b'"}]'
            ),
            "model.safetensors": b"something else",
        }
        optimizer = Optimizer(global_epoch=STEP, peers=lambda: None)
        address = f"{server.address}/someone/model/resolve/main"
        recovery, said = recover(optimizer, address, tmp_path)
        recovery.take_checkpoint()
    assert not optimizer.adopted
    assert "is not what the list says: its SHA-256 differs" in said[0]


def test_a_download_from_a_peer_ends_when_a_checkpoint_is_offered() -> None:
    download = Unstarted()
    state = TrainingState(STEP, [], [torch.ones(2)])
    threading.Timer(0.3, lambda: setattr(download, "offered", state)).start()
    assert download.load_state_from_peers(timeout=20.0) == state.as_loaded()
    assert download.took_offered


class Unstarted(StateDownload):
    """Without the process that the library starts for each."""

    def __init__(self) -> None:
        # nobody takes up the search, so no peer's state ever comes
        self._outer_pipe = SimpleNamespace(send=lambda _call: None)

    def __del__(self) -> None:
        pass


def recovery_parameters() -> list[torch.Tensor]:
    from training.averaging.optimizer import ordered_parameters

    return [parameter.detach() for parameter in ordered_parameters(MODEL, TINY)]
