"""The generated pages name everything that the code knows."""

import re
from itertools import pairwise
from pathlib import Path

import pytest

from calculator.catalog import GPUS, MODELS, SOURCES
from calculator.page.answer import answer
from calculator.plan import Plan
from templates.pages.calculator.context import GROUPS, SLIDERS
from templates.pieces.comparisons import comparisons_on
from templates.pieces.families import families
from templates.render import pages as page_folders
from templates.render import render
from tests.pages.rendered import render_page
from validation.rows import read_rows


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with all generated pages."""
    folder = tmp_path_factory.mktemp("pages")
    render(folder)
    return folder


def test_the_form_has_each_option_once() -> None:
    fields = [field for group in GROUPS for field in group.fields]
    assert sorted(fields) == sorted(Plan.options())


def test_every_family_has_a_heading_in_the_form() -> None:
    assert set(families()) == {model.family for model in MODELS.values()}


def test_sliders_stay_in_their_options_ranges_and_grow_by_ratios() -> None:
    for field, stops in SLIDERS.items():
        option = Plan.options()[field]
        assert option.minimum <= stops[0]
        assert stops[-1] <= option.maximum
        assert all(1 < after / before <= 2 for before, after in pairwise(stops))


def test_every_page_is_written(pages: Path) -> None:
    written = {page.relative_to(pages).with_suffix("").as_posix() for page in pages.rglob("*.md")}
    assert written == set(page_folders())


def test_the_calculator_names_every_model_gpu_and_choice(pages: Path) -> None:
    page = (pages / "calculator.md").read_text("utf-8")
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


def test_the_page_of_formulas_names_every_model_and_source(pages: Path) -> None:
    page = (pages / "formulas.md").read_text("utf-8")
    for model in MODELS.values():
        assert model.title in page
        assert model.note in page
    for key, source in SOURCES.items():
        assert f'id="source-{key}"' in page
        assert source.address in page


def test_rendering_twice_gives_the_same_bytes(pages: Path) -> None:
    for page in pages.rglob("*.md"):
        name = page.relative_to(pages).with_suffix("").as_posix()
        assert render_page(name) == page.read_text("utf-8"), name


def test_every_figure_that_the_calculator_shows_is_in_every_answer() -> None:
    slots = set(re.findall(r'data-text="([^"]+)"', render_page("calculator")))
    assert len(slots) > 20
    for model in MODELS:
        assert slots <= answer({"model": model})["figures"].keys()


def test_nearly_every_measured_step_is_compared() -> None:
    rows = len(list(read_rows("counting")))
    assert 0.95 * rows < len(comparisons_on("counting")) <= rows
