"""Examples in docstrings outside of `calculator`, whose own pytest collects."""

import doctest
import importlib

import pytest

from tools.console import ROOT

FOLDERS = ("templates", "tools", "training", "validation")
MODULES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for folder in FOLDERS
    for path in sorted((ROOT / folder).rglob("*.py"))
    if ">>> " in path.read_text("utf-8")
]


@pytest.mark.filterwarnings("ignore")  # of the libraries' imports
@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_hold(name: str) -> None:
    found = doctest.testmod(importlib.import_module(name))
    assert found.attempted > 0
    assert found.failed == 0
