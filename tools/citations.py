"""Links to the source, wherever a page names a file or a module of ours in code."""

import re
from collections.abc import Callable
from pathlib import Path

from tools.console import ROOT
from tools.files import write_atomically
from tools.source import Source, files

CODE = re.compile(r"<code>([\w./-]+)</code>")
# Elements whose code is a link already, a program's text, or copied into a link.
LINKLESS = re.compile(r"<(a|pre|button|h[1-6]|title)\b[^>]*>.*?</\1>", re.S)
Change = Callable[[re.Match[str]], str]


def link_cited_files(site: Path, source: Source) -> None:
    """Make a link of each file of ours that a page names in code, and of each module."""
    known = set(files())
    shown: set[str] = set()
    for page in sorted(site.rglob("*.html")):
        root = "../" * len(page.parent.relative_to(site).parts)

        def link(found: re.Match[str], root: str = root) -> str:
            path = cited(found[1], known)
            if not path:
                return found[0]
            shown.add(path)
            address = source.view(path)
            whole = address if source.repository else root + address
            return f'<a class="cited" href="{whole}">{found[0]}</a>'

        if page.name != "404.html":
            page.write_text(_outside(LINKLESS, CODE, link, page.read_text("utf-8")), "utf-8")
    if not source.repository:
        for path in shown:
            write_atomically(site / source.view(path), (ROOT / path).read_bytes())


def cited(text: str, known: set[str]) -> str:
    """The file of ours that `text` names, by its path or as a module; nothing for other words.

    >>> cited("training.lamb.step", {"training/lamb.py", "training/__init__.py"})
    'training/lamb.py'
    """
    if text in known:
        return text
    names = text.split(".")
    for length in range(len(names), 1, -1):
        stem = "/".join(names[:length])
        for path in (f"{stem}.py", f"{stem}/__init__.py"):
            if path in known:
                return path
    return ""


def _outside(kept: re.Pattern[str], pattern: re.Pattern[str], change: Change, text: str) -> str:
    """`text` with `pattern` replaced wherever it is not inside of what is `kept`."""
    pieces, end = [], 0
    for found in kept.finditer(text):
        pieces += [pattern.sub(change, text[end : found.start()]), found[0]]
        end = found.end()
    return "".join([*pieces, pattern.sub(change, text[end:])])
