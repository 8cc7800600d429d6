"""Landmarks of the built pages: a screen reader's list of them should name each thing once.

The theme nests a `nav` for every level of its navigation, each a landmark, many with one name.
The outermost says where one is; those inside become groups.
"""

import re
from pathlib import Path

_NAV = re.compile(r"<nav\b[^>]*>|</nav>")


def unnest_navigation(site: Path) -> None:
    """Turn each `nav` inside another one into a group, in every page of `site`."""
    for path in sorted(site.rglob("*.html")):
        text = path.read_text("utf-8")
        changed = without_nested_navigation(text)
        if changed != text:
            path.write_text(changed, "utf-8")


def without_nested_navigation(page: str) -> str:
    """`page` with a `nav` at the outermost level only.

    >>> without_nested_navigation('<nav id="a"><nav class="b">c</nav></nav>')
    '<nav id="a"><div role="group" class="b">c</div></nav>'
    """
    depth = 0

    def outermost(tag: re.Match[str]) -> str:
        nonlocal depth
        if tag[0] == "</nav>":
            depth -= 1
            return "</div>" if depth else tag[0]
        depth += 1
        return tag[0] if depth == 1 else f'<div role="group"{tag[0].removeprefix("<nav")}'

    return _NAV.sub(outermost, page)
