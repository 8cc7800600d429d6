"""Stands in the browser's library for Pyodide's loader of packages, of which our site serves none.

The original imports archives, paths and temporary files at every start, a tenth of what a visitor
downloads of the library. A start asks it for two places only.
"""

from site import getsitepackages

try:
    # Pyodide expects this reference in each memory that it writes down.
    from pyodide_js import (  # type: ignore[import-not-found]
        loadedPackages as loaded_packages,  # noqa: N813
    )
except ImportError:  # no browser
    loaded_packages = None


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
