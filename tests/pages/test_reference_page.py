"""The reference names every module, command and option."""

import re

import pytest
from markdown import markdown

from tests.pages.rendered import render_page
from tools.console import ROOT
from training.__main__ import MODULES

PAGES = ROOT / "docs" / "reference"
# The packages themselves, and what is reached through other modules.
NOT_SHOWN = {"__init__", "__main__"}


def shown(text: str) -> str:
    return markdown(text, extensions=["fenced_code", "templates.pieces.mathml"])


def test_every_module_of_the_calculator_is_on_one_page() -> None:
    text = "\n".join(page.read_text("utf-8") for page in PAGES.glob("*.md"))
    named = re.findall(r"^::: calculator\.((?:(?:swarm|catalog)\.)?\w+)$", text, re.MULTILINE)
    expected = {"catalog"}
    for room in ("", "swarm.", "catalog."):
        folder = ROOT / "calculator" / room.rstrip(".")
        expected |= {f"{room}{path.stem}" for path in folder.glob("*.py")} - {
            f"{room}{name}" for name in NOT_SHOWN
        }
    assert sorted(named) == sorted(expected)


def test_every_command_of_training_is_told() -> None:
    page = render_page("reference")
    for name in ("rehearse", "join", "monitor", *MODULES):
        assert f"python -m training {name}`" in page


def test_an_equation_becomes_mathml() -> None:
    assert "<mi>N</mi>" in shown("Numbers.\n\n$$N = B S$$\n")


def test_an_example_becomes_code_and_keeps_its_stars() -> None:
    assert "2*3" in shown("Product.\n\n>>> 2*3*4\n24\n\nMore.\n")
    assert "<blockquote>" not in shown(">>> 1 + 1\n2\n")


def test_an_example_in_a_fence_is_fenced_once() -> None:
    page = shown("```pycon\n>>> 1 + 1\n2\n```\n\n## Next\n\n*Words*\n")
    assert page.count("<pre>") == 1
    assert "```" not in page
    assert "<em>Words</em>" in page


def test_stars_of_a_product_stay_and_emphasis_works() -> None:
    assert "B*S*d" in shown("with B*S*d numbers")
    assert "<em>all</em>" in shown("with *all* numbers")


def test_a_source_is_linked_to_the_list_of_sources() -> None:
    assert '<a href="../../formulas/#source-torch">torch</a>' in shown("Source: torch (a file)")


@pytest.mark.parametrize("text", ["```\na*b\n$$x$$\n```", "`a*b`"])
def test_code_is_left_alone(text: str) -> None:
    assert "a*b" in shown(text)
