import json
from pathlib import Path

import pytest
import torch

from training import checkpoint
from training.live import LiveFolder
from training.model import TextToImageTransformer, build_model
from training.recipes import TINY


def new_model(value: float) -> TextToImageTransformer:
    model = build_model(TINY)
    with torch.no_grad():
        next(model.parameters()).fill_(value)
    return model


def test_a_volunteer_gets_what_the_monitor_published(tmp_path: Path) -> None:
    live = LiveFolder(tmp_path)
    checkpoint.publish(live, new_model(1.0), 10, 3.5, "sooner")
    checkpoint.publish(live, new_model(2.0), 20, 3.0, "later")
    step, model = checkpoint.fetch(str(tmp_path))
    assert step == 20
    for ours, theirs in zip(model.parameters(), new_model(2.0).parameters(), strict=True):
        assert torch.equal(ours, theirs)


def test_only_the_newest_files_are_kept_and_the_list_says_so(tmp_path: Path) -> None:
    live = LiveFolder(tmp_path)
    for step in range(1, checkpoint.KEPT + 3):
        checkpoint.publish(live, new_model(step), step, None, "")
    entries = json.loads((tmp_path / "checkpoints.json").read_text())
    assert [entry["step"] for entry in entries] == [1, 2, 3, 4, 5]
    there = [entry["address"] is not None for entry in entries]
    assert there == [False, False, True, True, True]
    assert sorted(p.name for p in (tmp_path / "checkpoints").iterdir()) == [
        "000003",
        "000004",
        "000005",
    ]
    assert all((tmp_path / e["address"]).exists() for e in entries if e["address"])


def test_weights_that_differ_from_their_sum_are_refused(tmp_path: Path) -> None:
    folder = checkpoint.publish(LiveFolder(tmp_path), new_model(1.0), 10, None, "")
    weights = folder / checkpoint.WEIGHTS
    changed = bytearray(weights.read_bytes())
    changed[-1] ^= 1
    weights.write_bytes(changed)
    with pytest.raises(checkpoint.CheckpointError, match="is not what the list says"):
        checkpoint.fetch(str(tmp_path))


def test_without_a_checkpoint_the_message_says_so(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"checkpoints\.json"):
        checkpoint.fetch(str(tmp_path))
    LiveFolder(tmp_path).write_checkpoints([])
    with pytest.raises(checkpoint.CheckpointError, match="no checkpoint is published"):
        checkpoint.fetch(str(tmp_path))
