"""A file that someone brings: its text, and its keys with dots between their parts."""

import ast
import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from calculator.doors.call import read_calls
from calculator.doors.shell import read_command
from calculator.errors import InputError, one_line
from calculator.nesting import is_too_deep
from calculator.wrong_files import describe_text

FIELD: Final = "file"
LARGEST: Final = 1_000_000
# a text may stand for far more keys than it has, by YAML's aliases
MOST_KEYS: Final = 20_000
DEEPEST: Final = 20
# a line of a notebook that is no Python
_MAGIC: Final = re.compile(r"^([ \t]*)[!%?].*$", re.MULTILINE)
KINDS: Final = {
    ".json": "JSON",
    ".toml": "TOML",
    ".py": "Python",
    ".yml": "YAML",
    ".yaml": "YAML",
    ".sh": "Shell",
    ".ipynb": "Notebook",
}


@dataclass(frozen=True, slots=True)
class File:
    """A file as its text and its values; those of lists of objects share a key with ``[]``."""

    name: str
    text: str
    kind: str
    values: Mapping[str, object]


def parse_file(name: str, text: str) -> File:
    """A file from its text; the name's end says how to read it.

    Raises:
        InputError: for a text that is not of that kind, or has no keys.
    """
    kind = KINDS.get(f".{name.rpartition('.')[2].lower()}")
    if kind is None:
        raise InputError(FIELD, name, f"must end in {', '.join(KINDS)}")
    if "\0" in text:
        raise InputError(FIELD, name, "must be text, and is binary")
    if not text.strip() or text.lstrip().startswith("<"):
        raise InputError(FIELD, name, describe_text(text))
    try:
        values = _READERS[kind](text)
    except (ValueError, SyntaxError, RecursionError) as error:
        raise InputError(FIELD, name, f"is no {kind}: {one_line(error, 200)}") from None
    if not isinstance(values, dict) or not values:
        raise InputError(FIELD, name, f"has no keys: must be {kind} that configures a training")
    found: dict[str, object] = {}
    for key, value in _flat(values, "", name, 0):
        found.setdefault(key, value)
        if len(found) > MOST_KEYS:
            raise InputError(FIELD, name, f"must have at most {MOST_KEYS:,} keys")
    return File(name, text, kind, found)


def _flat(value: object, key: str, name: str, depth: int) -> Iterator[tuple[str, object]]:
    """Every value that is no object, with its key."""
    if depth > DEEPEST:
        raise InputError(FIELD, name, f"must not nest more than {DEEPEST} objects and lists")
    if isinstance(value, dict) and value:
        for part, inner in value.items():
            yield from _flat(inner, f"{key}.{part}" if key else str(part), name, depth + 1)
    elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
        for item in value:
            yield from _flat(item, f"{key}[]", name, depth + 1)
    else:
        yield key, value


def _read_json(text: str) -> Any:
    if is_too_deep(text):
        raise ValueError("nests too deep")
    return json.loads(text)


def _read_yaml(text: str) -> Any:
    try:
        import yaml
    except ImportError:
        rule = "YAML is read with PyYAML: pip install pyyaml"
        raise InputError(FIELD, "YAML", rule) from None
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from None


def _read_notebook(text: str) -> Any:
    """The calls of a notebook's cells, without what only a notebook runs."""
    notebook = _read_json(text)
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    if not (cells and isinstance(cells, list)):
        raise ValueError("has no cells")
    code = [it for it in cells if isinstance(it, dict) and it.get("cell_type") == "code"]
    sources = (_MAGIC.sub(r"\1pass", "".join(map(str, it.get("source", "")))) for it in code)
    return read_calls("\n".join(filter(_is_python, sources)))


def _is_python(text: str) -> bool:
    with suppress(SyntaxError):
        ast.parse(text)
        return True
    return False


_READERS: Final[Mapping[str, Callable[[str], Any]]] = {
    "JSON": _read_json,
    "TOML": tomllib.loads,
    "YAML": _read_yaml,
    "Python": read_calls,
    "Shell": read_command,
    "Notebook": _read_notebook,
}
