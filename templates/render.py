"""Pages generated from the code: each folder of pages/ becomes a Markdown page.

A folder holds `page.md.j2` and, where that needs names, `context.py` with a function `context`.
A page that fetches files of its own writes them in that module's `write_assets`. What several
pages use is in pieces/. MkDocs reads the pages like hand-written ones, so the site needs no hooks.
"""

import importlib
import sys
from pathlib import Path
from types import ModuleType

from jinja2 import Environment, FileSystemLoader, StrictUndefined

FOLDER = Path(__file__).resolve().parent
TEMPLATE = "page.md.j2"


def pages(folder: Path = FOLDER / "pages") -> dict[str, Path]:
    """Each page's folder, by the page's address in the site."""
    return {
        template.parent.name.replace("_", "-"): template.parent
        for template in sorted(folder.glob(f"*/{TEMPLATE}"))
    }


def render(staging: Path) -> None:
    """Write every generated page into `staging`, the folder that MkDocs reads.

    Raises:
        jinja2.UndefinedError: when a template names what its context does not have.
    """
    for name, folder in pages().items():
        # A page with others below it is the first page of their folder.
        has_others = any((staging / name).glob("*.md"))
        page = staging / (f"{name}/index.md" if has_others else f"{name}.md")
        page.write_text(render_page(name, folder), "utf-8")
        write_assets = getattr(_module(folder), "write_assets", None)
        if write_assets:
            write_assets(staging / "assets")


def render_page(name: str, folder: Path | None = None) -> str:
    """The Markdown of one generated page."""
    folder = folder or pages()[name]
    environment = Environment(
        loader=FileSystemLoader([folder, FOLDER / "pieces"]),
        undefined=StrictUndefined,
        autoescape=False,  # Markdown; contexts hold our own words, and templates escape the rest
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return _without_empty_html_lines(environment.get_template(TEMPLATE).render(**_context(folder)))


def _module(folder: Path) -> ModuleType | None:
    """A page's context.py, where it has one."""
    if not (folder / "context.py").is_file():
        return None
    return importlib.import_module(f"templates.pages.{folder.name}.context")


def _context(folder: Path) -> dict[str, object]:
    """The names of a page; none where its folder has no context.py."""
    module = _module(folder)
    if module is None:
        return {}
    found: dict[str, object] = module.context()
    return found


def _without_empty_html_lines(page: str) -> str:
    """`page` with runs of empty lines made one: loops of the template leave many."""
    lines: list[str] = []
    for line in page.splitlines():
        if line.strip() or (lines and lines[-1]):
            lines.append(line.rstrip())
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    render(Path(sys.argv[1]))
