from dataclasses import replace
from pathlib import Path

import pytest
import torch
from PIL import Image

from calculator.errors import InputError
from training import contact_sheet, generate, sampling
from training.codes import CodeModel
from training.model import TextToImageTransformer, build_model
from training.recipes import RECIPES, GenerationSettings

RECIPE = RECIPES["tiny"]
LOGITS = torch.tensor([[0.5, 0.2, 0.15, 0.1, 0.05]]).log()


def frequencies(settings: GenerationSettings, count: int = 20_000) -> list[float]:
    generator = torch.Generator().manual_seed(0)
    drawn = sampling.sample(LOGITS.repeat(count, 1), settings, generator)
    return (drawn.bincount(minlength=5) / count).tolist()


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
def test_codes_are_drawn_by_their_probabilities(
    settings: GenerationSettings, expected: list[float]
) -> None:
    assert frequencies(settings) == pytest.approx(expected, abs=0.02)


def test_sampling_does_not_depend_on_the_order_of_codes() -> None:
    settings = GenerationSettings(top_p=0.6)
    generator = torch.Generator().manual_seed(0)
    drawn = sampling.sample(LOGITS.flip(1).repeat(1000, 1), settings, generator)
    assert set(drawn.tolist()) == {3, 4}


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        (GenerationSettings(temperature=-1), "temperature"),
        (GenerationSettings(top_k=0), "top_k"),
        (GenerationSettings(top_p=0), "top_p"),
        (GenerationSettings(top_p=1.1), "top_p"),
    ],
)
def test_settings_out_of_range_are_refused(settings: GenerationSettings, field: str) -> None:
    with pytest.raises(InputError, match=field):
        sampling.sample(LOGITS, settings)


def test_greedy_codes_are_the_likeliest_given_those_before(
    model: TextToImageTransformer, text_ids: torch.Tensor
) -> None:
    codes = sampling.draw_codes(model, text_ids, GenerationSettings(temperature=0))
    assert codes.shape == (3, 16)
    for place in range(16):
        likeliest = model.next_logits(text_ids, codes[:, :place]).argmax(dim=-1)
        assert codes[:, place].tolist() == likeliest.tolist()


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
    sheet = contact_sheet.make(["a", "b"], rows, magnify=4)
    colours = {colour for _, colour in sheet.getcolors(maxcolors=10_000)}
    assert {(200, 10 * i, j) for i in range(3) for j in range(2)} <= colours


def test_the_command_draws_a_checkpoint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    build_model(RECIPE).save_pretrained(tmp_path)
    output = tmp_path / "drawn.png"
    arguments = [str(tmp_path), "a red circle", "a blue square", "--recipe", "tiny"]
    assert generate.main([*arguments, "--images", "2", "--output", str(output)]) == 0
    assert "2 pictures of each of 2: " in capsys.readouterr().out
    with Image.open(output) as sheet:
        assert sheet.width > 2 * 128


def test_missing_checkpoints_and_prompts_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="checkpoint"):
        generate.load_model(str(tmp_path))
    model, codes = build_model(RECIPE), CodeModel.load("shapes")
    with pytest.raises(InputError, match="prompts"):
        sampling.draw(model, codes, [], RECIPE)
    with pytest.raises(InputError, match="unknown word 'purple'"):
        sampling.draw(model, codes, ["a purple circle"], RECIPE)
