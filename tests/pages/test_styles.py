"""Rules for the pages' styles, which instant navigation loads all at once."""

import re
from collections import defaultdict

from tools.console import ROOT

PAGES = ROOT / "templates" / "pages"


def lists_and_blocks(text: str) -> set[str]:
    """Classes that a rule styles by themselves: `[dir] .md-typeset .ways`, but not `.a .b`."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    found = set()
    for selectors in re.findall(r"([^{}]+)\{", text):
        for selector in selectors.split(","):
            plain = re.sub(r"\[dir\]|\.md-typeset", "", selector).strip()
            if match := re.fullmatch(r"\w*\.([\w-]+)", plain):
                found.add(match[1])
    return found


def test_no_class_is_styled_in_two_pages_files() -> None:
    files = defaultdict(set)
    for path in PAGES.glob("*/style.css"):
        for name in lists_and_blocks(path.read_text("utf-8")):
            files[name].add(path.parent.name)
    assert files
    assert {name: found for name, found in files.items() if len(found) > 1} == {}
