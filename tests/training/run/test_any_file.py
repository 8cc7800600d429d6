"""Whatever a file holds: its reader gives what it can, or one line that names the file."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from calculator.errors import InputError
from training.access import trust
from training.access.membership import FILE_NAME, Membership
from training.run import atomic, status
from training.run.live import LiveFolder, read_samples
from training.run.supervisor import Worker

NUMBERS = st.none() | st.booleans() | st.integers() | st.floats()
KEYS = st.sampled_from(["step", "time", "pid", "started", "grant", "authority_key", "name", "a"])
VALUES = st.recursive(
    NUMBERS | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=8,
)
CONTENTS = st.binary(max_size=40) | VALUES.map(lambda value: json.dumps(value).encode())
DEEP = b"[" * 100_000
NO_UTF_8 = b'{"started": "\xff"}'

Reader = Callable[[Path], Any]


def read_status(folder: Path) -> object:
    worker = Worker([], folder)
    return status.read(folder), worker.has_started, worker.hangs


def is_trusted(_folder: Path) -> bool:
    return trust.is_trusted("https://example.org")


READERS: dict[str, tuple[str, Reader]] = {
    "status": ("status.json", read_status),
    "access": (FILE_NAME, lambda folder: Membership(folder, "run", "key").read()),
    "trust": ("training-transformers-together/trusted-authorities.json", is_trusted),
    "peers": ("peers.json", lambda folder: LiveFolder(folder).read_peers()),
    "checkpoints": ("checkpoints.json", lambda folder: LiveFolder(folder).read_checkpoints()),
    "samples": ("samples.json", read_samples),
    "progress": ("progress.jsonl", lambda folder: LiveFolder(folder).progress.read()),
}
NEVER_FAIL = ("status", "access")  # a volunteer goes on without them


@pytest.mark.parametrize("name", READERS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(content=CONTENTS)
@example(content=DEEP)
@example(content=NO_UTF_8)
def test_any_content_is_read_or_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, content: bytes
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    file, read = READERS[name]
    atomic.write_bytes(tmp_path / file, content + b"\n")
    refusals = []
    try:
        read(tmp_path)
    except InputError as error:
        refusals.append(str(error))
    assert not (refusals and name in NEVER_FAIL)
    for refusal in refusals:
        assert Path(file).name in refusal
        assert len(refusal.splitlines()) == 1
