"""Run inside Pyodide: imports the modules that compile_bytecode.py has packed into one file.

A zip compresses each module by itself, and each module has names of its own in its bytecode.
Packed together, what many modules say is there once, and is read at once.
"""

import marshal
import sys
from importlib.machinery import ModuleSpec
from types import CodeType, ModuleType
from zipimport import zipimporter

# Where the archive has them: each module's name, its code, and True if it is a package.
MODULES = "modules.marshal"


class PackedModules:
    """Finds and loads modules whose code is in memory."""

    def __init__(self, modules: dict[str, tuple[CodeType, bool]]) -> None:
        self._modules = modules

    def find_spec(
        self, name: str, path: object = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The module's specification; None if it is not one of these."""
        if name not in self._modules:
            return None
        is_package = self._modules[name][1]
        return ModuleSpec(name, self, is_package=is_package)  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> None:
        """Leave it to Python."""

    def exec_module(self, module: ModuleType) -> None:
        """Run the module's code."""
        exec(self._modules[module.__name__][0], module.__dict__)


def read(archive: str) -> dict[str, tuple[CodeType, bool]]:
    """The modules of an archive that compile_bytecode.py has packed."""
    modules: dict[str, tuple[CodeType, bool]] = marshal.loads(
        zipimporter(archive).get_data(MODULES)
    )
    return modules


def install(archive: str) -> None:
    """Let Python import the modules of an archive."""
    sys.meta_path.insert(0, PackedModules(read(archive)))
