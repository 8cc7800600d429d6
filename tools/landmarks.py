"""Landmarks of the built pages: a screen reader's list of them should name each thing once.

The theme nests a `nav` for every level of its navigation, each a landmark, many with one name.
The outermost says where one is; those inside become groups.
"""

import re

_NAV = re.compile(r"<nav\b[^>]*>|</nav>")


def without_nested_navigation(_: object, page: str) -> str:
    """`page` with a `nav` at the outermost level only, each inside it turned into a group."""
    depth = 0

    def outermost(tag: re.Match[str]) -> str:
        nonlocal depth
        if tag[0] == "</nav>":
            depth -= 1
            return "</div>" if depth else tag[0]
        depth += 1
        return tag[0] if depth == 1 else f'<div role="group"{tag[0].removeprefix("<nav")}'

    return _NAV.sub(outermost, page)
