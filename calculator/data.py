"""Data files beside the modules: figures that are read, not run."""

import json
from typing import Any, Final

_LOADER: Final[Any] = __spec__.loader
# not of `__file__`, which modules in the browser's archive do not have
_FOLDER: Final = str(__spec__.origin).removesuffix("data.py")


def read_data(path: str) -> Any:
    """Values of a JSON file, by its path in `calculator`, which may be in an archive."""
    return json.loads(_LOADER.get_data(f"{_FOLDER}{path}"))
