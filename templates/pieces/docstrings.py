"""Docstrings of the calculator as sections of a page: equation, words, example, sources."""

import ast
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pkgutil import walk_packages
from types import ModuleType

from latex2mathml.converter import convert

import calculator
from calculator.catalog import SOURCES

# Letters of LaTeX that any phone shows in one line.
LONG = 40
# Not counting anything: the doors to the outside, and what only carries values.
NO_FORMULAS = {"calculator.__main__", "calculator.protocol", "calculator.errors"}
# What is counted comes before how it is spent: these chapters come first, in this order.
ORDER = ("parameters", "states", "allocator", "overhead")


@dataclass(frozen=True, slots=True)
class Formula:
    """One function's docstring, cut into what the page shows of it."""

    name: str
    module: str
    summary: str
    equations: tuple[str, ...]
    words: tuple[str, ...]
    example: str
    sources: str

    @property
    def title(self) -> str:
        """The function's name as words."""
        return self.name.replace("_", " ").capitalize()


@dataclass(frozen=True, slots=True)
class Chapter:
    """A module: what its docstring says, its sources, and its formulas."""

    module: str
    title: str
    words: tuple[str, ...]
    sources: str
    formulas: tuple[Formula, ...]


def chapters() -> list[Chapter]:
    """The calculator's modules in `ORDER`, then every other one that has a formula."""
    modules = sorted(_modules(), key=_place)
    shown = ((module, _chapter(module)) for module in modules)
    return [
        chapter
        for module, chapter in shown
        if chapter.formulas or (chapter.words and _place(module)[0] < len(ORDER))
    ]


def _place(module: ModuleType) -> tuple[int, str]:
    name = module.__name__.split(".")[1]
    return (ORDER.index(name) if name in ORDER else len(ORDER), module.__name__)


def summaries(module: ModuleType) -> list[tuple[str, str]]:
    """Name and whole first paragraph of each public function of a module, in its order."""
    return [
        (name, _markdown(_paragraphs(docstring)[0]))
        for name, docstring in _documented(module)
        if docstring
    ]


def _modules() -> Iterator[ModuleType]:
    for info in walk_packages(calculator.__path__, "calculator."):
        if info.name not in NO_FORMULAS:
            yield import_module(info.name)


def _chapter(module: ModuleType) -> Chapter:
    first, *rest = _paragraphs(inspect.getdoc(module) or "")
    formulas = [
        _formula(name, module.__name__, docstring)
        for name, docstring in _documented(module)
        if "$$" in docstring or "\nSource: " in docstring
    ]
    words = tuple(_markdown(part) for part in rest if not part.startswith("Source: "))
    return Chapter(module.__name__, first, words, _sources(rest), tuple(formulas))


def _documented(module: ModuleType) -> Iterator[tuple[str, str]]:
    """Public functions that the module itself defines, in the order of its text."""
    tree = ast.parse(inspect.getsource(module))
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            yield node.name, ast.get_docstring(node) or ""


def _paragraphs(docstring: str) -> list[str]:
    return [part.strip("\n") for part in re.split(r"\n\s*\n", docstring.strip())]


def _formula(name: str, module: str, docstring: str) -> Formula:
    summary, *rest = _paragraphs(docstring)
    equations = [part for part in rest if part.startswith("$$")]
    examples = [part for part in rest if part.startswith(">>> ")]
    known = {*equations, *examples}
    words = [part for part in rest if part not in known and not part.startswith("Source: ")]
    return Formula(
        name=name,
        module=module,
        summary=_markdown(summary),
        equations=tuple(draw_equation(part.strip("$ \n")) for part in equations),
        words=tuple(_markdown(part) for part in words),
        example="\n".join(examples),
        sources=_sources(rest),
    )


def draw_equation(latex: str) -> str:
    """The equation in a box; one that may be wider than a phone scrolls, also by keyboard."""
    reached = ' tabindex="0" role="group" aria-label="Equation"' if len(latex) > LONG else ""
    return f'<div class="equation"{reached}>{as_mathml(latex)}</div>'


def as_mathml(latex: str) -> str:
    """The equation as MathML, which browsers draw without any script."""
    return str(convert(latex, display="block"))


def _markdown(words: str) -> str:
    """A docstring's words for Markdown: symbols such as n_ij as in equations, each * as itself.

    >>> _markdown("N = B*S with n_ij each; `a*b_c` stays")
    'N = B&#42;S with <var>n<sub>ij</sub></var> each; `a*b_c` stays'
    """
    pieces = re.split(r"(`[^`]*`)", words)
    return "".join(piece if piece.startswith("`") else _symbols(piece) for piece in pieces)


def _symbols(text: str) -> str:
    symbols = re.sub(r"\b([a-zA-Z])_([a-z0-9]{1,2})\b", r"<var>\1<sub>\2</sub></var>", text)
    return symbols.replace("*", "&#42;")


def _sources(paragraphs: list[str]) -> str:
    """The `Source:` line as Markdown, its keys linked to the list of sources."""
    lines = [" ".join(p.split()) for p in paragraphs if p.startswith("Source: ")]
    return "; ".join(link_sources(line.removeprefix("Source: ")) for line in lines)


def link_sources(text: str) -> str:
    """`text` with each key of `catalog.SOURCES` that stands by itself made a link.

    >>> link_sources("torch (CUDACachingAllocator.cpp), our own count")
    '[torch](#source-torch) (CUDACachingAllocator.cpp), our own count'
    """

    def link(match: re.Match[str]) -> str:
        key = match[2]
        return f"{match[1]}[{key}](#source-{key})" if key in SOURCES else match[0]

    return re.sub(r"(^|, )([\w-]+)(?=$|,| \()", link, text)
