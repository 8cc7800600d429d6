"""Recipes as data: what a file may say, and what it may not; the learning rate over the steps."""

from dataclasses import asdict
from pathlib import Path

import pytest
import torch

from calculator.errors import InputError
from calculator.planner.forecast import forecast
from calculator.planner.presets import PRESETS
from calculator.swarm.aggregation import Aggregation
from tests.pages.scripts import call
from training.model.build import build_model
from training.run.recipes import (
    PAPER,
    PAPER_LOCAL,
    TINY,
    ScheduleSettings,
    corners,
    find_recipe,
    learning_rate_factor,
)
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

ON_TINY = 'base = "tiny"\n'


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
        (ON_TINY + 'name = "mine"', "recipe.name"),
        (ON_TINY + "modle = 1", "recipe.modle"),
        (ON_TINY + "model = 1", "recipe.model"),
        (ON_TINY + "[recipe.model]\nhidden_size = 1.5", "recipe.model.hidden_size"),
        (ON_TINY + "[recipe.model]\ntoken_shift = 1", "recipe.model.token_shift"),
        (ON_TINY + "[recipe.optimizer]\nlearning_rate = nan", "recipe.optimizer.learning_rate"),
        (ON_TINY + "[recipe.optimizer]\nbetas = [0.9]", "recipe.optimizer.betas"),
        (ON_TINY + '[recipe.swarm]\naggregation = "sum"', "recipe.swarm.aggregation"),
        (ON_TINY + "[recipe.sparse]\nseconds = 1", "recipe.sparse.learning_rate"),
        (ON_TINY + "[recipe.swarm]\npoll_seconds = 0", "poll_seconds"),
        ("", "recipe.base"),
        ('base = "papre"\nseed = 1', "recipe"),
    ],
)
def test_what_a_recipe_cannot_say_is_refused_with_its_place(text: str, field: str) -> None:
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


def test_schedule_warms_up_and_ends_at_zero() -> None:
    schedule = ScheduleSettings(total_steps=31_250, warmup_steps=3_125)
    assert learning_rate_factor(schedule, 0) == pytest.approx(1 / 3_125)
    assert learning_rate_factor(schedule, 3_124) == 1.0
    assert learning_rate_factor(schedule, 3_125) == 1.0
    assert learning_rate_factor(schedule, (31_250 + 3_125) // 2) == pytest.approx(0.5, abs=1e-4)
    assert learning_rate_factor(schedule, 31_250) == 0.0
    assert learning_rate_factor(schedule, 40_000) == 0.0


@pytest.mark.parametrize(("total", "warm_up"), [(300, 10), (40, 0), (40, 1), (7, 7), (1, 0)])
def test_the_page_draws_and_follows_the_volunteers_rates(total: int, warm_up: int) -> None:
    schedule = ScheduleSettings(total, warm_up)
    steps, rates = zip(*corners(schedule, 0.05), strict=True)
    asked = range(1, total + 3)
    drawn = call(
        "docs/assets/live/series.js", "interpolate", [[steps, rates, step] for step in asked]
    )
    # the page counts steps from 1, the schedule from 0
    factors = [learning_rate_factor(schedule, n - 1) for n in asked]
    assert drawn == pytest.approx([0.05 * factor for factor in factors])
    followed = [[asdict(schedule), n - 1] for n in asked]
    assert call("docs/assets/tab/lamb.js", "rateFactor", followed) == pytest.approx(factors)
