"""The notebook that draws, run as committed on a checkpoint with random weights."""

import re
from pathlib import Path

import pytest
from PIL import Image

from tests.notebooks.execution import execute
from training.model import checkpoint
from training.model.build import build_model
from training.run.live import LiveFolder
from training.run.recipes import TINY

NAME = "generate.ipynb"
PROMPTS = ["a red circle", "a blue square above a green circle"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("generate")
    checkpoint.publish(LiveFolder(folder / "live"), build_model(TINY), 10, 3.0, "")
    return folder


@pytest.fixture(scope="module")
def printed(folder: Path) -> dict[str, str]:
    parameters = {"CHECKPOINT": str(folder / "live"), "PROMPTS": PROMPTS, "IMAGES": 6, "KEEP": 2}
    return execute(NAME, parameters, folder)


def test_it_loads_the_newest_checkpoint_of_a_live_folder_and_saves_the_sheet(
    printed: dict[str, str], folder: Path
) -> None:
    count = sum(parameter.numel() for parameter in build_model(TINY).parameters())
    assert f"{count:,} parameters, recipe tiny, on " in printed["model"]
    with Image.open(folder / "pictures.png") as sheet:
        assert sheet.width > 2 * 128


def test_it_prints_the_scores_of_the_kept_pictures_the_best_first(printed: dict[str, str]) -> None:
    lines = printed["draw"].strip().splitlines()[-2:]
    for prompt, line in zip(PROMPTS, lines, strict=True):
        name, _, figures = line.partition(": ")
        scores = [float(figure) for figure in re.findall(r"-?\d\.\d{3}", figures)]
        assert name == prompt
        assert len(scores) == 2
        assert scores == sorted(scores, reverse=True)
