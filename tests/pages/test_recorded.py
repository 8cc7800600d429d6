"""Committed results are the calculator's: `python -m templates.record` renews them.

Where all take minutes, some of them are computed here; CI records all again and compares.
"""

import json
from typing import Any

import pytest

from templates.pages.calculator import first
from templates.pages.index import fit
from templates.pages.models_on_gpus.context import TABLES, row
from templates.pages.numbers.choices import GPUS
from templates.pages.numbers.figures import MEMORY
from templates.pieces.comparisons import SCORES, as_json
from templates.record import RECORDED

NAMED = {each.name: each for each in RECORDED}


def recorded(name: str) -> list[Any]:
    """A committed file's items, as many as there are now."""
    found: list[Any] = json.loads(NAMED[name].path.read_text("utf-8"))
    assert len(found) == len(NAMED[name].items())
    return found


@pytest.mark.parametrize("name", ["measured", "peers"])
def test_what_was_compared_with_measurements_is_recorded(name: str) -> None:
    one = NAMED[name]
    assert [as_json(one.function(item)) for item in one.items()] == recorded(name)


def test_homes_table_has_every_third_models_answers_to_few_and_many_sequences() -> None:
    ends = fit.BATCHES[0], fit.BATCHES[-1]
    for model, found in [*zip(fit.MODELS, recorded("fit"), strict=True)][::3]:
        found["ways"] = [found["ways"][0], found["ways"][-1]]
        found["answers"] = [found["answers"][0], found["answers"][-1]]
        assert as_json(fit.model_entry(model, ends)) == found, model


def test_the_first_verdicts_have_every_model_and_those_of_every_third_type() -> None:
    found = recorded("first-verdicts")
    assert [[*each] for each in found] == first.VERDICTS.items()
    for models, each in [*zip(first.VERDICTS.items(), found, strict=True)][::3]:
        last = next((one for one in reversed(models) if one not in fit.MODELS), models[-1])
        assert as_json(first.verdicts_of(last)) == each[last], last


def test_the_scores_have_every_fourth_step_of_real_cards() -> None:
    for places, own in zip(SCORES.items(), recorded("scores"), strict=True):
        assert as_json(SCORES.function(places[::4])) == own[::4], places


@pytest.mark.parametrize("name", ["answers", "tutorial"])
def test_the_first_answers_and_the_tutorials_cards_have_every_fourth(name: str) -> None:
    one = NAMED[name]
    found = recorded(name)
    for item, own in [*zip(one.items(), found, strict=True)][::4]:
        assert as_json(one.function(item)) == own, item


def test_where_the_memory_goes_has_every_choice_and_each_gpus_figures_of_one_model() -> None:
    found = recorded("memory")
    assert [[*each] for each in found] == [[one.name for one in each] for each in MEMORY.items()]
    own_gpu = range(len(GPUS))
    for place, choices, each in [*zip([*own_gpu, *own_gpu], MEMORY.items(), found, strict=True)][
        ::2
    ]:
        ((name, figures),) = MEMORY.function([choices[place]]).items()
        assert figures == each[name], name


@pytest.mark.parametrize("name", list(TABLES))
def test_the_tables_of_gpus_have_every_fourth_model(name: str) -> None:
    one = TABLES[name]
    found = recorded(one.name)
    for item, own in [*zip(one.items(), found, strict=True)][1::4]:
        assert as_json(row(item)) == own, item[0]
