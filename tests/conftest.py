"""Fixtures shared by tests in several folders."""

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.scheduling import SideBySide, Stopwatch
from tools.chromium import find_chromium
from tools.server import serving
from tools.website import SITE

# Speed is benchmarked, never tested: a busy machine may take its time for an example. The examples
# are the same in every run, so that no change fails for another's; --hypothesis-profile=explore
# looks for new ones.
settings.register_profile("explore", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("same", settings.get_profile("explore"), derandomize=True)
settings.load_profile("same")


def pytest_configure(config: pytest.Config) -> None:
    """Time every unit, in the process that hears of all tests."""
    gc.disable()
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Stopwatch())


def pytest_collection_finish() -> None:
    """Let no search for garbage go through all that is loaded again: an eighth of the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)  # few cycles are made: a twelfth of the time
    gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> SideBySide | None:
    """For `--dist loadfile`, with the long files first."""
    return SideBySide(config, log) if config.getoption("dist") == "loadfile" else None


@pytest.fixture(scope="session")
def chromium() -> Path:
    return find_chromium()


@pytest.fixture(scope="session")
def site() -> Path:
    if not (SITE / "index.html").is_file():
        pytest.fail("There is no site/: run `python3 build.py build` first.")
    return SITE


@pytest.fixture(scope="session")
def site_address(site: Path) -> Iterator[str]:
    """The address of the built site, served as `build.py serve` does; ends with a slash."""
    with serving(site) as address:
        yield address
