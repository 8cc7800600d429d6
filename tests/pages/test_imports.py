"""Imports between modules of templates/, read from the source."""

import ast
from graphlib import TopologicalSorter

from tools.console import ROOT

MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts): path
    for path in (ROOT / "templates").rglob("*.py")
}


def imported(module: str) -> set[str]:
    """Modules of templates/ that a module imports, including inside its functions."""
    found = set()
    for node in ast.walk(ast.parse(MODULES[module].read_text("utf-8"))):
        match node:
            case ast.Import(names=names):
                found |= {name.name for name in names}
            case ast.ImportFrom(module=source, names=names):
                found |= {str(source), *(f"{source}.{name.name}" for name in names)}
    return found & MODULES.keys()


def test_no_two_modules_import_each_other() -> None:
    TopologicalSorter({module: imported(module) for module in MODULES}).prepare()


# The first state of the form, which the page's script shows as it shows those that Python answers.
ASKING = "templates.pages.calculator.context"


def test_pages_take_sizes_from_estimates_not_from_the_json_made_of_them() -> None:
    texts = {module: path.read_text("utf-8") for module, path in MODULES.items()}
    assert [module for module, text in texts.items() if '["report"]' in text] == [ASKING]
