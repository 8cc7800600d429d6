"""Published checkpoints; `models/test_real_classes` holds them against the real classes."""

import pytest

from calculator.catalog import MODELS, find_model, groups
from calculator.catalog.checkpoints import CHECKPOINTS, Checkpoint
from calculator.errors import InputError
from tests.calculator.plans import case_of


def test_a_checkpoint_that_is_offered_is_counted_exactly_and_its_step_is_counted() -> None:
    # those of a type may differ in their layers: some of ELECTRA project, others do not
    offered = {model.name for models in groups().values() for model in models}
    for name in CHECKPOINTS.keys() & offered:
        checkpoint, report = CHECKPOINTS[name], case_of(name).report
        assert (report.model, find_model(name).title) == (name, checkpoint.title)
        assert report.parameters == checkpoint.parameters, name
        assert report.gpu.total > 4 * 4 * checkpoint.parameters, name


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
