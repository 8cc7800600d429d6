"""Published checkpoints, held against transformers' own classes on the meta device."""

import random

import pytest

from calculator.catalog import MODELS, find_model, groups
from calculator.catalog.checkpoints import CHECKPOINTS, Checkpoint
from calculator.errors import InputError
from calculator.estimate import estimate
from calculator.parameters import count_parameters
from calculator.plan import Plan
from calculator.resolution import resolve
from tests.calculator.real import elements, oracle, real_model


@oracle
def test_the_parameters_are_those_of_the_real_class() -> None:
    # one of each type, as all of it are counted by the same code: see the test below
    draw = random.Random(35)
    every = sorted(CHECKPOINTS.values(), key=lambda checkpoint: checkpoint.name)
    draw.shuffle(every)
    for checkpoint in {each.kind: each for each in every}.values():
        assert elements(real_model(checkpoint.kind, **checkpoint.config)) == checkpoint.parameters


def counted() -> list[Checkpoint]:
    offered = {model.name for models in groups().values() for model in models}
    return [checkpoint for checkpoint in CHECKPOINTS.values() if checkpoint.name in offered]


def test_a_checkpoint_that_is_offered_is_counted_exactly_and_its_step_is_counted() -> None:
    # those of a type may differ in their layers: some of ELECTRA project, others do not
    for checkpoint in counted():
        model = find_model(checkpoint.name)
        assert (model.name, model.title) == (checkpoint.name, checkpoint.title)
        counts = count_parameters(model, resolve(model, Plan()))
        assert counts == checkpoint.parameters, checkpoint.name
        assert estimate(model, Plan()).gpu.total > 4 * 4 * checkpoint.parameters, checkpoint.name


def test_a_type_without_code_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    made_up = Checkpoint("someone/new", "New", "warp", 1, {})
    monkeypatch.setitem(CHECKPOINTS, made_up.name, made_up)  # type: ignore[misc]
    with pytest.raises(InputError, match=r"model = .* type warp, .* cannot count yet"):
        find_model(made_up.name)


def test_the_six_families_of_old_come_first_in_the_list() -> None:
    found = groups()
    assert list(found)[:6] == ["BERT", "T5", "GPT-2", "GPT-3", "GPT-J", "DALL-E"]
    names = [model.name for models in found.values() for model in models]
    assert len(names) == len(set(names))
    assert set(MODELS) <= set(names)
    titles = [model.title for models in found.values() for model in models]
    assert len(titles) == len(set(titles))
