"""Imports between modules of templates/, read from the source."""

from graphlib import TopologicalSorter

from tests.quick import imports
from tools.console import ROOT

MODULES = {*(ROOT / "templates").rglob("*.py")}
# The first state of the form, which the page's script shows as it shows those that Python answers.
ASKING = ROOT / "templates/pages/calculator/context.py"


def test_no_two_modules_import_each_other() -> None:
    TopologicalSorter({path: MODULES & {*imports(path)} for path in MODULES}).prepare()


def test_pages_take_sizes_from_estimates_not_from_the_json_made_of_them() -> None:
    assert [path for path in MODULES if '["report"]' in path.read_text("utf-8")] == [ASKING]
