"""Data on a Hub that goes down and comes back, read by a process of its own."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest
from huggingface_hub import constants

from calculator.errors import InputError
from tests.training.answering import Answering, served
from tests.training.data.test_reading import GOOD, write
from tools.console import ROOT
from training.data import streaming
from training.rehearsal.command import free_port
from training.run.recipes import TINY

REVISION = "0" * 40
PATIENCE = 240.0  # seconds; a test takes as long only where it fails
READ = """
import sys
from training.data import streaming
from training.run.recipes import TINY
from dataclasses import replace
recipe = replace(TINY, data=replace(TINY.data, shuffle_buffer=4))
say = lambda line: print(line, flush=True)
stream = streaming.stream(recipe, b"peer", "someone/pictures", 2, say=say)
for number in range(int(sys.argv[1])):
    batch = next(stream)
    print("batch", number, int(batch["image_codes"].sum()), flush=True)
"""


class HubOfData(ThreadingHTTPServer):
    """A server that speaks the Hub's interface for one data set; `broken` answers with errors."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, port: int, files: dict[str, bytes]) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.files = files
        self.broken = 0


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


@contextmanager
def serve(port: int, files: dict[str, bytes]) -> Iterator[HubOfData]:
    server = HubOfData(port, files)
    with served(server):
        yield server


@contextmanager
def reading(port: int, batches: int, folder: Path) -> Iterator["subprocess.Popen[str]"]:
    environment = os.environ | {
        "HF_ENDPOINT": f"http://127.0.0.1:{port}",
        "HF_HOME": str(folder),
        "HF_HUB_OFFLINE": "0",
        "HF_HUB_DISABLE_XET": "1",
        "TMPDIR": str(folder),
    }
    process = subprocess.Popen(
        [sys.executable, "-c", READ, str(batches)],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    watch = threading.Timer(PATIENCE, process.kill)
    watch.start()
    try:
        yield process
    finally:
        watch.cancel()
        process.kill()
        process.communicate()


@pytest.fixture
def files(tmp_path: Path) -> dict[str, bytes]:
    shards = [write(tmp_path, [GOOD] * 10, number).read_bytes() for number in range(2)]
    return {"data/train-0.parquet": shards[0], "data/train-1.parquet": b"none", "a.txt": b""}


def test_a_host_that_is_down_is_waited_for(tmp_path: Path, files: dict[str, bytes]) -> None:
    port = free_port()
    (tmp_path / "reader").mkdir()
    with reading(port, 12, tmp_path / "reader") as process:
        first = process.stdout.readline()
        assert "waiting for their host" in first, first
        with serve(port, files) as server:
            server.broken = 3
            lines = [line.strip() for line in process.stdout]
    batches = [line for line in lines if line.startswith("batch")]
    assert batches == [f"batch {number} 0" for number in range(12)]
    assert any("shard data/train-1.parquet is left out" in line for line in lines)
    assert not list((tmp_path / "reader").glob("shard-*"))  # shards go after they were read


def test_a_data_set_without_files_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    with serve(0, {}) as server:
        monkeypatch.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{server.server_port}")
        stream = streaming.stream(TINY, b"peer", "someone/pictures", 2)
        with pytest.raises(InputError, match="the data set"):
            next(stream)
