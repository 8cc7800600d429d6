"""tests/quick.py: the tests that `build.py test --quick` chooses."""

from tests import quick
from tests.quick import importers, imports, nearest, within
from tools.console import ROOT

UNITS = ROOT / "calculator" / "units.py"
OWN = ROOT / "tests" / "calculator" / "test_units.py"


def test_a_file_that_imports_the_changed_one_comes_before_those_that_import_its_importers() -> None:
    a, b, c, d = (ROOT / name for name in "abcd")
    assert nearest({a}, {a: {c, d}, d: {b}}) == [a, c, d, b]


def test_imports_are_the_modules_files_and_the_folders_fixtures() -> None:
    found = set(imports(OWN))
    assert UNITS in found
    assert ROOT / "tests" / "conftest.py" in found


def test_a_test_that_names_a_changed_script_is_near_to_it() -> None:
    script, naming = ROOT / "docs/assets/live/forecast.js", ROOT / "tests/pages/test_forecast.py"
    assert importers([OWN, naming], {script})[script] == {naming}


def test_what_takes_too_long_is_left_out_and_what_fits_is_taken() -> None:
    most = quick.MOST_SECONDS * quick.PROCESSES
    files = [OWN, ROOT / "tests" / "long.py", ROOT / "tests" / "short.py"]
    timed = {"tests/calculator/test_units.py": most / 2, "tests/long.py": most, "tests/short.py": 1}
    assert list(within(files, timed)) == [files[0], files[2]]
