"""The notebook that draws, run as committed on a checkpoint with random weights."""

import re
from pathlib import Path

from PIL import Image

from tests.notebooks.execution import execute
from training.model import checkpoint
from training.model.build import build_model
from training.run.live import LiveFolder
from training.run.recipes import TINY

NAME = "generate.ipynb"
PROMPTS = ["a red circle", "a blue square above a green circle"]


def test_it_draws_with_the_newest_checkpoint_saves_the_sheet_and_prints_the_best_scores_first(
    tmp_path: Path,
) -> None:
    model = build_model(TINY)
    checkpoint.publish(LiveFolder(tmp_path / "live"), model, 10, 3.0, "")
    parameters = {"CHECKPOINT": str(tmp_path / "live"), "PROMPTS": PROMPTS, "IMAGES": 6, "KEEP": 2}
    printed = execute(NAME, parameters, tmp_path)
    count = sum(parameter.numel() for parameter in model.parameters())
    assert f"{count:,} parameters, recipe tiny, on " in printed["model"]
    with Image.open(tmp_path / "pictures.png") as sheet:
        assert sheet.width > 2 * 128
    lines = printed["draw"].strip().splitlines()[-2:]
    for prompt, line in zip(PROMPTS, lines, strict=True):
        name, _, figures = line.partition(": ")
        scores = [float(figure) for figure in re.findall(r"-?\d\.\d{3}", figures)]
        assert name == prompt
        assert len(scores) == 2
        assert scores == sorted(scores, reverse=True)
