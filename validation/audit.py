"""Allocations in the sources of PyTorch's kernels that `kernels.toml` does not name."""

import ast
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

TABLE: Final = Path(__file__).with_name("kernels.toml")
NATIVE: Final = Path("aten/src/ATen/native")
ALLOCATION: Final = re.compile(
    r"(at|torch)::(empty|zeros|ones|full|arange)|\btorch\.(empty|zeros|ones|full|arange)"
    r"|Tensor tmp|(?<!is_)contiguous\(|\.clone\(|getAllocator|CUDACachingAllocator|\.toType\("
)


@dataclass(frozen=True, slots=True)
class Kernel:
    """CUDA functions in a file: what they allocate beside their outputs, and in which lines.

    Attributes:
        operations: PyTorch's names of what they run, without `aten::`.
        tape: the calculator's.
        scratch: the function of `scratch.h` with the sizes; empty where nothing is allocated.
        card: what depends on the card or on a library.
    """

    operations: tuple[str, ...]
    tape: tuple[str, ...]
    file: str
    functions: tuple[str, ...]
    makes: str
    lines: tuple[str, ...]
    scratch: str = ""
    card: str = ""


@cache
def kernels() -> tuple[Kernel, ...]:
    """The table."""
    rows: list[dict[str, Any]] = tomllib.loads(TABLE.read_text())["kernel"]
    return tuple(map(_kernel, rows))


def _kernel(row: dict[str, Any]) -> Kernel:
    fields: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in row.items()
    }
    return Kernel(**fields)


def scratch_rules() -> dict[str, str]:
    """Operations whose kernels allocate, and their functions in `scratch.h`."""
    return {name: item.scratch for item in kernels() if item.scratch for name in item.operations}


def audit(checkout: Path) -> Iterator[str]:
    """A line for each allocation that the table does not name, or file or function not found.

    Of a project of which `checkout` has no file nothing is said.
    """
    for kernel in kernels():
        path = next((x for x in _places(checkout, kernel.file) if x.exists()), None)
        if path is None:
            if (checkout / NATIVE).exists() and "/ops.py" not in kernel.file:
                yield f"{kernel.file}: not found"
            continue
        text = path.read_text()
        for function in kernel.functions:
            found = list(_bodies(text, function, path.suffix))
            if not found:
                yield f"{kernel.file}: {function} not found"
            for first, body in found:
                for number, line in enumerate(body.splitlines(), first):
                    code = line.partition("//")[0]
                    named = any(part in code for part in kernel.lines)
                    if ALLOCATION.search(code) and not named:
                        yield f"{kernel.file}:{number}: {function}: {line.strip()}"


def _places(checkout: Path, file: str) -> tuple[Path, Path]:
    return checkout / NATIVE / file, checkout / file


def _bodies(text: str, function: str, suffix: str) -> Iterator[tuple[int, str]]:
    """First lines and texts of a function's definitions."""
    if suffix == ".py":
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef) and node.name == function:
                yield node.lineno, ast.get_source_segment(text, node) or ""
        return
    for match in re.finditer(rf"\b{function}\b\s*\)?\s*(?=\()", text):
        start = _closing(text, match.end(), "()") + 1
        opening = re.match(r"[\w\s:>&*-]*(?=\{)", text[start:])
        if opening:
            start += opening.end()
            end = _closing(text, start, "{}") + 1
            yield text.count("\n", 0, start) + 1, text[start:end]


def _closing(text: str, start: int, pair: str) -> int:
    """The place of the bracket that closes the one at `start`, or the last character's."""
    depth = 0
    for place in range(start, len(text)):
        depth += (text[place] == pair[0]) - (text[place] == pair[1])
        if not depth:
            return place
    return len(text) - 1
