"""Run inside Pyodide by import_closure.mjs: the part of the standard library that is imported.

Two thirds of the library are never imported by Pyodide and `calculator`. They stay out of the zip
that every first visit downloads; `left_out`, a module in it, names them, so that the page can fetch
the whole library should one be asked for after all.
"""

import dis
import importlib.util
import marshal
import sys
import zipfile
from collections.abc import Iterator
from types import CodeType

# The oldest date a zip can hold: the same bytes at every build.
EPOCH = (1980, 1, 1, 0, 0, 0)
# PEP 552: hash-based and unchecked, as compile_bytecode.py writes it.
HEADER = importlib.util.MAGIC_NUMBER + (0b01).to_bytes(4, "little") + bytes(8)


def wanted(calculator: str) -> list[str]:
    """The modules of `calculator`, and those that any of its code names in an import."""
    sys.path.append(calculator)
    try:
        import packed  # type: ignore[import-not-found]  # it is in the archive
    except ImportError:  # sources, which name nothing beforehand
        return _modules_of(calculator)
    modules = packed.read(calculator)
    names = set(modules)
    for code, _ in modules.values():
        names.update(_imports(code))
    return sorted(names)


def _modules_of(calculator: str) -> list[str]:
    with zipfile.ZipFile(calculator) as archive:
        return sorted(_module_of(path) for path in archive.namelist())


def _imports(code: CodeType) -> Iterator[str]:
    """The absolute names after `import` and `from`, at every depth of `code`."""
    for step in dis.get_instructions(code):
        if step.opname == "IMPORT_NAME":
            yield step.argval
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _imports(constant)


def write_closure(library: str, names: list[str], target: str) -> None:
    """Copy the modules `names` of the zip at `library`, and `left_out` with the others' names."""
    with zipfile.ZipFile(library) as whole, zipfile.ZipFile(target, "w") as closure:
        paths = {_module_of(path): path for path in whole.namelist() if path.endswith(".pyc")}
        for name in sorted(paths.keys() & set(names)):
            _add(closure, paths[name], whole.read(paths[name]))
        left_out = sorted(paths.keys() - set(names))
        source = f"NAMES = frozenset({' '.join(left_out)!r}.split())"
        code = compile(source, "left_out.py", "exec", optimize=2)
        _add(closure, "left_out.pyc", HEADER + marshal.dumps(code))


def _module_of(path: str) -> str:
    return path.rsplit(".", 1)[0].removesuffix("/__init__").replace("/", ".")


def _add(archive: zipfile.ZipFile, path: str, content: bytes) -> None:
    entry = zipfile.ZipInfo(path, EPOCH)
    entry.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(entry, content, compresslevel=9)
