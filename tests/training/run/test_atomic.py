import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from tests.training.disk import full
from training.run import atomic


def test_a_failure_while_writing_leaves_the_old_file_and_no_litter(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")

    def write_half() -> None:
        with atomic.replacing(path) as temporary:
            temporary.write_text("half of the ne")
            raise RuntimeError("power cut")

    with pytest.raises(RuntimeError, match="power cut"):
        write_half()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_two_threads_replace_a_file_at_the_same_time(tmp_path: Path) -> None:
    path, both_wrote = tmp_path / "status.json", Barrier(2, timeout=120)

    def write(word: str) -> None:
        with atomic.replacing(path) as temporary:
            temporary.write_text(word)
            both_wrote.wait()

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(write, ["one", "two"]))
    assert path.read_text() in {"one", "two"}
    assert list(tmp_path.iterdir()) == [path]


def test_a_number_that_json_does_not_know_is_refused(tmp_path: Path) -> None:
    atomic.write_json(tmp_path / "file", {"loss": 1.0})
    with pytest.raises(ValueError, match="JSON compliant"):
        atomic.write_json(tmp_path / "file", {"loss": float("nan")})
    assert atomic.read_json(tmp_path / "file") == {"loss": 1.0}


@pytest.mark.parametrize("cut", range(1, 12))
def test_a_line_cut_by_a_crash_is_dropped_and_the_next_is_whole(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "progress.jsonl"
    lines = atomic.AppendOnlyLines(path)
    lines.append({"step": 1})
    lines.append({"step": 2})
    with path.open("rb+") as file:
        file.truncate(path.stat().st_size - cut)
    assert lines.read() == [{"step": 1}]  # a reader before the restart
    again = atomic.AppendOnlyLines(path)
    again.append({"step": 3})
    assert [json.loads(line) for line in path.read_text().splitlines()] == [
        {"step": 1},
        {"step": 3},
    ]


def test_a_line_that_a_full_disk_cut_is_taken_back(tmp_path: Path) -> None:
    lines = atomic.AppendOnlyLines(tmp_path / "progress.jsonl")
    lines.append({"step": 1})
    with full(lines.path.stat().st_size + 5), pytest.raises(OSError, match="no room"):
        lines.append({"step": 2})
    lines.append({"step": 3})
    assert lines.read() == [{"step": 1}, {"step": 3}]
