"""Leaves out of the theme's styles what no page of this site and no script can use.

The theme has styles for tags, blogs, versions, a repository's stars and much else. A selector stays
if each class and identifier in it is in a page or a script; a variable, if anything reads it.
"""

import re
from collections.abc import Container, Iterator
from functools import partial
from pathlib import Path

# Groups of rules; the contents of other at-rules, such as keyframes, are left as they are.
GROUPS = ("@media", "@supports", "@layer", "@container")
SHORTEST = 4  # what scripts write of a class that they put together; "md-" says nothing
TEXT = r""""(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'"""
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_PIECE = re.compile(rf"/\*.*?\*/|{TEXT}|url\((?:{TEXT}|[^)\"'])*\)|[{{}};]", re.DOTALL)
_SELECTOR_PIECE = re.compile(rf"{TEXT}|[()\[\],]")
_NAME = re.compile(r"[.#]((?:\\.|[\w-])+)")
_ATTRIBUTE = re.compile(rf"\b(?:class|id)=(?:{TEXT}|[^\s>]+)")
_WORD = re.compile(r"[\w-]+")
_READ = re.compile(r"--md-[\w-]+(?![\w-]*\s*:)")
_VARIABLE = re.compile(
    rf"(?<![\w-])(--md-[\w-]+):(?:{TEXT}|\((?:{TEXT}|[^)\"'])*\)|[^;{{}}\"'(])*;?"
)


def without_unused(styles: str, words: set[str]) -> str:
    """`styles` without the selectors that need a class or identifier that is not in `words`."""
    return "".join(_used_rules(styles, words))


def without_unread(styles: str, others: str) -> str:
    """`styles` without the theme's variables that neither they nor `others` read."""
    smaller, before = styles, ""
    while smaller != before:
        before = smaller
        smaller = _VARIABLE.sub(partial(_if_read, set(_READ.findall(smaller + others))), smaller)
    return smaller


def _if_read(read: Container[str], declaration: re.Match[str]) -> str:
    return declaration[0] if declaration[1] in read else ""


def words_of(site: Path) -> set[str]:
    """Classes and identifiers of the pages of `site`, and all words of its scripts and data."""
    words: set[str] = set()
    for page in site.rglob("*.html"):
        for attribute in _ATTRIBUTE.findall(page.read_text("utf-8")):
            words.update(_WORD.findall(attribute))
    for script in _scripts(site, "*.js", "*.json"):
        words.update(_WORD.findall(script))
    return words


def readers_of(site: Path) -> str:
    """All texts of `site` that may read a variable: its pages and scripts."""
    pages = (page.read_text("utf-8") for page in sorted(site.rglob("*.html")))
    return "".join([*pages, *_scripts(site, "*.js")])


def _scripts(site: Path, *patterns: str) -> Iterator[str]:
    for pattern in patterns:
        for path in sorted((site / "assets").rglob(pattern)):
            yield path.read_text("utf-8")


def _used_rules(styles: str, words: set[str]) -> Iterator[str]:
    for prelude, body in _rules(styles):
        name = prelude.strip()
        if body is None or (name.startswith("@") and not name.startswith(GROUPS)):
            yield prelude if body is None else f"{prelude}{{{body}}}"
        elif name.startswith("@"):
            if (inside := without_unused(body, words)).strip():
                yield f"{prelude}{{{inside}}}"
        elif used := [one for one in _selectors(prelude) if _is_used(one, words)]:
            yield f"{','.join(used)}{{{body}}}"


def _rules(styles: str) -> Iterator[tuple[str, str | None]]:
    """The text before each outermost brace, and the text inside; None for a statement."""
    depth = start = inside = 0
    for piece in _PIECE.finditer(styles):
        match piece[0]:
            case "{":
                depth += 1
                if depth == 1:
                    inside = piece.end()
            case "}":
                depth -= 1
                if depth == 0:
                    yield styles[start : inside - 1], styles[inside : piece.start()]
                    start = piece.end()
            case ";" if depth == 0:
                yield styles[start : piece.end()], None
                start = piece.end()
            case _:
                pass
    if start < len(styles):
        yield styles[start:], None


def _selectors(prelude: str) -> list[str]:
    """The selectors of a list, split at its outermost commas."""
    depth = start = 0
    found = []
    for piece in _SELECTOR_PIECE.finditer(prelude):
        if piece[0] in "([":
            depth += 1
        elif piece[0] in ")]":
            depth -= 1
        elif piece[0] == "," and depth == 0:
            found.append(prelude[start : piece.start()])
            start = piece.end()
    return [*found, prelude[start:]]


def _is_used(selector: str, words: set[str]) -> bool:
    """True unless it needs what is not there; what stands in brackets may be one of several."""
    plain, depth = "", 0
    for part in re.split(rf"({TEXT}|[()\[\]])", _COMMENT.sub("", selector)):
        if part in ("(", "["):
            depth += 1
        elif part in (")", "]"):
            depth -= 1
        elif not depth:
            plain += part
    return all(_is_known(name.replace("\\", ""), words) for name in _NAME.findall(plain))


def _is_known(name: str, words: set[str]) -> bool:
    """True for a word, and for one that a script may put together: `"tab--" + side`."""
    ends = (found.end() for found in re.finditer("-", name))
    return name in words or any(name[:end] in words for end in ends if end >= SHORTEST)
