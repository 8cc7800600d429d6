"""Run inside Pyodide by browser_python.mjs: a zip of sources becomes a zip of bytecode.

Pyodide's own zip of the standard library holds sources only, so every start compiles some 140
modules. Bytecode skips that, and its line tables are a fifth of its size.
"""

import ast
import dataclasses
import importlib
import importlib.util
import marshal
import sys
import zipfile
from types import CodeType
from typing import Any

try:
    from compression import zstd  # type: ignore[import-not-found]
except ImportError:  # Python before 3.14, which packs larger archives
    zstd = None

# Each module's name, its code as marshal writes it, and True if it is a package; a data file's path
# and its content.
Modules = dict[str, tuple[bytes, bool]]

# The oldest date a zip can hold: the same bytes at every build.
EPOCH = (1980, 1, 1, 0, 0, 0)
# PEP 552: hash-based and unchecked, so neither a date nor a source is asked for.
UNCHECKED_HASH = (0b01).to_bytes(4, "little")
# As packed.py has them, whose own bytecode is packed, too.
MODULES = "modules.marshal"
WRITTEN = "written.marshal"
FINDER = "packed"
# What stand_ins.py stands in for.
REPLACED = ("pyodide/_package_loader.py", "pyodide/webloop.py", "asyncio/__init__.py")


def compile_zip(sources: str, bytecode: str, stand_ins: str = "") -> None:
    """Compile each `.py` of a zip, without docstrings, asserts and lines; copy the rest.

    `stand_ins` is the text of the modules `REPLACED`, if given.
    """
    with zipfile.ZipFile(sources) as source_zip, zipfile.ZipFile(bytecode, "w") as target:
        for name in sorted(source_zip.namelist()):
            is_replaced = stand_ins and name in REPLACED
            content = stand_ins.encode() if is_replaced else source_zip.read(name)
            if name.endswith(".py"):
                code = without_line_tables(compiled(content, name))
                name, content = f"{name}c", pyc(code, content)
            target.writestr(zipfile.ZipInfo(name, EPOCH), content)  # as it is: nobody downloads it


def pack_zip(sources: str, packed: str, finder: str = "") -> None:
    """Compile the modules of `sources` into one file, beside `finder`, which imports from it.

    Docstrings and asserts are dropped; line tables stay, for traces of our own mistakes. Modules
    without a finder are imported beside those that have one.
    """
    modules = _compiled_modules(sources)
    with zipfile.ZipFile(packed, "w") as target:
        add_packed(target, MODULES, modules)
        if finder:
            add_packed(target, WRITTEN, written_by_dataclasses(modules, finder))
            add_module(target, FINDER, finder)


def _compiled_modules(sources: str) -> Modules:
    """The modules and data files of a zip."""
    modules: Modules = {}
    with zipfile.ZipFile(sources) as source_zip:
        for path in sorted(source_zip.namelist()):
            if not path.endswith(".py"):
                modules[path] = (source_zip.read(path), False)
                continue
            name = module_of(path)
            text = source_zip.read(path)
            code = compiled(with_brief_docs(text) if b"@dataclass" in text else text, path)
            modules[name] = (dumps(code), path.endswith("/__init__.py"))
    return modules


def names_of(modules: Modules) -> list[str]:
    """The names of the modules, without data files."""
    return [name for name in modules if "/" not in name]


def with_brief_docs(source: bytes) -> ast.Module:
    """The parsed module, each of its data classes with a docstring that bytecode keeps.

    Of a class without one, `dataclasses` writes the signature, which costs more than all its
    other work.
    """
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and any(map(_is_dataclass, node.decorator_list)):
            brief = ast.parse(f"__doc__ = {node.name!r}").body[0]
            node.body.insert(0, ast.copy_location(brief, node))
    return ast.fix_missing_locations(tree)


def _is_dataclass(decorator: ast.expr) -> bool:
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return isinstance(called, ast.Name) and called.id == "dataclass"


def written_by_dataclasses(modules: Modules, finder: str) -> dict[str, bytes]:
    """The methods that `dataclasses` writes for the classes in `modules`: bytecode by text."""
    found = {}

    def note(text: str, names: dict[str, Any], made: dict[str, Any]) -> None:
        code = compile(text, "<string>", "exec", dont_inherit=True)
        found[text] = dumps(code)
        exec(code, names, made)

    packed: dict[str, Any] = {}
    exec(finder, packed)
    importer = packed["PackedModules"](modules, "sources")
    before = set(sys.modules)
    sys.meta_path.insert(0, importer)
    dataclasses.exec = note  # type: ignore[attr-defined]
    try:
        for name in names_of(modules):
            importlib.import_module(name)
    finally:
        del dataclasses.exec  # type: ignore[attr-defined]
        sys.meta_path.remove(importer)
        for name in (sys.modules.keys() - before) & modules.keys():
            del sys.modules[name]
    return dict(sorted(found.items()))


def add_packed(archive: zipfile.ZipFile, name: str, packed: Any) -> None:
    """Write one file of `archive`, as packed.py reads it."""
    content = dumps(packed)
    if zstd is None:
        add_entry(archive, name, content)
        return
    level = {zstd.CompressionParameter.compression_level: 22}
    entry = zipfile.ZipInfo(name, EPOCH)  # stored as it is
    archive.writestr(entry, zstd.compress(content, options=level))


def module_of(path: str) -> str:
    """The name of the module that an archive has at `path`."""
    return path.rsplit(".", 1)[0].removesuffix("/__init__").replace("/", ".")


def compiled(source: bytes | ast.Module, name: str) -> CodeType:
    """The code of one module."""
    return compile(source, name, "exec", dont_inherit=True, optimize=2)


def pyc(code: CodeType, source: bytes) -> bytes:
    """The content of a module's `.pyc` file."""
    head = importlib.util.MAGIC_NUMBER + UNCHECKED_HASH + importlib.util.source_hash(source)
    return head + dumps(code)


def without_line_tables(code: CodeType) -> CodeType:
    """`code` and all code inside it, without the tables that lead from bytecode to lines."""
    constants = tuple(
        without_line_tables(constant) if isinstance(constant, CodeType) else constant
        for constant in code.co_consts
    )
    return code.replace(co_linetable=b"", co_consts=constants)


def dumps(content: Any) -> bytes:
    """The bytes that marshal writes, the same at every run."""
    # marshal marks objects by how often they are referenced, which varies from run to run;
    # a round trip leaves only references that the data itself has.
    return marshal.dumps(marshal.loads(marshal.dumps(content)))


def add_module(archive: zipfile.ZipFile, name: str, text: str) -> None:
    """Write one module into `archive`, compiled."""
    source = text.encode()
    add_entry(archive, f"{name}.pyc", pyc(compiled(source, f"{name}.py"), source))


def add_entry(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    """Write one file into `archive`: the same bytes at every build."""
    entry = zipfile.ZipInfo(name, EPOCH)
    entry.compress_type = zipfile.ZIP_STORED if entry.is_dir() else zipfile.ZIP_DEFLATED
    archive.writestr(entry, content, compresslevel=9)
