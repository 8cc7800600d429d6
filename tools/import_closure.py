"""Run inside Pyodide by import_closure.mjs: the part of the standard library that is imported.

Two thirds of the library are never imported by Pyodide and `calculator`. They stay out of the zip
that every first visit downloads; `left_out`, a module in it, names them, so that the page can fetch
the whole library should one be asked for after all.
"""

import dis
import importlib
import importlib.util
import io
import json
import marshal
import sys
import zipfile
from collections.abc import Iterator
from contextlib import redirect_stderr
from types import CodeType

# The oldest date a zip can hold: the same bytes at every build.
EPOCH = (1980, 1, 1, 0, 0, 0)
# PEP 552: hash-based and unchecked, as compile_bytecode.py writes it.
HEADER = importlib.util.MAGIC_NUMBER + (0b01).to_bytes(4, "little") + bytes(8)
LARGE_REQUEST = {"id": 1, "method": "answer", "params": {"model": "no such model", "x": "y" * 99}}


def exercise(calculator: str) -> list[str]:
    """Import all that `calculator` can import and answer requests of every kind; what failed."""
    failed = []
    for name in sorted(_wanted(calculator)):
        try:
            importlib.import_module(name)
        except ImportError as error:
            failed.append(f"{name}: {error}")
    protocol = importlib.import_module("calculator.protocol")
    # Mistakes of a visitor and of ours are answered by code that runs at no other time.
    protocol._METHODS["fail"] = lambda _: 1 / 0
    requests = [{"id": 1, "method": method, "params": {}} for method in protocol._METHODS]
    with redirect_stderr(io.StringIO()) as trace:
        for text in (*map(json.dumps, [*requests, LARGE_REQUEST]), "{"):
            json.loads(protocol.handle(text))
    del protocol._METHODS["fail"]
    if "ZeroDivisionError" not in trace.getvalue():
        failed.append("the trace of a failing request was not written")
    return failed


def _wanted(calculator: str) -> set[str]:
    """The modules of `calculator`, and those that any of its code names in an import."""
    wanted = set()
    with zipfile.ZipFile(calculator) as archive:
        for path in archive.namelist():
            if path.endswith((".pyc", ".py")):
                wanted.add(path.rsplit(".", 1)[0].removesuffix("/__init__").replace("/", "."))
            if path.endswith(".pyc"):
                wanted.update(_imports(marshal.loads(archive.read(path)[16:])))
    return {name for name in wanted if not name.endswith("__main__")}


def _imports(code: CodeType) -> Iterator[str]:
    """The absolute names after `import` and `from`, at every depth of `code`."""
    for step in dis.get_instructions(code):
        if step.opname == "IMPORT_NAME":
            yield step.argval
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _imports(constant)


def imported(library: str) -> list[str]:
    """The modules that have been imported from the zip at `library`."""
    origins = {
        name: getattr(getattr(module, "__spec__", None), "origin", None) or ""
        for name, module in list(sys.modules.items())
    }
    return sorted(name for name, origin in origins.items() if origin.startswith(f"{library}/"))


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
    return path.removesuffix(".pyc").removesuffix("/__init__").replace("/", ".")


def _add(archive: zipfile.ZipFile, path: str, content: bytes) -> None:
    entry = zipfile.ZipInfo(path, EPOCH)
    entry.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(entry, content, compresslevel=9)
