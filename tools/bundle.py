"""One script a page, which esbuild bundles of the files in its folder and those in docs/assets.

A page's element names its script: ``data-script="how-it-works"`` is
templates/pages/how_it_works/script.js. The built page loads it from its head, with the modules that
it shares with others; after instant navigation docs/assets/site.js does.
"""

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from tools.console import ROOT, BuildError, run
from tools.files import change_pages
from tools.node import Node

SOURCES = (ROOT / "docs" / "assets", ROOT / "templates" / "pages")
SCRIPT = Path(__file__).with_name("bundle.mjs")
BUNDLED = shutil.ignore_patterns("*.js", "*.css", "*.py", "*.ts")  # so it is not copied
NAMED = re.compile(r'\bdata-script="?([\w-]+)')
IMPORTED = re.compile(r"""\b(?:from|import)\s*["'](\.[^"']+)["']""")
HEAD = "</head>"


def bundle_assets(assets: Path, node: Node, lock: str) -> None:
    """Write the scripts and styles of all pages into `assets`, their source maps beside them.

    `lock` is Pyodide's list of packages, as JSON. Raises BuildError when one names what is missing.
    """
    # Relative, as the source maps should be: the same bytes in any folder.
    folders = [os.path.relpath(folder, ROOT) for folder in (*SOURCES, assets)]
    run([node.node, SCRIPT, *folders, lock], "The pages' scripts and styles could not be bundled.")


def load_page_scripts(site: Path) -> None:
    """Let each head load the scripts that its page's elements name; BuildError without one."""

    def loading(page: Path, text: str) -> str:
        names = list(dict.fromkeys(NAMED.findall(text)))
        return text.replace(HEAD, "".join([*_tags(names, page, site), HEAD]), 1)

    change_pages(site, loading)


def _tags(names: list[str], page: Path, site: Path) -> Iterator[str]:
    scripts = [site / "assets" / f"{name}.js" for name in names]
    for script in scripts:
        if not script.is_file():
            where = page.relative_to(site)
            raise BuildError(f'{where}: data-script="{script.stem}": no page has this script.')
    shared = dict.fromkeys(path for script in scripts for path in imported_by(script))
    for path in shared:
        yield f'<link rel="modulepreload" href="{os.path.relpath(path, page.parent)}">'
    for path in scripts:
        yield f'<script type="module" src="{os.path.relpath(path, page.parent)}"></script>'


def imported_by(script: Path) -> list[Path]:
    """The modules that a script needs before it runs, those that they need included."""
    found = [script]
    for module in found:
        for address in IMPORTED.findall(module.read_text("utf-8")):
            path = (module.parent / address).resolve()
            if path not in found and path.is_file():
                found.append(path)
    return found[1:]
