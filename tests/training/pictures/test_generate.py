from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image, ImageFont

from calculator.errors import InputError
from tests.training.hub_repository import HubRepository
from training.model import checkpoint
from training.model.build import build_model
from training.model.transformer import TextToImageTransformer
from training.pictures import generate, sampling
from training.pictures.codes import CodeModel
from training.pictures.wrapping import wrap
from training.run.live import LiveFolder
from training.run.recipes import RECIPES, GenerationSettings

RECIPE = RECIPES["tiny"]
LOGITS = torch.tensor([[0.5, 0.2, 0.15, 0.1, 0.05]]).log()


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (GenerationSettings(), [0.5, 0.2, 0.15, 0.1, 0.05]),
        (GenerationSettings(temperature=0), [1, 0, 0, 0, 0]),
        (GenerationSettings(top_k=2), [5 / 7, 2 / 7, 0, 0, 0]),
        (GenerationSettings(top_k=9), [0.5, 0.2, 0.15, 0.1, 0.05]),
        (GenerationSettings(top_p=0.6), [5 / 7, 2 / 7, 0, 0, 0]),
        (GenerationSettings(top_p=0.01), [1, 0, 0, 0, 0]),
        (GenerationSettings(top_p=1.0), [0.5, 0.2, 0.15, 0.1, 0.05]),
        # Squares of the probabilities sum to 0.325.
        (
            GenerationSettings(temperature=0.5),
            [x / 0.325 for x in (0.25, 0.04, 0.0225, 0.01, 0.0025)],
        ),
        # Top-p counts what top-k left: of 5/7 and 2/7, the first reaches 0.7.
        (GenerationSettings(top_k=2, top_p=0.7), [1, 0, 0, 0, 0]),
    ],
)
def test_codes_follow_probabilities(settings: GenerationSettings, expected: list[float]) -> None:
    generator = torch.Generator().manual_seed(0)
    drawn = sampling.sample(LOGITS.repeat(20_000, 1), settings, generator)
    assert (drawn.bincount(minlength=5) / 20_000).tolist() == pytest.approx(expected, abs=0.02)


def test_sampling_does_not_depend_on_the_order_of_codes() -> None:
    settings = GenerationSettings(top_p=0.6)
    generator = torch.Generator().manual_seed(0)
    drawn = sampling.sample(LOGITS.flip(1).repeat(1000, 1), settings, generator)
    assert set(drawn.tolist()) == {3, 4}


def test_greedy_codes_are_likeliest(model: TextToImageTransformer, text_ids: torch.Tensor) -> None:
    codes = sampling.draw_codes(model, text_ids, GenerationSettings(temperature=0))
    assert codes.shape == (3, 16)
    likeliest = model(text_ids, codes, return_logits=True).image_logits.argmax(dim=-1)
    assert torch.equal(codes, likeliest)


def test_pictures_are_drawn_and_can_be_drawn_again() -> None:
    model, codes = build_model(RECIPE), CodeModel.load("shapes")
    settings = replace(RECIPE.generation, images_per_prompt=2)
    prompts = ["a red circle", "a blue square above a green circle"]
    pictures = sampling.draw(model, codes, prompts, RECIPE, settings, seed=4, batch_size=2)
    assert [[image.size for image in row] for row in pictures] == [[(32, 32)] * 2] * 2
    again = sampling.draw(model, codes, prompts, RECIPE, settings, seed=4, batch_size=2)
    other = sampling.draw(model, codes, prompts, RECIPE, settings, seed=5, batch_size=2)
    content = [image.tobytes() for row in pictures for image in row]
    assert [image.tobytes() for row in again for image in row] == content
    assert [image.tobytes() for row in other for image in row] != content


def test_contact_sheets_show_every_picture() -> None:
    rows = [[Image.new("RGB", (8, 8), (200, 10 * i, j)) for i in range(3)] for j in range(2)]
    sheet = generate.make_sheet(["a", "b"], rows, magnify=4)
    colours = {colour for _, colour in sheet.getcolors(maxcolors=10_000)}
    assert {(200, 10 * i, j) for i in range(3) for j in range(2)} <= colours


def test_missing_checkpoints_and_prompts_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="checkpoint"):
        generate.load_model(str(tmp_path))
    model, codes = build_model(RECIPE), CodeModel.load("shapes")
    with pytest.raises(InputError, match="prompts"):
        sampling.draw(model, codes, [], RECIPE)


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> LiveFolder:
    live = LiveFolder(tmp_path_factory.mktemp("live"))
    checkpoint.publish(live, build_model(RECIPE), 10, 3.0, "")
    return live


def test_every_way_to_name_a_checkpoint_leads_to_it(hub: HubRepository, live: LiveFolder) -> None:
    folder = live.path / "checkpoints" / "000010"
    files = [path for path in live.path.rglob("*") if path.is_file()]
    hub.commits["main"] = {
        f"live/{path.relative_to(live.path)}": path.read_bytes() for path in files
    }
    address = f"{hub.address}/someone/model/resolve/main/live/"
    for name in (str(live.path), str(folder), str(folder / "model.safetensors"), address):
        model = generate.load_model(name)
        assert model.config.recipe == "tiny"
        for ours, theirs in zip(model.parameters(), build_model(RECIPE).parameters(), strict=True):
            assert torch.equal(ours, theirs)


def test_the_best_of_many_are_kept_the_best_first(live: LiveFolder) -> None:
    settings = replace(RECIPE.generation, images_per_prompt=6, keep=2)
    everything = replace(settings, keep=6)
    prompts = ["a red circle", "a blue square"]
    best = generate.illustrate(str(live.path), prompts, settings=settings)
    ranked = generate.illustrate(str(live.path), prompts, settings=everything)
    assert best.scores is not None
    assert [len(row) for row in best.rows] == [2, 2]
    for row, scores, kept in zip(ranked.rows, ranked.scores, best.rows, strict=True):
        assert scores == sorted(scores, reverse=True)
        assert [image.tobytes() for image in kept] == [image.tobytes() for image in row[:2]]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"temperature": -1}, "temperature"),
        ({"top_k": 0}, "top_k"),
        ({"top_p": 0}, "top_p"),
        ({"top_p": 1.1}, "top_p"),
        ({"images_per_prompt": 0}, "images"),
        ({"images_per_prompt": 4, "keep": 0}, "keep"),
        ({"images_per_prompt": 4, "keep": 5}, "keep"),
    ],
)
def test_settings_out_of_range_are_refused(
    live: LiveFolder, change: dict[str, Any], field: str
) -> None:
    settings = replace(RECIPE.generation, **change)
    with pytest.raises(InputError, match=field):
        generate.illustrate(str(live.path), ["a red circle"], settings=settings)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["a blue square", "--recipe", "tiny", "--images", "2"], "2 pictures of each of 2: "),
        (
            ["--images", "4", "--keep", "2", "--top-k", "64", "--top-p", "0.9"],
            "the best 2 of 4 pictures of each of 1: ",
        ),
    ],
)
def test_the_command_draws_a_checkpoint(
    live: LiveFolder,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    said: str,
) -> None:
    drawn = tmp_path / "drawn.png"
    words = [str(live.path), "a red circle", *arguments, "--output", str(drawn)]
    assert generate.main(words) == 0
    assert capsys.readouterr().out == f"{said}{drawn}\n"
    with Image.open(drawn) as sheet:
        assert sheet.format == "PNG"
        assert sheet.width > 2 * 128


def test_long_captions_are_wrapped_into_the_sheet() -> None:
    font = ImageFont.load_default(15)
    lines = wrap("a red circle above a blue square", font, 100)
    assert " ".join(lines) == "a red circle above a blue square"
    assert len(lines) > 1
    assert all(font.getlength(line) <= 100 for line in lines)
