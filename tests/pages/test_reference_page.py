"""The reference names every module, command and option."""

import re

import pytest
from markdown import markdown

from tests.pages.rendered import render_page
from tools.console import ROOT
from training.__main__ import MODULES

PAGES = ROOT / "docs" / "reference"


def shown(text: str) -> str:
    return markdown(text, extensions=["fenced_code", "templates.pieces.mathml"])


def test_every_module_of_the_calculator_is_on_one_page() -> None:
    text = "\n".join(page.read_text("utf-8") for page in PAGES.glob("*.md"))
    named = re.findall(r"^::: calculator\.((?:(?:swarm|catalog)\.)?\w+)$", text, re.MULTILINE)
    folder = ROOT / "calculator"
    paths = (path for room in ("", "swarm", "catalog") for path in (folder / room).glob("[!_]*.py"))
    modules = {".".join(path.relative_to(folder).with_suffix("").parts) for path in paths}
    assert sorted(named) == sorted(modules | {"catalog"})


def test_every_command_of_training_is_told() -> None:
    page = render_page("reference")
    for name in ("rehearse", "join", "monitor", *MODULES):
        assert f"python -m training {name}`" in page


CASES = {
    "an equation becomes MathML": ("Numbers.\n\n$$N = B S$$\n", "<mi>N</mi>"),
    "an example becomes code and keeps its stars": (">>> 2*3*4\n24\n\nMore.\n", "2*3"),
    "stars of a product stay": ("with B*S*d numbers", "B*S*d"),
    "emphasis works": ("with *all* numbers", "<em>all</em>"),
    "a source is linked": ("Source: torch (a file)", '"../../formulas/#source-torch">torch</a>'),
    "fenced code is left alone": ("```\na*b\n$$x$$\n```", "a*b"),
    "code is left alone": ("`a*b`", "a*b"),
}


@pytest.mark.parametrize("name", CASES)
def test_docstrings_become_html(name: str) -> None:
    text, words = CASES[name]
    assert words in shown(text)
    assert "<blockquote>" not in shown(text)


def test_an_example_in_a_fence_is_fenced_once() -> None:
    page = shown("```pycon\n>>> 1 + 1\n2\n```\n\n## Next\n\n*Words*\n")
    assert page.count("<pre>") == 1
    assert "```" not in page
    assert "<em>Words</em>" in page
