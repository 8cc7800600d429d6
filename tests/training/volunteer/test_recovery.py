"""A newcomer's state, from a peer or from the checkpoint; a volunteer alone with its bad luck."""

import json
from pathlib import Path
from unittest.mock import Mock

import pytest
import torch

from tests.training.forks import Fork
from tests.training.processes import PATIENCE
from training.averaging.optimizer import StateUnavailableError, ordered_parameters
from training.model import checkpoint
from training.model.build import build_model
from training.run.live import LiveFolder
from training.run.recipes import TINY
from training.volunteer import backup
from training.volunteer.recovery import Recovery

SCRIPT = Path(__file__).with_name("unlucky.py")
MODEL = build_model(TINY)
STEP = 10


def publish(folder: Path) -> Path:
    """Publish the model; the checkpoint's own folder."""
    return checkpoint.publish(LiveFolder(folder / "live"), MODEL, STEP, None, "")


def download(folder: Path, *failure: Exception) -> tuple[Mock, list[str]]:
    """The optimizer of a newcomer that looked for a state, and what was said meanwhile."""
    said: list[str] = []
    optimizer = Mock(opt=torch.optim.SGD([torch.zeros(1)], lr=0.1), local_epoch=0)
    optimizer.load_state_from_peers.side_effect = failure or None
    live = str(folder / "live")
    Recovery(optimizer, Mock(), TINY, live, folder, said.append).download()
    return optimizer, said


NO_STATE = StateUnavailableError("no peer sent a usable state")


def test_the_checkpoint_is_taken_where_no_peer_sends_a_state(tmp_path: Path) -> None:
    publish(tmp_path)
    served, said = download(tmp_path)
    assert not served.adopt.called
    assert said == []
    optimizer, said = download(tmp_path, NO_STATE)
    assert said == [
        "no peer sent a usable state: taking the published checkpoint",
        f"continuing from the published checkpoint of step {STEP}",
    ]
    made = optimizer.with_parameters  # a state of them
    optimizer.adopt.assert_called_once_with(made.return_value)
    step, parameters = made.call_args.args
    assert (step, made.call_args.kwargs) == (STEP, {"states": None})  # published without any
    expected = [parameter.detach() for parameter in ordered_parameters(MODEL, TINY)]
    torch.testing.assert_close(parameters, expected, rtol=0, atol=0)


def test_without_a_good_checkpoint_the_volunteer_is_told(tmp_path: Path) -> None:
    optimizer, (first, second) = download(tmp_path, NO_STATE)
    assert "no peer sent a usable state" in first
    assert "the run has not published a checkpoint yet" in second
    assert not optimizer.adopt.called
    (publish(tmp_path) / checkpoint.WEIGHTS).write_bytes(b"something else")
    optimizer, said = download(tmp_path, NO_STATE)
    assert "is not what the list says" in said[1]
    assert not optimizer.adopt.called


@pytest.mark.swarm
def test_a_volunteer_outlives_its_bad_luck(tmp_path: Path) -> None:
    """As a real process, with nobody there, it begins at the published checkpoint, drops what is
    not sound, goes on from the last state that was, and keeps a sound backup when it leaves.
    """
    publish(tmp_path)
    folder = tmp_path / "volunteer"
    words, terminal = [str(folder), str(tmp_path / "live")], folder / "terminal.txt"
    code, said = Fork(words, folder, terminal, program=SCRIPT).run(PATIENCE)
    assert code == 0, said[-2000:]
    seen: dict[str, int] = json.loads((folder / "seen.json").read_text())
    assert seen["first step"] == STEP
    assert f"continuing from the published checkpoint of step {STEP}" in said
    assert seen["broken loss"] == STEP + 1
    assert "a micro-batch's loss was not finite: dropping it" in said
    assert (seen["broken model"], seen["broken optimizer"]) == (13, 15)
    assert seen["rejected"] >= 4  # a loss, and three times weights
    assert seen["sound"]
    assert seen["last step"] > seen["huge weights"] > seen["broken optimizer"]
    kept = backup.load(folder / "backup.pt", ordered_parameters(MODEL, TINY))
    assert kept.state.epoch >= seen["last step"]
