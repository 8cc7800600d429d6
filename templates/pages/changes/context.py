"""Data for 'Changelog': CHANGELOG.md, a level lower."""

import re

from tools.console import ROOT

CHANGELOG = ROOT / "CHANGELOG.md"


def changelog() -> str:
    """CHANGELOG.md without its title, its headings without brackets."""
    text = CHANGELOG.read_text("utf-8")
    versions = text[text.index("\n## ") :]
    return re.sub(r"^(#+) \[?([^\]\n]*)\]?(.*)$", r"\1 \2\3", versions, flags=re.MULTILINE).strip()


def context() -> dict[str, object]:
    """The names that `page.md.j2` uses."""
    return {"changelog": changelog()}
