"""The generated pages name everything that the code knows."""

import re
from itertools import pairwise

from calculator.catalog import GPUS, MODELS
from calculator.page.answer import answer
from calculator.plan import Plan
from templates import render
from templates.pages.calculator.context import GROUPS, SLIDERS
from templates.render import pages
from tests.pages.rendered import render_page


def test_the_form_has_each_option_once() -> None:
    fields = [field for group in GROUPS for field in group.fields]
    assert sorted(fields) == sorted(Plan.options())


def test_sliders_stay_in_their_options_ranges_and_grow_by_ratios() -> None:
    for field, stops in SLIDERS.items():
        option = Plan.options()[field]
        assert option.minimum <= stops[0]
        assert stops[-1] <= option.maximum
        assert all(1 < after / before <= 2 for before, after in pairwise(stops))


def test_the_calculator_names_every_model_gpu_and_choice() -> None:
    page = render_page("calculator")
    for model in MODELS.values():
        assert page.count(f'data-value="{model.name}"') == 1
        assert f">{model.title}</a>" in page
    for gpu in GPUS.values():
        assert f'value="{gpu.name}"' in page
    for option in Plan.options().values():
        assert option.help in page
        for name, words in option.choices:
            assert f'<option value="{name}"' in page
            assert words in page


def test_rendering_twice_gives_the_same_bytes() -> None:
    for name in pages():
        assert render_page(name) == render.render_page(name), name


def test_every_figure_that_the_calculator_shows_is_in_every_answer() -> None:
    slots = set(re.findall(r'data-text="([^"]+)"', render_page("calculator")))
    assert len(slots) > 20
    for model in MODELS:
        assert slots <= answer({"model": model})["figures"].keys()
