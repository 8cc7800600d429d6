"""Each row of the table of differences from 2021 is true of the recipe and the model."""

import torch

from templates.pages.measurements.differences import DIFFERENCES
from training.model.attention import rotary_table
from training.model.build import config_of
from training.model.transformer import TextToImageTransformer
from training.optimizer import lamb
from training.run.recipes import PAPER, learning_rate_factor

CONFIG = config_of(PAPER)


def here(subject: str) -> str:
    (difference,) = (one for one in DIFFERENCES if one.subject == subject)
    return difference.here


def test_the_places_of_text_and_picture_are_those_of_the_table() -> None:
    # The angle that turns slowest on each axis is the place there times a known frequency.
    cosine, sine = rotary_table(CONFIG.layout, CONFIG.head_size, torch.device("cpu"))
    angles = torch.atan2(sine, cosine)
    prefix, pairs = CONFIG.layout.prefix, CONFIG.head_size // 6
    assert here("Place of the picture on the text's axis") == "the position after the text"
    step = angles[1, pairs - 1]  # of the text's second place
    torch.testing.assert_close(angles[prefix:, pairs - 1] / step, torch.full((1023,), 257.0))
    assert here("Place of the text on the picture's axes") == "-2"
    turns = torch.linspace(1, 5, pairs) * torch.pi * -2
    torch.testing.assert_close(cosine[0, pairs : 2 * pairs], turns.cos(), atol=1e-4, rtol=0)


def test_only_matrices_decay_and_the_first_step_learns() -> None:
    assert here("Weight decay") == "matrices only"
    with torch.device("meta"):
        model = TextToImageTransformer(CONFIG)
    decaying, other = lamb.parameter_groups(model, PAPER)
    assert {parameter.ndim for parameter in decaying["params"]} == {2}
    assert 2 not in {parameter.ndim for parameter in other["params"]}
    assert len(decaying["params"]) + len(other["params"]) == len(list(model.parameters()))
    assert (decaying["weight_decay"], other["weight_decay"]) == (0.045, 0.0)
    assert here("First step of the warm-up") == "at the rate of one step"
    assert learning_rate_factor(PAPER.schedule, 0) == 1 / PAPER.schedule.warmup_steps


def test_one_of_the_papers_two_ways_chooses_among_codes() -> None:
    assert here("Choice among codes") == "top-k 256"
    assert (PAPER.generation.top_k, PAPER.generation.top_p) == (256, None)
