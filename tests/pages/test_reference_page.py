"""The reference names every module, command and option."""

import re
from pathlib import Path

import pytest
from markdown import markdown

from calculator.techniques import OPTIONS
from templates.reference_page import context
from templates.render import render_page
from tools.console import ROOT
from training.__main__ import MODULES

PAGES = ROOT / "docs" / "reference"
# The packages themselves, and what is reached through other modules.
NOT_SHOWN = {"__init__", "__main__"}


def shown(text: str) -> str:
    return markdown(text, extensions=["fenced_code", "templates.mathml"])


def test_every_module_of_the_calculator_is_on_one_page() -> None:
    text = "\n".join(page.read_text("utf-8") for page in PAGES.glob("*.md"))
    named = re.findall(r"^::: calculator\.(\w+)$", text, re.MULTILINE)
    modules = {path.stem for path in (ROOT / "calculator").glob("*.py")}
    assert sorted(named) == sorted(modules - NOT_SHOWN)


def test_every_page_of_modules_is_reached_from_the_first() -> None:
    first = render_page("reference/index")
    for page in PAGES.glob("*.md"):
        assert f"]({page.name})" in first


def test_every_option_of_the_calculator_is_told() -> None:
    (estimate, *_) = context()["calculator"]  # type: ignore[misc]
    told = " ".join(cell for row in estimate.rows for cell in row)
    for option in OPTIONS.values():
        assert f"<code>{option.flag}" in told


def test_every_command_of_training_is_told() -> None:
    page = render_page("reference/index")
    for name in ("rehearse", "join", "monitor", *MODULES):
        assert f"python -m training {name}`" in page


def test_an_equation_becomes_mathml() -> None:
    assert "<mi>N</mi>" in shown("Numbers.\n\n$$N = B S$$\n")


def test_an_example_becomes_code_and_keeps_its_stars() -> None:
    assert "2*3" in shown("Product.\n\n>>> 2*3*4\n24\n\nMore.\n")
    assert "<blockquote>" not in shown(">>> 1 + 1\n2\n")


def test_stars_of_a_product_stay_and_emphasis_works() -> None:
    assert "B*S*d" in shown("with B*S*d numbers")
    assert "<em>all</em>" in shown("with *all* numbers")


def test_a_source_is_linked_to_the_list_of_sources() -> None:
    assert '<a href="../../numbers/#source-torch">torch</a>' in shown("Source: torch (a file)")


@pytest.mark.parametrize("text", ["```\na*b\n$$x$$\n```", "`a*b`"])
def test_code_is_left_alone(text: str) -> None:
    assert "a*b" in shown(text)


def test_pages_of_modules_have_a_title_and_a_description() -> None:
    for page in PAGES.glob("*.md"):
        head = Path(page).read_text("utf-8").split("---")[1]
        assert re.findall(r"^(title|description): [^:]+$", head, re.M) == ["title", "description"]
