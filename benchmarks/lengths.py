"""Words of each page of a built site: those shown, and those with everything unfolded.

`python -m benchmarks.lengths [SITE]` prints one line for each page. It counts the text of the
page's own content and leaves out what the theme adds around it (navigation, footer), commands and
code, options of a form, and text that only a script or a screen reader shows.
"""

import re
import sys
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path

from tools.addresses import pages_of
from tools.console import ROOT

SILENT = {"script", "style", "noscript", "template", "svg", "math"}
SILENT |= {"pre", "code", "select", "dialog"}
VOID = {"area", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr"}
WORD = re.compile(r"[^\W_]+(?:[.,'’/-][^\W_]+)*")


@dataclass(slots=True)
class Length:
    """Words of one page: those shown, and those inside closed `<details>`."""

    shown: int = 0
    folded: int = 0


class _Words(HTMLParser):
    """Counts the words in the article of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.length = Length()
        self._open: list[tuple[str, str]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self._open.append((tag, _role(tag, dict(attrs))))

    def handle_endtag(self, tag: str) -> None:
        if any(tag == name for name, _ in self._open):
            while self._open.pop()[0] != tag:
                pass

    def handle_data(self, data: str) -> None:
        roles = {role for _, role in self._open}
        if "page" not in roles or "silent" in roles:
            return
        words = len(WORD.findall(data))
        is_title = any(name == "summary" for name, _ in self._open)
        if "folded" in roles and not is_title:
            self.length.folded += words
        else:
            self.length.shown += words


def _role(tag: str, given: dict[str, str | None]) -> str:
    kinds = set((given.get("class") or "").split())
    if tag in SILENT or "hidden" in given or kinds & {"visually-hidden", "headerlink"}:
        return "silent"
    if tag == "article" and "md-content__inner" in kinds:
        return "page"
    return "folded" if tag == "details" and "open" not in given else ""


def length_of(page: str) -> Length:
    """The words of one page's HTML."""
    return _Words(page).length


def main(arguments: list[str]) -> None:
    """Print the words of every page of the site, and their sums."""
    site = Path(arguments[0]) if arguments else ROOT / "site"
    lengths = {
        page: length_of((site / page / "index.html").read_text("utf-8")) for page in pages_of(site)
    }
    print(f"{'shown':>7} {'unfolded':>8}  page")
    for name, length in lengths.items():
        print(f"{length.shown:7,} {length.shown + length.folded:8,}  {name}")
    shown = sum(length.shown for length in lengths.values())
    folded = sum(length.folded for length in lengths.values())
    print(f"{shown:7,} {shown + folded:8,}  all pages")


if __name__ == "__main__":
    main(sys.argv[1:])
