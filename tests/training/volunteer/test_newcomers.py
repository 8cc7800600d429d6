"""A newcomer's state: from a peer, or from the published checkpoint."""

from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from training.averaging.optimizer import StateUnavailableError, ordered_parameters
from training.averaging.state import TrainingState
from training.model import checkpoint
from training.model.build import build_model
from training.run.live import LiveFolder
from training.run.recipes import TINY
from training.volunteer.recovery import Recovery

MODEL = build_model(TINY)
STEP = 10


@dataclass
class Optimizer:
    """Takes the state that peers have, if they have one."""

    sent: int | None = None  # the step of the peers' state
    local_epoch: int = 0
    adopted: list[TrainingState] = field(default_factory=list)
    opt: torch.optim.Optimizer = field(
        default_factory=lambda: torch.optim.SGD([torch.zeros(1)], lr=0.1)
    )
    tracker: Any = field(default_factory=lambda: SimpleNamespace(global_epoch=1))

    def load_state_from_peers(self) -> None:
        if self.sent is None:
            raise StateUnavailableError("no peer sent a usable state")
        self.local_epoch = self.sent

    def with_parameters(
        self, epoch: int, parameters: list[torch.Tensor], states: list[torch.Tensor] | None = None
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


def test_the_checkpoint_is_taken_where_no_peer_sends_a_state(live: str, tmp_path: Path) -> None:
    served = Optimizer(STEP + 1)
    recovery, said = recover(served, live, tmp_path)
    recovery.download()
    assert (served.local_epoch, served.adopted, said) == (STEP + 1, [], [])
    optimizer = Optimizer()
    recovery, said = recover(optimizer, live, tmp_path)
    recovery.download()
    assert [state.epoch for state in optimizer.adopted] == [STEP]
    assert said == [
        "no peer sent a usable state: taking the published checkpoint",
        f"continuing from the published checkpoint of step {STEP}",
    ]
    published = [parameter.detach() for parameter in ordered_parameters(MODEL, TINY)]
    torch.testing.assert_close(optimizer.adopted[0].tensors, published, rtol=0, atol=0)


@pytest.mark.parametrize(
    ("is_published", "words"),
    [(False, "the run has not published a checkpoint yet"), (True, "is not what the list says")],
)
def test_without_a_good_checkpoint_the_volunteer_is_told(
    tmp_path: Path, is_published: bool, words: str
) -> None:
    if is_published:
        folder = checkpoint.publish(LiveFolder(tmp_path / "live"), MODEL, STEP, 3.0, "")
        (folder / checkpoint.WEIGHTS).write_bytes(b"something else")
    optimizer = Optimizer()
    recovery, said = recover(optimizer, str(tmp_path / "live"), tmp_path)
    recovery.download()
    assert not optimizer.adopted
    assert "no peer sent a usable state" in said[0]
    assert words in said[1]
