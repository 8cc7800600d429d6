"""Stands in the browser's library for three modules: asyncio, Pyodide's event loop and its loader.

A page's Python answers one request after the other, awaits nothing and installs no packages, but
Pyodide imports all three at every start: with what they import, over a third of all modules.
"""

from site import getsitepackages

# Pyodide expects one reference of each module in every memory that it writes down.
try:
    match __name__:
        case "pyodide._package_loader":
            from pyodide_js import loadedPackages  # type: ignore[import-not-found]  # noqa: F401
        case "pyodide.webloop":
            from pyodide_js._api import scheduleCallback  # type: ignore[import-not-found]  # noqa: F401
except ImportError:
    pass  # no browser


class Place:
    """A folder, as text."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __str__(self) -> str:
        return self._path


SITE_PACKAGES = Place(getsitepackages()[0])
DSO_DIR = Place("/usr/lib")


def init_loaded_packages() -> None:
    """There are none."""


def get_event_loop() -> None:
    """Refuse: there is none.

    Raises:
        RuntimeError: always.
    """
    raise RuntimeError("this Python awaits nothing: its library has no asyncio")


def _initialize_event_loop() -> None:
    """Leave out what Pyodide's own module does at its import."""
