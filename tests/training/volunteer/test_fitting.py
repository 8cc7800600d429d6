from dataclasses import replace

import pytest
import torch

from calculator.errors import InputError
from calculator.estimate import estimate
from calculator.plan import Plan
from tests.training.model.test_language import CONFIGS, recipe_of
from training.model.build import build_model
from training.run.recipes import PAPER, RECIPES, TINY, Recipe, find_recipe
from training.volunteer import fitting

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    "recipe", [*map(find_recipe, RECIPES), *map(recipe_of, CONFIGS)], ids=[*RECIPES, *CONFIGS]
)
def test_the_calculator_counts_the_parameters_of_the_real_model(recipe: Recipe) -> None:
    plan = fitting.make_plan(recipe, CPU, 4)
    length = getattr(recipe.model, "sequence_length", Plan().sequence_length)
    assert (plan.batch_size, plan.sequence_length) == (4, length)
    with torch.device("meta"):
        built = sum(parameter.numel() for parameter in build_model(recipe).parameters())
    assert estimate(fitting.make_architecture(recipe), plan).parameters == built


def test_gradients_beside_the_sum_are_counted_where_the_loss_is_scaled() -> None:
    cuda = torch.device("cuda")
    plain, scaled = (fitting.step_bytes(PAPER, cuda, 1, scaled) for scaled in (False, True))
    assert scaled - plain == 4 * 125_894_244  # the parameters of the 2021 run's model


def test_the_largest_micro_batch_that_fits_is_chosen() -> None:
    recipe = replace(TINY, swarm=replace(TINY.swarm, micro_batch_size=1000))
    for size in (1, 7, 999):
        exactly = fitting.step_bytes(recipe, CPU, size)
        assert fitting.largest_that_fits(recipe, CPU, exactly) == size
        assert fitting.largest_that_fits(recipe, CPU, exactly - 1) == size - 1


def test_a_volunteer_with_local_steps_counts_its_copies_of_the_parameters() -> None:
    recipe = RECIPES["sparse"]
    parameters = sum(p.numel() for p in build_model(recipe).parameters())
    # In 32 bits: weight, gradient and two moments of AdamW; the shared weights, twice while a
    # round is applied, the residual, and the weights where the local steps began.
    assert fitting.step_bytes(recipe, CPU, 1) >= (4 + 4) * 4 * parameters


def test_the_choice_is_what_was_asked_for_or_what_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    assert fitting.largest_that_fits(TINY, CPU, 10**15) == TINY.swarm.micro_batch_size
    assert fitting.choose_micro_batch(TINY, CPU, 5).size == 5
    with pytest.raises(InputError, match="micro_batch"):
        fitting.choose_micro_batch(TINY, CPU, 0)
    free = fitting.step_bytes(TINY, CPU, 3)
    monkeypatch.setattr(fitting, "free_bytes", lambda _device: free)
    choice = fitting.choose_micro_batch(TINY, CPU, None)
    assert choice.size == 3
    assert choice.reason.startswith("computing 3 sequences at once, what fits: the calculator")
    monkeypatch.setattr(fitting, "free_bytes", lambda _device: 1024)
    with pytest.raises(InputError, match=r"memory = '1\.00 KiB'"):
        fitting.choose_micro_batch(TINY, CPU, None)
