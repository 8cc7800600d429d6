"""Data on a Hub that goes down and comes back."""

import tempfile
from contextlib import ExitStack
from pathlib import Path

import pytest

from calculator.errors import InputError
from tests.training.answering import served
from tests.training.data.test_reading import GOOD, RECIPE, write
from tests.training.hub_repository import HubRepository, use_hub
from training.data import streaming
from training.rehearsal.command import free_port


def hub_with(port: int, files: dict[str, bytes], broken: int = 0) -> HubRepository:
    """A Hub of these files, of which the first that it is asked for are errors."""
    hub = HubRepository(port)
    hub.commits["0" * 40], hub.fail = files, {"file": broken}
    return hub


@pytest.fixture
def port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """The port of this machine where the Hub is looked for."""
    port = free_port()
    use_hub(monkeypatch, f"http://127.0.0.1:{port}")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return port


def test_a_host_that_is_down_is_waited_for(tmp_path: Path, port: int) -> None:
    shard = write(tmp_path, [GOOD] * 10).read_bytes()
    files = {"data/train-0.parquet": shard, "data/train-1.parquet": b"none", "a.txt": b""}
    said: list[str] = []
    with ExitStack() as stack:

        def say(line: str) -> None:
            said.append(line)
            if len(said) == 1:
                stack.enter_context(served(hub_with(port, files, broken=3)))

        stream = streaming.stream(RECIPE, b"peer", "someone/pictures", 2, say=say)
        batches = [next(stream)["image_codes"] for _ in range(10)]  # two epochs
    assert "waiting for their host" in said[0]
    assert not any(codes.any() for codes in batches)
    assert any("shard data/train-1.parquet is left out" in line for line in said)
    assert not list(tmp_path.glob("shard-*"))  # shards go after they were read


def test_a_data_set_without_files_is_refused_at_once(port: int) -> None:
    with served(hub_with(port, {})):
        stream = streaming.stream(RECIPE, b"peer", "someone/pictures", 2)
        with pytest.raises(InputError, match="the data set"):
            next(stream)
