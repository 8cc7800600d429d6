"""One style sheet for all pages: the theme's, then ours, then what MkDocs's plugin wrote.

Each of them would hold up a page's first picture with a request of its own. PurgeCSS removes what
only other sites need of the theme's (purge.mjs).
"""

import json
import re
from pathlib import Path

from tools.console import BuildError, run
from tools.files import change_pages, only_file
from tools.node import Node

# In the order in which a page links them; ours is the one that stays.
THEMES = ("assets/stylesheets/main.*.min.css", "assets/stylesheets/palette.*.min.css")
OURS = "assets/styles/site.css"
PURGE = Path(__file__).with_name("purge.mjs")
GENERATED = "assets/_mkdocstrings.css"
END = "/*# sourceMappingURL="
RELATIVE = re.compile(r"url\((?![\"']?data:)")


def merge_styles(site: Path, node: Node) -> None:
    """Put the other style sheets of `site` before and behind ours, and link to it alone.

    Raises BuildError when one of them is not as expected.
    """
    before = [only_file(site, pattern) for pattern in THEMES]
    behind = only_file(site, GENERATED)
    styles = site / OURS
    failure = "PurgeCSS could not remove the theme's unused styles."
    run([node.node, PURGE, site, styles, behind, "--", *before], failure)
    ours, mark, end = styles.read_text("utf-8").rpartition(END)
    first = "".join(f"{path.read_text('utf-8').rstrip()}\n" for path in before)
    if RELATIVE.search(first):
        raise BuildError("The theme's styles name files relative to themselves (tools/styles.py).")
    styles.write_text(f"{first}{ours}{behind.read_text('utf-8')}{mark}{end}", "utf-8")
    _move_map(styles.with_name(f"{styles.name}.map"), first.count("\n"))
    merged = [*before, behind]
    names = "|".join(re.escape(path.name) for path in merged)
    link = re.compile(rf'\s*<link rel="stylesheet" href="[^"]*/(?:{names})">')
    change_pages(site, lambda _, text: link.sub("", text))
    for path in merged:
        path.unlink()
        path.with_name(f"{path.name}.map").unlink(missing_ok=True)


def _move_map(path: Path, lines: int) -> None:
    """Let a source map begin so many lines later: a semicolon ends a line of it."""
    content = json.loads(path.read_text("utf-8"))
    content["mappings"] = ";" * lines + content["mappings"]
    path.write_text(json.dumps(content, separators=(",", ":")), "utf-8")
