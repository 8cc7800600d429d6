"""Pages for visitors are short enough to finish; how their words are counted."""

import re
from pathlib import Path

import pytest

from benchmarks.lengths import Length, length_of
from benchmarks.lighthouse import PAGES

MOST_WORDS = 1_500
TOOLS = {"calculator", "plan", "live"}
READ = [address.rstrip("/") or "." for name, address in PAGES.items() if name not in TOOLS]


@pytest.mark.parametrize("page", READ)
def test_a_page_for_visitors_has_at_most_1500_words(site: Path, page: str) -> None:
    length = length_of((site / page / "index.html").read_text("utf-8"))
    assert length.shown
    assert length.shown + length.folded <= MOST_WORDS


def test_the_tabs_page_begins_with_its_figure_and_has_at_most_600_words_beside_it(
    site: Path,
) -> None:
    page = (site / "train-in-this-tab" / "index.html").read_text("utf-8")
    before, figure, after = re.split(r"(<figure.*?</figure>)", page, maxsplit=1, flags=re.DOTALL)
    assert 'id="tab"' in figure
    assert "<h2" not in before[before.index("<article") :]
    assert 0 < length_of(before + after).shown <= 600


def test_only_the_article_counts_and_closed_details_count_apart() -> None:
    page = """<nav>not this</nav><article class="md-content__inner md-typeset">
      <p>Four words, one 1,500.</p><pre>not this</pre><svg><text>nor this</text></svg>
      <p class="visually-hidden">not this</p><img alt="not this"><br>
      <details><summary>A title</summary><p>two words</p></details>
      <details open><p>open</p></details></article><p>not this</p>"""
    assert length_of(page) == Length(shown=4 + 2 + 1, folded=2)
