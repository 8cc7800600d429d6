import json
from dataclasses import replace
from pathlib import Path

import pytest

from training.run.live import (
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


def test_a_line_has_exactly_the_fields_of_the_contract(tmp_path: Path) -> None:
    LiveFolder(tmp_path).append(LINE)
    assert list(json.loads((tmp_path / "progress.jsonl").read_text())) == [
        "step",
        "time",
        "loss",
        "samples",
        "samples_per_second",
        "training",
        "syncing",
        "left",
        "bytes_sent",
        "bytes_received",
        "rejected",
    ]


@pytest.mark.parametrize("loss", [None, float("nan"), float("inf")])
def test_a_loss_that_is_none_is_written_as_null(tmp_path: Path, loss: float | None) -> None:
    LiveFolder(tmp_path).append(replace(LINE, loss=loss))
    assert json.loads((tmp_path / "progress.jsonl").read_text())["loss"] is None


def test_a_new_process_continues_after_the_last_step(tmp_path: Path) -> None:
    assert LiveFolder(tmp_path).last_step() == 0
    LiveFolder(tmp_path).append(replace(LINE, step=7))
    assert LiveFolder(tmp_path).last_step() == 7


def test_a_restart_keeps_the_time_of_the_start_and_the_end_is_noted(tmp_path: Path) -> None:
    live = LiveFolder(tmp_path)
    live.start(CARD)
    live.start(replace(CARD, start="2027", title="Another title"))
    card = json.loads((tmp_path / "run.json").read_text())
    assert (card["start"], card["title"], card["finished"]) == ("2026", "Another title", None)
    live.finish("2028")
    assert json.loads((tmp_path / "run.json").read_text())["finished"] == "2028"


def test_contributors_come_back_as_written(tmp_path: Path) -> None:
    who = Contributor("id", "alice", 64, 10.5, timestamp(0), timestamp(1), "training", 2)
    LiveFolder(tmp_path).write_peers([who])
    assert LiveFolder(tmp_path).read_peers() == [who]


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
