"""A run's live data; its feed of milestones, held against RFC 4287, which defines Atom."""

import json
import zlib
from dataclasses import asdict, replace
from itertools import count
from pathlib import Path
from xml.etree import ElementTree

import pytest

from templates.pieces.recorded_run import first_run
from training.run.feed import ATOM, MOST_CHECKPOINTS
from training.run.live import (
    SMALLEST_BYTES,
    CheckpointEntry,
    Contributor,
    LiveFolder,
    ProgressLine,
    RunCard,
    read_samples,
    timestamp,
)

LINE = ProgressLine(1, timestamp(0.0), 4.75, 64, 20.0, 3, 1, 0, 10, 9, 0)
CARD = RunCard("a run", "A <run> & more", "tiny", {"layers": 3}, 100, {}, "2026", "join")


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
    return json.loads((live.path / "run.json").read_text())["compressed"]


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


def entry(step: int, loss: float | None = 1.5) -> CheckpointEntry:
    """A checkpoint, a minute after the one before."""
    time = f"2026-01-01T{step // 60:02d}:{step % 60:02d}:00.000Z"
    return CheckpointEntry(step, loss, time, None, "0" * 64)


def read(folder: Path) -> ElementTree.Element:
    """The feed's root."""
    return ElementTree.fromstring((folder / "feed.xml").read_bytes())


def texts(root: ElementTree.Element, path: str) -> list[str]:
    """The texts at a path, whose names are Atom's."""
    return [str(found.text) for found in root.findall(path, {"": ATOM})]


def test_start_checkpoints_and_end_are_in_the_feed_newest_first(live: LiveFolder) -> None:
    live.write_checkpoints([entry(1), entry(1_000, None)])
    live.finish("2026-01-02T00:00:00.000Z")
    root = read(live.path)
    steps = ["Checkpoint at step 1,000", "Checkpoint at step 1, loss 1.500"]
    assert texts(root, "entry/title") == ["Finished", *steps, "Started"]
    assert texts(root, "title") == [CARD.title]
    assert texts(root, "updated") == ["2026-01-02T00:00:00.000Z"]


def test_a_feed_and_its_entries_have_what_atom_asks_for(live: LiveFolder) -> None:
    live.write_checkpoints([entry(step) for step in range(1, 4)])
    root = read(live.path)
    assert root.tag == f"{{{ATOM}}}feed"
    for part in (root, *root.findall("entry", {"": ATOM})):
        for name in ("id", "title", "updated"):
            assert len(texts(part, name)) == 1
        (link,) = part.findall("link", {"": ATOM})
        assert link.get("href") == "../?run=a+run"
    assert len(texts(root, "author/name")) == 1


def test_a_long_run_lists_its_newest_checkpoints_under_names_that_stay(live: LiveFolder) -> None:
    names = []
    for steps in (198, 199):
        live.write_checkpoints([entry(step) for step in range(1, steps + 1)])
        root = read(live.path)
        names.append(texts(root, "entry/id"))
        assert len(set(names[-1])) == len(names[-1]) == MOST_CHECKPOINTS + 1
        assert f"step {steps}," in texts(root, "entry/title")[0]
    before, now = names
    assert now[1:] == [*before[:-2], before[-1]]


def test_a_title_with_control_characters_stays_xml(tmp_path: Path) -> None:
    LiveFolder(tmp_path).start(replace(CARD, title="a\0b\x1b[31m"))
    assert texts(read(tmp_path), "title") == ["ab[31m"]


def test_the_recorded_run_has_its_feed(tmp_path: Path) -> None:
    run = first_run()
    for name in ("run.json", "checkpoints.json"):
        (tmp_path / name).write_bytes((run.folder / name).read_bytes())
    LiveFolder(tmp_path).write_feed()
    assert (run.folder / "feed.xml").read_bytes() == (tmp_path / "feed.xml").read_bytes()
