"""Data on a Hub that goes down and comes back."""

import json
import tempfile
from contextlib import ExitStack
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest
from huggingface_hub import constants

from calculator.errors import InputError
from tests.training.answering import Answering, served
from tests.training.data.test_reading import GOOD, RECIPE, write
from training.data import streaming
from training.rehearsal.command import free_port

REVISION = "0" * 40


class HubOfData(ThreadingHTTPServer):
    """Speaks the Hub's interface for one data set; the first `broken` files are errors."""

    daemon_threads = True

    def __init__(self, port: int, files: dict[str, bytes], broken: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.files, self.broken = files, broken


class _Handler(Answering):
    protocol_version = "HTTP/1.1"
    server: HubOfData

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        files = self.server.files
        if path.startswith("/api/datasets/someone/pictures/tree/"):
            listed = [
                {"type": "file", "path": name, "size": len(files[name]), "oid": name}
                for name in files
            ]
            return self.answer(json.dumps(listed).encode())
        if path.startswith("/api/datasets/someone/pictures"):
            about = {"id": "someone/pictures", "sha": REVISION, "siblings": []}
            return self.answer(json.dumps(about).encode())
        name = path.removeprefix(f"/datasets/someone/pictures/resolve/{REVISION}/")
        if name not in files:
            return self.answer(b"{}", 404, X_Error_Code="EntryNotFound")
        if self.server.broken > 0:
            self.server.broken -= 1
            return self.answer(b"broken", 503)
        etag = f'"{Path(name).name}"'
        return self.answer(files[name], ETag=etag, X_Repo_Commit=REVISION)


@pytest.fixture
def port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """The port of this machine where the Hub is looked for."""
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    template = address + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(constants, "ENDPOINT", address)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
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
                stack.enter_context(served(HubOfData(port, files, broken=3)))

        stream = streaming.stream(RECIPE, b"peer", "someone/pictures", 2, say=say)
        batches = [next(stream)["image_codes"] for _ in range(10)]  # two epochs
    assert "waiting for their host" in said[0]
    assert not any(codes.any() for codes in batches)
    assert any("shard data/train-1.parquet is left out" in line for line in said)
    assert not list(tmp_path.glob("shard-*"))  # shards go after they were read


def test_a_data_set_without_files_is_refused_at_once(port: int) -> None:
    with served(HubOfData(port, {})):
        stream = streaming.stream(RECIPE, b"peer", "someone/pictures", 2)
        with pytest.raises(InputError, match="the data set"):
            next(stream)
