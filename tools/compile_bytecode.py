"""Run inside Pyodide by compile_bytecode.mjs: a zip of sources becomes a zip of bytecode.

Pyodide's own zip of the standard library holds sources only, so every start compiles some 140
modules. Bytecode skips that, and its line tables are a fifth of its size.
"""

import importlib.util
import marshal
import zipfile
from types import CodeType

# The oldest date a zip can hold: the same bytes at every build.
EPOCH = (1980, 1, 1, 0, 0, 0)
# PEP 552: hash-based and unchecked, so neither a date nor a source is asked for.
UNCHECKED_HASH = (0b01).to_bytes(4, "little")


def compile_zip(sources: str, bytecode: str, strip_line_tables: bool) -> None:
    """Compile each `.py` of `sources` (docstrings and asserts dropped), copy the other files."""
    with zipfile.ZipFile(sources) as source_zip, zipfile.ZipFile(bytecode, "w") as target:
        for name in sorted(source_zip.namelist()):
            content = source_zip.read(name)
            if name.endswith(".py"):
                name, content = f"{name}c", compile_module(content, name, strip_line_tables)
            entry = zipfile.ZipInfo(name, EPOCH)
            entry.compress_type = zipfile.ZIP_STORED if entry.is_dir() else zipfile.ZIP_DEFLATED
            target.writestr(entry, content, compresslevel=9)


def compile_module(source: bytes, name: str, strip_line_tables: bool) -> bytes:
    """The content of the `.pyc` file of one module."""
    code = compile(source, name, "exec", dont_inherit=True, optimize=2)
    if strip_line_tables:
        code = without_line_tables(code)
    # marshal marks objects by how often they are referenced, which varies from run to run;
    # a round trip leaves only references that the data itself has.
    body = marshal.dumps(marshal.loads(marshal.dumps(code)))
    return importlib.util.MAGIC_NUMBER + UNCHECKED_HASH + importlib.util.source_hash(source) + body


def without_line_tables(code: CodeType) -> CodeType:
    """`code` and all code inside it, without the tables that lead from bytecode to lines."""
    constants = tuple(
        without_line_tables(constant) if isinstance(constant, CodeType) else constant
        for constant in code.co_consts
    )
    return code.replace(co_linetable=b"", co_consts=constants)
