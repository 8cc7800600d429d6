from pathlib import Path

import pytest
import torch

from training import backup
from training.backup import Backup
from training.state import TrainingState

PARAMETERS = [torch.zeros(2, 3), torch.zeros(4)]


def make_backup(value: float = 1.0) -> Backup:
    tensors = [torch.full((2, 3), value), torch.ones(4), torch.arange(9, dtype=torch.uint8)]
    metadata = [{"type": "tensor", "index": 0}, {"type": "value", "value": 0.02}]
    stream = {"epoch": 2, "random": {"state": {"state": 2**100}}, "buffer": [{"code": b"\x00\xff"}]}
    return Backup(TrainingState(7, metadata, tensors), stream)


def test_a_backup_comes_back_as_it_was(tmp_path: Path) -> None:
    before = make_backup()
    backup.save(tmp_path / "backup.pt", before)
    after = backup.load(tmp_path / "backup.pt", PARAMETERS)
    assert after is not None
    assert after.state.epoch == 7
    assert after.state.optimizer_metadata == before.state.optimizer_metadata
    assert after.stream == before.stream
    for ours, theirs in zip(after.state.tensors, before.state.tensors, strict=True):
        assert torch.equal(ours, theirs)
        assert ours.dtype == theirs.dtype


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_broken_state_is_not_restored(tmp_path: Path, value: float) -> None:
    backup.save(tmp_path / "backup.pt", make_backup(value))
    assert backup.load(tmp_path / "backup.pt", PARAMETERS) is None


def test_the_backup_of_another_model_is_not_restored(tmp_path: Path) -> None:
    backup.save(tmp_path / "backup.pt", make_backup())
    assert backup.load(tmp_path / "backup.pt", [torch.zeros(2, 4), torch.zeros(4)]) is None


@pytest.mark.parametrize("content", [b"", b"not a backup", b"PK\x03\x04 half"])
def test_a_file_that_is_no_backup_is_not_restored(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "backup.pt").write_bytes(content)
    assert backup.load(tmp_path / "backup.pt", PARAMETERS) is None
    assert backup.load(tmp_path / "nothing.pt", PARAMETERS) is None
