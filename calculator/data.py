"""Data files beside the modules: figures that are read, not run."""

import json
from typing import TYPE_CHECKING, Any, Final, cast

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec

_OWN: Final = __spec__


def text_beside(module: "ModuleSpec", path: str) -> str:
    """The text of a file, by its path in the folder of a module, which may be in an archive."""
    # not of `__file__`, which modules in the browser's archive do not have
    folder = str(module.origin).removesuffix(f"{module.name.rpartition('.')[2]}.py")
    loader: Any = module.loader
    return cast("bytes", loader.get_data(f"{folder}{path}")).decode()


def read_data(path: str) -> Any:
    """Values of a JSON file, by its path in `calculator`."""
    return json.loads(text_beside(_OWN, path))
