"""The generated pages name everything that the code knows."""

import re
from collections.abc import Mapping
from html import unescape
from itertools import pairwise
from types import ModuleType

import pytest

from calculator.catalog import GPUS, MODELS
from calculator.options import Option
from calculator.page.answer import answer
from calculator.plan import Plan
from calculator.planner.run import Run
from templates import render
from templates.pages.calculator import context as calculator
from templates.pages.plan import context as plan
from templates.render import pages
from tests.pages.rendered import render_page


@pytest.mark.parametrize(
    ("page", "context", "options", "steepest"),
    [("calculator", calculator, Plan.options(), 2), ("plan", plan, Run.options(), 2.5)],
)
def test_a_form_has_each_option_once_and_sliders_stay_in_its_range_and_grow_by_ratios(
    page: str, context: ModuleType, options: Mapping[str, Option], steepest: float
) -> None:
    assert sorted(field for group in context.GROUPS for field in group.fields) == sorted(options)
    for name, option in options.items():
        assert render_page(page).count(f'data-field="{name}"') == 1
        assert f"{option.help} {option.warning}".strip() in render_page(page)
    for field, stops in context.SLIDERS.items():
        assert options[field].minimum <= stops[0]
        assert stops[-1] <= options[field].maximum
        assert all(1 < after / before <= steepest for before, after in pairwise(stops))


def test_the_calculator_names_every_model_gpu_and_choice() -> None:
    page = render_page("calculator")
    for model in MODELS.values():
        assert page.count(f'data-value="{model.name}"') == 1
        assert f">{model.title}</a>" in page
    for gpu in GPUS.values():
        assert f'value="{gpu.name}"' in page
    for option in Plan.options().values():
        for name, words in option.choices:
            assert f'<option value="{name}"' in page
            assert words in page


def test_rendering_twice_gives_the_same_bytes() -> None:
    for name in pages():
        assert render_page(name) == render.render_page(name), name


def test_every_figure_that_the_calculator_shows_is_in_every_answer_and_its_own_before_all() -> None:
    slots = re.findall(r'data-text="([^"]+)"[^>]*>([^<]*)<', render_page("calculator"))
    assert len({path for path, _ in slots}) > 20
    for model in MODELS:
        assert {path for path, _ in slots} <= answer({"model": model})["figures"].keys()
    figures = answer(calculator.OPENING)["figures"]
    assert [figures[path] for path, _ in slots] == [unescape(text) for _, text in slots]
