"""What is generated from the code: each template in pages/ becomes a Markdown page.

MkDocs then reads these pages like hand-written ones, so the site needs no hooks.
"""

import sys
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from templates import (
    about_page,
    accuracy_page,
    calculator_page,
    home_page,
    how_page,
    join_page,
    live_page,
    numbers_page,
    own_page,
    reference_page,
    security_page,
    tutorial_page,
)

FOLDER = Path(__file__).resolve().parent
PAGES = {
    "index": home_page.context,
    "live": live_page.context,
    "calculator": calculator_page.context,
    "numbers": numbers_page.context,
    "accuracy": accuracy_page.context,
    "reference/index": reference_page.context,
    "about": about_page.context,
    "join": join_page.context,
    "how-it-works": how_page.context,
    "security": security_page.context,
    "tutorial": tutorial_page.context,
    "run-your-own": own_page.context,
}


def render(staging: Path) -> None:
    """Write every generated page into `staging`, the folder that MkDocs reads.

    Raises:
        jinja2.UndefinedError: when a template names what its context does not have.
    """
    for name in PAGES:
        page = staging / f"{name}.md"
        page.parent.mkdir(exist_ok=True)
        page.write_text(render_page(name), "utf-8")


def render_page(name: str) -> str:
    """The Markdown of one generated page."""
    environment = Environment(
        loader=FileSystemLoader([FOLDER / "pages", FOLDER / "fragments"]),
        undefined=StrictUndefined,
        autoescape=False,  # Markdown; contexts hold our own words, and templates escape the rest
        trim_blocks=True,
        lstrip_blocks=True,
    )
    page = environment.get_template(f"{name}.md.j2").render(**PAGES[name]())
    return _without_empty_html_lines(page)


def _without_empty_html_lines(page: str) -> str:
    """`page` with runs of empty lines made one: loops of the template leave many."""
    lines: list[str] = []
    for line in page.splitlines():
        if line.strip() or (lines and lines[-1]):
            lines.append(line.rstrip())
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    render(Path(sys.argv[1]))
