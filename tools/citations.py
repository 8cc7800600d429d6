"""Links to the source, wherever a page names a file or a module of ours in code."""

import re
from pathlib import Path

from tools.console import ROOT
from tools.files import change_pages, write_atomically
from tools.source import Source, files

# A name in code, or an element that stays as it is: its code is a link already, a program's text,
# or copied into a link.
CODE = re.compile(
    r"<(a|pre|button|h[1-6]|title)\b[^>]*>.*?</\1>|<code>(?P<name>[\w./-]+)</code>", re.S
)


def link_cited_files(site: Path, source: Source) -> None:
    """Make a link of each file of ours that a page names in code, and of each module."""
    known = set(files())
    shown: set[str] = set()

    def linked(page: Path, text: str) -> str:
        root = "" if source.repository else "../" * len(page.parent.relative_to(site).parts)

        def link(found: re.Match[str]) -> str:
            path = cited(found["name"] or "", known)
            if not path:
                return found[0]
            shown.add(path)
            return f'<a class="cited" href="{root}{source.view(path)}">{found[0]}</a>'

        return text if page.name == "404.html" else CODE.sub(link, text)

    change_pages(site, linked)
    if not source.repository:
        for path in shown:
            write_atomically(site / source.view(path), (ROOT / path).read_bytes())


def cited(text: str, known: set[str]) -> str:
    """The file of ours that `text` names, by its path or as a module; nothing for other words."""
    if text in known:
        return text
    names = text.split(".")
    for length in range(len(names), 1, -1):
        stem = "/".join(names[:length])
        for path in (f"{stem}.py", f"{stem}/__init__.py"):
            if path in known:
                return path
    return ""
