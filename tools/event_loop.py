"""Stands in for asyncio and for Pyodide's event loop in the browser's library.

A page's Python answers one request after the other and awaits nothing, but Pyodide imports both at
every start: a third of all modules.
"""

try:
    # Pyodide expects this reference in each memory that it writes down.
    from pyodide_js._api import (  # type: ignore[import-not-found]
        scheduleCallback as schedule,  # noqa: N813
    )
except ImportError:  # no browser; or this is asyncio, which is imported before it is there
    schedule = None


def get_event_loop() -> None:
    """Refuse: there is none.

    Raises:
        RuntimeError: always.
    """
    raise RuntimeError("this Python awaits nothing: its library has no asyncio")


def _initialize_event_loop() -> None:
    """Leave out what Pyodide's own module does at its import."""
