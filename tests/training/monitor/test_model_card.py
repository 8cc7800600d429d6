"""training/monitor/publish: the row that says what ended a step of the run."""

from pathlib import Path

import pytest

from training.monitor import publish
from training.run.live import CheckpointEntry, LiveFolder
from training.run.runfile import RunFile


@pytest.mark.parametrize(
    ("recipe", "row"),
    [
        ("paper", "| target batch | 4,096 sequences |"),
        ("sparse", "| local steps | 1 s in a step |"),
    ],
)
def test_the_card_says_what_a_step_is(tmp_path: Path, recipe: str, row: str) -> None:
    entry = CheckpointEntry(7, 1.25, "2026-01-01T00:00:00.000Z", None, "0" * 64)
    card = publish.make_card(RunFile(name="our-run", recipe=recipe), LiveFolder(tmp_path), entry)
    assert row in card.splitlines()


def test_a_language_models_card_says_how_to_write_with_it(tmp_path: Path) -> None:
    entry = CheckpointEntry(2, 1.0, "2026-11-25T00:00:00Z", "model.safetensors", "0" * 64)
    card = publish.make_card(
        RunFile(name="our-run", recipe="language"), LiveFolder(tmp_path), entry
    )
    assert "pipeline_tag: text-generation" in card
    assert "| model_type | llama |" in card
    assert "VQ-GAN" not in card
