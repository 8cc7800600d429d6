"""Fixtures shared by tests in several folders."""

from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest
from hypothesis import HealthCheck, settings

from tools.chromium import find_chromium
from tools.server import make_server
from tools.website import SITE

# speed is benchmarked, never tested: a busy machine may take its time for an example
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Side by side, files with a swarm come first: a long one must not be left over at the end."""
    if hasattr(config, "workerinput"):
        swarms = {item.path for item in items if item.get_closest_marker("swarm")}
        items.sort(key=lambda item: item.path not in swarms)


@pytest.fixture(scope="session")
def chromium() -> Path:
    """A Chromium that starts."""
    return find_chromium()


@pytest.fixture(scope="session")
def site() -> Path:
    """The folder of the built site."""
    if not (SITE / "index.html").is_file():
        pytest.fail("There is no site/: run `python3 build.py build` first.")
    return SITE


@pytest.fixture(scope="session")
def site_address(site: Path) -> Iterator[str]:
    """The address of the built site, served as `build.py serve` does; ends with a slash."""
    server = make_server(site, 0)
    thread = Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()
