"""Committed results are the calculator's: `python -m templates.record` renews them.

Where all take minutes, some of each file are computed here; CI records all again and compares.
"""

import json
from typing import Any

import pytest

from templates.pages.calculator import first
from templates.pages.index import fit
from templates.pages.models_on_gpus.context import TABLES
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


@pytest.mark.parametrize(
    ("name", "computed"),
    [
        *(("measured", slice(None)), ("peers", slice(None))),
        *(("answers", slice(0, None, 8)), ("tutorial", slice(0, None, 8))),
        *((table.name, slice(1, None, 12)) for table in TABLES.values()),
    ],
)
def test_a_recorded_file_has_the_calculators_answer_to_each_item(
    name: str, computed: slice
) -> None:
    one, found = NAMED[name], recorded(name)
    for item, own in zip(one.items()[computed], found[computed], strict=True):
        assert as_json(one.function(item)) == own, item


def test_homes_table_has_some_models_answers_to_few_and_many_sequences() -> None:
    ends = fit.BATCHES[0], fit.BATCHES[-1]
    for model, found in [*zip(fit.MODELS, recorded("fit"), strict=True)][::5]:
        found["ways"] = [found["ways"][0], found["ways"][-1]]
        found["answers"] = [found["answers"][0], found["answers"][-1]]
        assert as_json(fit.model_entry(model, ends)) == found, model


def test_the_first_verdicts_have_every_model_and_those_of_some_types() -> None:
    found = recorded("first-verdicts")
    assert [[*each] for each in found] == first.VERDICTS.items()
    for models, each in [*zip(first.VERDICTS.items(), found, strict=True)][::6]:
        last = next((one for one in reversed(models) if one not in fit.MODELS), models[-1])
        assert as_json(first.verdicts_of(last)) == each[last], last


def test_the_scores_have_some_steps_of_each_source() -> None:
    for places, own in zip(SCORES.items(), recorded("scores"), strict=True):
        assert as_json(SCORES.function(places[::12])) == own[::12], places


def test_where_the_memory_goes_has_every_choice_and_each_gpus_figures_of_one_model() -> None:
    found = recorded("memory")
    assert [[*each] for each in found] == [[one.name for one in each] for each in MEMORY.items()]
    for number, (choices, each) in [*enumerate(zip(MEMORY.items(), found, strict=True))][::3]:
        ((name, figures),) = MEMORY.function([choices[number % len(GPUS)]]).items()
        assert figures == each[name], name
