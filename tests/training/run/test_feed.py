"""The feed of a run's milestones, held against RFC 4287, which defines Atom."""

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from templates.pieces.recorded_run import first_run
from training.run.feed import ATOM, MOST_CHECKPOINTS
from training.run.live import CheckpointEntry, LiveFolder, RunCard

CARD = RunCard("a run", "A <run> & more", "tiny", {}, 100, {}, "2026-01-01T00:00:00.000Z", "join")


@pytest.fixture
def live(tmp_path: Path) -> LiveFolder:
    """The folder of a run that has started."""
    live = LiveFolder(tmp_path)
    live.start(CARD)
    return live


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
