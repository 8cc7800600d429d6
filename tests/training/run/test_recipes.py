"""Recipes as data: what a file may say, and what it may not."""

from pathlib import Path

import pytest
import torch

from calculator.errors import InputError
from calculator.planner.forecast import forecast
from calculator.planner.presets import PRESETS
from calculator.swarm.aggregation import Aggregation
from training.model.build import build_model
from training.run.recipes import PAPER, PAPER_LOCAL, TINY, find_recipe
from training.run.runfile import parse
from training.sparse.layout import Layout

NARROW = """\
name = "our-run"

[recipe]
base = "paper"

[recipe.model]
hidden_size = 512
sharing_groups = "none"

[recipe.swarm]
aggregation = "mean"
progress_refresh = [1, 2.5]
"""


def test_a_run_says_only_what_differs_from_its_base() -> None:
    recipe = parse(NARROW).get_recipe()
    assert (recipe.model.hidden_size, recipe.model.sharing_groups) == (512, None)
    assert recipe.swarm.aggregation is Aggregation.MEAN
    assert recipe.swarm.progress_refresh == (1.0, 2.5)
    assert recipe.swarm.target_batch_size == 4096  # the paper's
    assert (recipe.data, recipe.optimizer) == (PAPER.data, PAPER.optimizer)


def test_a_run_file_with_a_recipe_is_read_back_as_it_was() -> None:
    run = parse(NARROW)
    assert parse(run.to_toml()) == run
    quotes = '[recipe]\nbase = "tiny"\n[recipe.generation]\nprompts = ["a \\"red\\" circle"]\n'
    run = parse(f'name = "our-run"\n{quotes}')
    assert parse(run.to_toml()).get_recipe().generation.prompts == ('a "red" circle',)


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ('name = "mine"', "name"),
        ("modle = 1", "modle"),
        ("model = 1", "model"),
        ("[recipe.model]\nhidden_size = 1.5", "model.hidden_size"),
        ("[recipe.model]\ntoken_shift = 1", "model.token_shift"),
        ("[recipe.optimizer]\nlearning_rate = nan", "optimizer.learning_rate"),
        ("[recipe.optimizer]\nbetas = [0.9]", "optimizer.betas"),
        ('[recipe.swarm]\naggregation = "sum"', "swarm.aggregation"),
        ("[recipe.sparse]\nseconds = 1", "sparse.learning_rate"),
    ],
)
def test_what_a_recipe_cannot_say_is_refused_with_its_place(text: str, field: str) -> None:
    with pytest.raises(InputError) as caught:
        parse(f'name = "our-run"\n[recipe]\nbase = "tiny"\n{text}\n')
    assert caught.value.field == f"recipe.{field}"


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("", "recipe.base"),
        ('base = "papre"\nseed = 1', "recipe"),
        ('base = "tiny"\n[recipe.swarm]\npoll_seconds = 0', "poll_seconds"),
    ],
)
def test_a_recipe_that_makes_none_is_refused(text: str, field: str) -> None:
    with pytest.raises(InputError) as caught:
        parse(f'name = "our-run"\n[recipe]\n{text}\n')
    assert caught.value.field == field


def test_a_file_describes_a_recipe_with_and_without_a_run(tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text(NARROW)
    assert find_recipe(str(tmp_path / "run.toml")).model.hidden_size == 512
    (tmp_path / "own.toml").write_text('base = "tiny"\n[schedule]\ntotal_steps = 9\n')
    own = find_recipe(str(tmp_path / "own.toml"))
    assert (own.schedule.total_steps, own.model) == (9, TINY.model)
    with pytest.raises(InputError, match="no-such"):
        find_recipe(str(tmp_path / "no-such.toml"))


def test_the_paper_with_local_steps_exchanges_what_the_planner_counts() -> None:
    planned = PRESETS["sparse"]
    found = forecast(planned.model, planned.run)
    assert found.rhythm.computing_seconds == pytest.approx(PAPER_LOCAL.sparse.seconds, rel=0.02)
    with torch.device("meta"):
        layout = Layout.of(build_model(PAPER_LOCAL).parameters())
    scales = layout.sections[0]  # the planner, as SparseLoCo, counts places and values
    assert layout.update_bytes - scales == pytest.approx(found.message, rel=0.001)
