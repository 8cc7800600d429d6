import json
import zlib
from dataclasses import asdict, replace
from itertools import count
from pathlib import Path

import pytest

from training.run.live import (
    SMALLEST_BYTES,
    Contributor,
    LiveFolder,
    ProgressLine,
    RunCard,
    read_samples,
    timestamp,
)

LINE = ProgressLine(
    step=1,
    time=timestamp(0.0),
    loss=4.75,
    samples=64,
    samples_per_second=20.0,
    training=3,
    syncing=1,
    left=0,
    bytes_sent=10,
    bytes_received=9,
    rejected=0,
)
CARD = RunCard("run", "A run", "tiny", {"layers": 3}, 100, {"total_steps": 10}, "2026", "join")


@pytest.fixture
def live(tmp_path: Path) -> LiveFolder:
    """The folder of a run that has started."""
    live = LiveFolder(tmp_path)
    live.start(CARD)
    return live


@pytest.mark.parametrize("loss", [None, float("nan"), float("inf")])
def test_a_loss_that_is_none_is_written_as_null(tmp_path: Path, loss: float | None) -> None:
    LiveFolder(tmp_path).append(replace(LINE, loss=loss))
    written = json.loads((tmp_path / "progress.jsonl").read_text())
    assert written == asdict(LINE) | {"loss": None}


def test_a_new_process_continues_after_the_last_step(tmp_path: Path) -> None:
    assert LiveFolder(tmp_path).last_step() == 0
    LiveFolder(tmp_path).append(replace(LINE, step=7))
    assert LiveFolder(tmp_path).last_step() == 7


def test_a_restart_keeps_the_time_of_the_start_and_the_end_is_noted(live: LiveFolder) -> None:
    live.start(replace(CARD, start="2027", title="Another title"))
    card = json.loads((live.path / "run.json").read_text())
    assert (card["start"], card["title"], card["finished"]) == ("2026", "Another title", None)
    live.finish("2028")
    assert json.loads((live.path / "run.json").read_text())["finished"] == "2028"


def test_pictures_are_named_by_prompt_and_checkpoint(tmp_path: Path) -> None:
    live = LiveFolder(tmp_path)
    live.add_samples(20, "later", ["a", "b"], [[b"1", b"2"], [b"3", b"4"]])
    live.add_samples(10, "sooner", ["a", "b"], [[b"5"], [b"6"]])
    live.add_samples(20, "again", ["a", "b"], [[b"7"], [b"8"]])
    samples = read_samples(tmp_path)
    assert samples["prompts"] == ["a", "b"]
    assert [entry["step"] for entry in samples["checkpoints"]] == [10, 20]
    assert samples["checkpoints"][1]["time"] == "again"
    name = samples["checkpoints"][1]["images"][1][0]
    assert (tmp_path / name).read_bytes() == b"8"


def compressed(live: LiveFolder) -> list[str]:
    names: list[str] = json.loads((live.path / "run.json").read_text())["compressed"]
    return names


def twin_of(plain: Path) -> bytes:
    """Content of the twin; it is a single member, since browsers take no second one."""
    reader = zlib.decompressobj(wbits=31)
    content = reader.decompress(plain.with_name(f"{plain.name}.gz").read_bytes())
    assert reader.eof
    assert reader.unused_data == b""
    return content


def grow(live: LiveFolder, size: int) -> None:
    """Append steps until `progress.jsonl` has at least so many bytes."""
    for step in count(live.last_step() + 1):
        if live.progress.path.stat().st_size >= size:
            return
        live.append(replace(LINE, step=step))


def test_a_short_run_has_no_compressed_files(live: LiveFolder) -> None:
    live.append(LINE)
    live.write_peers([])
    live.finish("2027")
    assert compressed(live) == []
    assert list(live.path.glob("*.gz")) == []


def test_a_long_run_has_its_first_steps_compressed_and_at_its_end_all(live: LiveFolder) -> None:
    plain = live.path / "progress.jsonl"
    grow(live, SMALLEST_BYTES)
    assert twin_of(plain) == plain.read_bytes()
    grow(live, 2 * SMALLEST_BYTES + 1000)
    assert compressed(live) == ["progress.jsonl"]
    first = twin_of(plain)
    assert plain.read_bytes().startswith(first)
    assert len(first) > SMALLEST_BYTES
    live.append(replace(LINE, step=live.last_step() + 1))
    assert twin_of(plain) == first, "it is not written again at each step"
    live.finish("2027")
    assert twin_of(plain) == plain.read_bytes()


def test_a_restarted_monitor_compresses_what_an_earlier_one_left(live: LiveFolder) -> None:
    grow(live, SMALLEST_BYTES)
    (live.path / "progress.jsonl.gz").unlink()
    live = LiveFolder(live.path)
    live.start(CARD)
    assert compressed(live) == ["progress.jsonl"]
    assert twin_of(live.progress.path) == live.progress.path.read_bytes()


def test_a_long_list_of_contributors_is_compressed_at_each_change(live: LiveFolder) -> None:
    who = Contributor("id", "alice", 64, 10.5, timestamp(0), timestamp(1), "training", 2)
    for length in (1000, 900, 1):
        live.write_peers([who] * length)
        peers = live.path / "peers.json"
        assert twin_of(peers) == peers.read_bytes()
    assert compressed(live) == ["peers.json"]
