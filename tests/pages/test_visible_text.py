"""Text that readers of the built pages see: words, figures and code, never the page's source."""

import re
from pathlib import Path

import pytest

from tests.pages.visible import Piece, VisibleText

# Signs of Markdown, HTML and templates that were shown instead of read.
MARKS = {
    "a fence": re.compile(r"```|^\s*~~~", re.M),
    "an attribute list": re.compile(r"\{:?\s*[#.][\w-]"),
    "a heading mark": re.compile(r"^\s*#{2,6} \S", re.M),
    "a tag": re.compile(r"</?[a-zA-Z][\w-]*(?:\s[^<>]*)?/?>"),
    "a link": re.compile(r"\]\([^)]*\)|\[\^"),
    "emphasis": re.compile(r"\*\*\S"),
    "an equation's source": re.compile(r"\$\$"),
    "a template": re.compile(r"\{\{|\{%"),
}


def marks(page: str) -> list[str]:
    """Each sign of a source in the visible text, with its line and some words beside it."""
    found = []
    for piece in VisibleText(page).pieces:
        for name, pattern in _marks_of(piece).items():
            if match := pattern.search(piece.text):
                around = piece.text[max(0, match.start() - 30) : match.end() + 30]
                found.append(f"line {piece.line}: {name}: {around!r}")
    return found


def _marks_of(piece: Piece) -> dict[str, re.Pattern[str]]:
    if piece.is_code:  # in Python two stars are a power, or arguments by name
        return {name: pattern for name, pattern in MARKS.items() if name != "emphasis"}
    return MARKS | {
        "a heading mark": re.compile(r"^\s*#+ \S", re.M),
        "a mark of code": re.compile(r"`[^`\n]+`"),
    }


def test_no_built_page_shows_its_own_source(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    found = {page.relative_to(site).as_posix(): marks(page.read_text("utf-8")) for page in pages}
    assert {name: those for name, those in found.items() if those} == {}


@pytest.mark.parametrize(
    "shown",
    [
        *("<p>```pycon</p>", "<code>text {: .source }</code>", "<p># Title</p>"),
        *("<p>{{ name }}</p>", "<pre>### Median { #median }</pre>", "<td>$$x$$</td>"),
        *("<p>[text](page.md)</p>", "<p>more **bold**</p>", "<p>the recipe `paper`</p>"),
        "<p>&lt;div class=equation&gt;</p>",
    ],
)
def test_a_shown_source_is_noticed(shown: str) -> None:
    assert len(marks(f"<body><br>{shown}</body>")) >= 1
