import doctest
import importlib
from pathlib import Path

import pytest

import calculator

ROOT = Path(calculator.__file__).parent
MODULES = [
    ".".join(("calculator", *path.relative_to(ROOT).with_suffix("").parts))
    for path in sorted(ROOT.rglob("*.py"))
    if path.stem != "__init__"
]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_in_docstrings_are_right(name: str) -> None:
    found = doctest.testmod(importlib.import_module(name), report=True)
    assert found.failed == 0


@pytest.mark.parametrize("name", ["units", "allocator", "parameters"])
def test_a_module_of_formulas_has_examples(name: str) -> None:
    module = importlib.import_module(f"calculator.{name}")
    examples = [test.examples for test in doctest.DocTestFinder().find(module)]
    assert sum(map(len, examples)) > 0
