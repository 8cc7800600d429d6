"""Fills in the install address, which committed files leave open and a built site needs."""

import re
from pathlib import Path

from tools.files import replace_once
from tools.source import Source

# The line of a notebook, as JSON has it, that the build fills in.
EMPTY = 'SOURCE = \\"\\"'
PLACEHOLDERS = re.compile(
    r"git\+ADDRESS|<code>ADDRESS</code>|\bSOURCE = (?:\\?\"){2}|\bTODO\b|\bFIXME\b|@@\w+@@"
)


def fill_notebooks(folder: Path, source: Source) -> None:
    """Write what to install into every notebook, in the one place for it, else BuildError."""
    for notebook in sorted(folder.glob("*.ipynb")):
        text = notebook.read_text("utf-8")
        filled = f'SOURCE = \\"{source.origin}\\"'
        notebook.write_text(replace_once(notebook.name, text, EMPTY, filled), "utf-8")


def placeholders(site: Path) -> list[str]:
    """One line for each placeholder that is left in a page or a notebook."""
    return [
        f"{path.relative_to(site)}: {found[0]}: is to be filled in"
        for path in sorted([*site.rglob("*.html"), *site.rglob("*.ipynb")])
        for found in PLACEHOLDERS.finditer(path.read_text("utf-8"))
    ]
