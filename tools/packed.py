"""Run inside Pyodide: imports the modules that compile_bytecode.py has packed into one file.

A zip compresses each module by itself, and each module has names of its own in its bytecode.
Packed together, what many modules say is there once. The file is compressed with Zstandard, which
takes a fifth less than what a zip can do, and is unpacked as fast. A module's code is made of its
bytes when it is imported: a start needs less than half of all.
"""

import marshal
import sys

# Not from `importlib`, nor anything for types alone: Python's library is not unpacked yet.
from _frozen_importlib import ModuleSpec
from zipimport import zipimporter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    # Each module's name, its code as marshal writes it, and True if it is a package; a data
    # file's path and its content.
    Modules = dict[str, tuple[bytes, bool]]

# Where the archive has them, and the methods that `dataclasses` writes, by their texts.
MODULES = "modules.marshal"
WRITTEN = "written.marshal"
# What Zstandard's output begins with, and what marshal writes never does.
ZSTANDARD = b"\x28\xb5\x2f\xfd"


class PackedModules:
    """Finds and loads modules whose code is in memory."""

    def __init__(self, modules: "Modules", archive: str) -> None:
        self._modules = modules
        self._archive = archive

    def find_spec(
        self, name: str, path: object = None, target: "ModuleType | None" = None
    ) -> ModuleSpec | None:
        """The module's specification; None if it is not one of these."""
        if name not in self._modules:
            return None
        is_package = self._modules[name][1]
        path = name.replace(".", "/") + ("/__init__" if is_package else "")
        origin = f"{self._archive}/{path}.py"
        return ModuleSpec(name, self, origin=origin, is_package=is_package)  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> None:
        """Leave it to Python."""

    def exec_module(self, module: "ModuleType") -> None:
        """Run the module's code."""
        exec(marshal.loads(self._modules[module.__name__][0]), module.__dict__)

    def get_data(self, path: str) -> bytes:
        """The content of a data file, by the path that it would have in the archive."""
        return self._modules[path.removeprefix(f"{self._archive}/")][0]


def read(archive: str) -> "Modules":
    """The modules of an archive that compile_bytecode.py has packed."""
    modules: Modules = _read(zipimporter(archive), MODULES)
    return modules


def _read(archive: zipimporter, name: str) -> "Any":
    content = archive.get_data(name)
    if content.startswith(ZSTANDARD):
        # The library's own module for it would import ten others.
        from _zstd import ZstdDecompressor  # type: ignore[import-not-found]

        content = ZstdDecompressor().decompress(content)
    return marshal.loads(content)


def install(archive: str) -> None:
    """Let Python import the modules of an archive."""
    sys.meta_path.insert(0, PackedModules(read(archive), archive))
    try:
        written: dict[str, bytes] = _read(zipimporter(archive), WRITTEN)
    except OSError:
        return  # it has no data classes
    import dataclasses

    def run(text: str, names: "dict[str, Any]", made: "dict[str, Any]") -> None:
        code = written.get(text)
        exec(text if code is None else marshal.loads(code), names, made)

    # It compiles the text of the methods that it writes, which takes most of a class's time.
    dataclasses.exec = run  # type: ignore[attr-defined]
