"""The recorded rehearsal that the site ships is whole and drawable, and its pictures are right."""

import json
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

from PIL import Image

from benchmarks.seeing import shows
from training.model import checkpoint
from training.pictures import generate
from training.run import atomic
from training.run.recipes import RECIPES

LIVE = Path(__file__).parents[3] / "docs" / "live" / "rehearsal"
CARD = json.loads((LIVE / "run.json").read_text())
SAMPLES = json.loads((LIVE / "samples.json").read_text())
PEERS = json.loads((LIVE / "peers.json").read_text())


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def test_it_lasted_a_quarter_of_an_hour_with_a_death_and_a_late_joiner() -> None:
    start, end = (_moment(CARD[key]) for key in ("start", "finished"))
    assert end - start >= timedelta(minutes=15)
    left = [peer for peer in PEERS if peer["state"] == "left"]
    assert left
    assert max(_moment(peer["last_seen"]) for peer in left) < start + (end - start) / 2
    late = [peer for peer in PEERS if _moment(peer["first_seen"]) - start > timedelta(minutes=5)]
    assert late
    assert all(peer["steps"] > 0 for peer in late)


def test_its_loss_fell_to_the_last_step() -> None:
    lines = [json.loads(line) for line in (LIVE / "progress.jsonl").read_text().splitlines()]
    assert lines[-1]["step"] == CARD["schedule"]["total_steps"]
    assert lines[-1]["loss"] < 0.1 * lines[0]["loss"]


def test_its_last_checkpoint_is_the_listed_one() -> None:
    newest = checkpoint.find_newest(str(LIVE))
    assert newest.step == CARD["schedule"]["total_steps"]
    assert newest.address is not None
    assert atomic.sha256(LIVE / newest.address) == newest.sha256


def test_its_last_pictures_show_what_the_captions_say() -> None:
    newest = SAMPLES["checkpoints"][-1]
    right = [
        shows(Image.open(LIVE / path), prompt)
        for prompt, row in zip(SAMPLES["prompts"], newest["images"], strict=True)
        for path in row
    ]
    assert sum(right) >= 0.8 * len(right)


def test_its_checkpoint_draws_captions() -> None:
    """176 of 192 pictures were right when this was written, 32 of each caption."""
    settings = replace(RECIPES["rehearsal"].generation, images_per_prompt=8)
    drawn = generate.illustrate(str(LIVE), SAMPLES["prompts"], settings=settings)
    right = [
        shows(picture, prompt)
        for prompt, row in zip(drawn.prompts, drawn.rows, strict=True)
        for picture in row
    ]
    assert sum(right) >= 0.8 * len(right)
