"""A Markdown extension for docstrings: equations, symbols and sources as the pages show them.

Docstrings are written to be read in code too: an equation is LaTeX between `$$`, a product is
`B*S`, and a source is its key in `calculator.catalog.SOURCES`.
"""

import re
from collections.abc import Callable
from typing import Any

from markdown import Extension, Markdown
from markdown.preprocessors import Preprocessor

from templates.pieces.docstrings import draw_equation, link_sources

FENCED = re.compile(r"(^ *```.*?^ *```$)", re.S | re.M)
EXAMPLE = re.compile(r"^>>> .*(?:\n.+)*", re.M)
EQUATION = re.compile(r"^\$\$(.+?)\$\$$", re.S | re.M)
SOURCE = re.compile(r"^Source: (.+(?:\n.+)*)", re.M)
PRODUCT = re.compile(r"(?<=[\w)\]])\*(?=[\w(])")
# From a page in reference/ to the list of all sources.
SOURCES_PAGE = "../../formulas/"


class DocstringPreprocessor(Preprocessor):
    """Replaces what only docstrings have; other Markdown stays as it is."""

    def run(self, lines: list[str]) -> list[str]:
        """The lines with equations as MathML, sources as links, examples as code."""
        # Twice, since examples outside of code become code, which the second round leaves alone.
        text = _outside_of_code("\n".join(lines), lambda words: EXAMPLE.sub(_example, words))
        return _outside_of_code(text, self._as_markdown).split("\n")

    def _as_markdown(self, text: str) -> str:
        text = SOURCE.sub(_source, EQUATION.sub(self._equation, text))
        return "\n".join(_plain_stars(line) for line in text.split("\n"))

    def _equation(self, found: re.Match[str]) -> str:
        latex = found[1].strip()
        return f"\n\n{self.md.htmlStash.store(draw_equation(latex))}\n\n"


def _outside_of_code(text: str, change: Callable[[str], str]) -> str:
    """`text` with everything but its fenced code changed."""
    pieces = FENCED.split(text)
    pieces[::2] = map(change, pieces[::2])
    return "".join(pieces)


def _example(found: re.Match[str]) -> str:
    return f"```pycon\n{found[0]}\n```"


def _source(found: re.Match[str]) -> str:
    if "](" in found[1] or found[1].endswith("{: .source }"):  # of a page, which has its links
        return found[0]
    linked = link_sources(" ".join(found[1].split()))
    return f"*Source: {linked.replace('(#source-', f'({SOURCES_PAGE}#source-')}*"


def _plain_stars(line: str) -> str:
    r"""Escape the star of a product, but not in code.

    >>> _plain_stars("N = B*S, in code `a*b`")
    'N = B\\*S, in code `a*b`'
    """
    pieces = re.split(r"(`[^`]*`)", line)
    return "".join(p if p.startswith("`") else PRODUCT.sub(r"\\*", p) for p in pieces)


class DocstringExtension(Extension):
    """Registers the preprocessor; `mkdocs.yml` names this module."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802, Markdown's name
        """Run before fenced code is taken out, since examples become such code."""
        md.preprocessors.register(DocstringPreprocessor(md), "docstrings", 28)


def makeExtension(**options: Any) -> DocstringExtension:  # noqa: N802, Markdown's name
    """Make the extension; Markdown calls this function."""
    return DocstringExtension(**options)
