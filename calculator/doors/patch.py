"""A change of some keys in the text of a file, whose other lines stay as they are."""

import difflib
import json
import re
from collections.abc import Mapping
from typing import Any, Final

from calculator.doors.file import File

# arguments of other calls than the training's
_ELSEWHERE: Final = (
    *("dtype", "attn_implementation", "load_in_4bit", "use_bnb_nested_quant", "use_peft"),
    *("lora_r", "lora_target_modules"),
)
# kinds whose keys have no parents
_FLAT: Final = ("Python", "Shell")
# what stands between a key and its value, and ends a value
_BETWEEN: Final = {
    "JSON": r"\s*:\s*",
    "YAML": r"[ \t]*:[ \t]*",
    "TOML": r"\s*=\s*",
    "Python": r"=\s*",
    "Shell": r"(?:[ \t]+|=)",
}
_WRITTEN: Final = {"JSON": ": ", "YAML": ": ", "TOML": " = ", "Python": "=", "Shell": " "}
_VALUE: Final = {
    "JSON": r'"(?:[^"\\]|\\.)*"|\[[^\]]*\]|[^,\s}]+',
    "YAML": r"\[[^\]]*\]|(?:[^\s#]|(?<=\S)#|[ \t]+(?![ \t#\n]))*(?:\n[ \t]*- [^\n]*)*",
    "TOML": r'"[^"\n]*"|\[[^\]]*\]|[^#\n]*[^#\s]',
    "Shell": r"(?:\"[^\"\n]*\"|'[^'\n]*'|(?!--)[^\s\\]+|[ \t]+(?![-\\\s]))*",
    "Python": r"\"[^\"\n]*\"|'[^'\n]*'|\[[^\]]*\]|[^,\n()]+(?:\([^()]*\))?",
}


def edited(file: File, changes: Mapping[str, object]) -> str | None:
    """The file's text with other values of some keys; None where a key has no place in it.

    What makes it certain is to read the text again: a key is found by its name and its parents'.
    """
    text = file.text
    if file.kind not in _BETWEEN:
        return None
    for key, value in changes.items():
        changed = _replaced(file.kind, text, key, value) or _inserted(file, text, key, value)
        if changed is None:
            return None
        text = changed
    return text


def diff(file: File, text: str) -> str:
    """The change as a unified diff, which ``patch`` and ``git apply`` take."""
    lines = difflib.unified_diff(
        file.text.splitlines(keepends=True),
        text.splitlines(keepends=True),
        f"a/{file.name.lstrip('/')}",
        f"b/{file.name.lstrip('/')}",
    )
    ended = (
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )
    return "".join(ended)


def _replaced(kind: str, text: str, key: str, value: object) -> str | None:
    """The text with another value of a key that it has."""
    found = _find(kind, text, key)
    if found is None:
        return None
    _, start, end = found
    return text[:start] + _written(kind, value) + text[end:]


def _find(kind: str, text: str, key: str) -> tuple[int, int, int] | None:
    """The start of a key, and the start and end of its value."""
    *parents, name = key.split(".") if kind not in _FLAT else [key]
    place = 0
    if kind == "TOML" and parents:
        header = re.search(rf"^\[{re.escape('.'.join(parents))}\]", text, re.MULTILINE)
        if header is None:
            return None
        place = header.end()
    else:
        for parent in parents:
            begun = _named(kind, parent).search(text, place)
            if begun is None:
                return None
            place = begun.end()
    found = _named(kind, name).search(text, place)
    if found is None:
        return None
    following = re.compile(r"^\[", re.MULTILINE).search(text, place)
    if kind == "TOML" and following and following.start() < found.start():
        return None
    value = re.compile(_VALUE[kind]).match(text, found.end())
    return (found.start("key"), found.end(), value.end()) if value else None


def _named(kind: str, name: str) -> re.Pattern[str]:
    begun = (
        r"(?:^|[{,])\s*" if kind == "JSON" else r"(?:^|[(,])\s*" if kind == "Python" else r"^[ \t]*"
    )
    if kind == "Shell":
        dashed = re.escape(name).replace("_", "[-_]")
        return re.compile(rf"(?<=\s)(?P<key>--{dashed})(?=[\s=])(?:{_BETWEEN[kind]})?")
    quoted = '"' if kind == "JSON" else "[\"']?"
    name = rf"(?P<key>{quoted}{re.escape(name)}{quoted}){_BETWEEN[kind]}"
    return re.compile(begun + name, re.MULTILINE)


def _inserted(file: File, text: str, key: str, value: object) -> str | None:
    """The text with a key that it lacks, before one that stands beside it."""
    parent, _, name = key.rpartition(".") if file.kind not in _FLAT else ("", "", key)
    words = _quoted(file.kind, name) + _WRITTEN[file.kind] + _written(file.kind, value)
    if file.kind == "TOML":
        return _in_section(text, parent, words)
    if file.kind == "Python":
        return _in_call(text, words) if name not in _ELSEWHERE else None
    beside = (key for key in file.values if key.rpartition(".")[0] == parent and "[]" not in key)
    found = next(filter(None, (_find(file.kind, text, other) for other in beside)), None)
    if found is None:
        return None
    start = found[0]
    line = text.rfind("\n", 0, start) + 1
    comma = "," if file.kind == "JSON" else ""
    ended = " \\\n" if file.kind == "Shell" else "\n"
    apart = f"{ended}{text[line:start]}" if not text[line:start].strip() else " "
    return text[:start] + words + comma + apart + text[start:]


def _in_call(text: str, words: str) -> str | None:
    """A first argument by name, before the first that the training's arguments have."""
    call = re.search(r"\b\w*(?:TrainingArguments|SFTConfig|DPOConfig)\(", text)
    first = call and re.compile(r"(?:^|[(,])(\s*)(?=\w+\s*=[^=])", re.MULTILINE).search(
        text, call.end() - 1
    )
    if first is None:
        return None
    apart = first.group(1) or " "
    return f"{text[: first.end()]}{words},{apart}{text[first.end() :]}"


def _in_section(text: str, section: str, words: str) -> str:
    header = re.search(rf"^\[{re.escape(section)}\][^\n]*\n", text, re.MULTILINE)
    if header is None:
        return f"{text.rstrip()}\n\n[{section}]\n{words}\n"
    return text[: header.end()] + words + "\n" + text[header.end() :]


def _quoted(kind: str, name: str) -> str:
    return f'"{name}"' if kind == "JSON" else f"--{name}" if kind == "Shell" else name


def _written(kind: str, value: Any) -> str:
    if kind == "Python":
        return repr(value)
    if (
        kind in ("YAML", "Shell")
        and isinstance(value, str)
        and re.fullmatch(r"[A-Za-z][\w./-]*", value)
    ):
        return value
    return json.dumps(value)
