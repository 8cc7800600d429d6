from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.training.disk import full
from training.averaging.state import TrainingState
from training.volunteer import backup
from training.volunteer.backup import Backup

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
    assert after.state.epoch == 7
    assert after.state.optimizer_metadata == before.state.optimizer_metadata
    assert after.stream == before.stream
    torch.testing.assert_close(after.state.tensors, before.state.tensors, rtol=0, atol=0)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e30])
def test_a_broken_state_is_not_restored(tmp_path: Path, value: float) -> None:
    backup.save(tmp_path / "backup.pt", make_backup(value))
    assert backup.load(tmp_path / "backup.pt", PARAMETERS) is None


@pytest.mark.parametrize("content", [b"", b"not a backup", b"PK\x03\x04 half", None])
def test_no_backup_or_another_models_is_not_restored(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "backup.pt"
    assert backup.load(path, PARAMETERS) is None
    backup.save(path, make_backup())
    if content is not None:
        path.write_bytes(content)
    parameters = PARAMETERS if content is not None else [torch.zeros(2, 4), torch.zeros(4)]
    assert backup.load(path, parameters) is None


def test_a_full_disk_leaves_the_backup_of_before(tmp_path: Path) -> None:
    path, said = tmp_path / "backup.pt", list[str]()
    backup.save(path, make_backup(), said.append)
    with full(100):
        backup.save(path, make_backup(2.0), said.append)
    assert len(said) == 1
    assert "could not be written" in said[0]
    kept = backup.load(path, PARAMETERS)
    assert kept.state.tensors[0].eq(1.0).all()
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.filterwarnings("ignore:Detected pickle protocol")  # PyTorch's, before it refuses
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_backup_with_other_bytes_is_read_or_left(tmp_path: Path, data: st.DataObject) -> None:
    good = tmp_path / "good.pt"
    if not good.exists():
        backup.save(good, make_backup())
    content = bytearray(good.read_bytes())
    for _ in range(data.draw(st.integers(1, 5))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    (tmp_path / "backup.pt").write_bytes(content[: data.draw(st.integers(0, len(content)))])
    backup.load(tmp_path / "backup.pt", PARAMETERS)
    (tmp_path / "backup.pt").write_bytes(content)
    backup.load(tmp_path / "backup.pt", PARAMETERS)
