"""Prose that people read, held against proselint's rules and our own list of replaced words.

Code is blanked, character for character, so that places stay right: what is left of Python and of
scripts are comments and strings, of pages and documents what is not code, an address or a tag.
"""

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

from proselint.checks import __register__ as proselint_checks
from proselint.registry import CheckRegistry
from proselint.registry.checks import Check
from proselint.registry.checks.types import PreferredForms
from proselint.tools import LintFile

from tools.console import ROOT

# What reads like a translation, as regular expressions, and what to write instead.
REPLACED = {
    r"mend(?:s|ed|ing)?": "fix",
    r"anew": "again",
    r"(?:tell|tells|told|telling) of": "report",
    r"made known": "announced",
    r"full(?:est)? moments?": "peak",
    r"moments? of (?:a|the) step": "phase of a step",
    r"a (?:number|norm|scale|logarithm) a \w+": "one number per row",
    r"(?:bytes?|bits?) a (?:number|parameter|value|row|block)": "bytes per parameter",
    r"who (?:cannot|can't) see": "anyone who can't see",
    r"machine that is well": "healthy machine",
    r"linted and not built": "linted, but not yet built",
    r"how far the others are": "the other peers' progress",
    r"the own (?:\w+)": "its own pace",
    r"(?:samples|sequences|tokens|steps|images|bytes|[kMGT]i?B|kWh) an? (?:second|hour|step)": (
        "sequences per second"
    ),
    r"as people read (?:it|them)": "in words",
    r"(?:is|are) tried again": "try again",
    r"none is needed": "nothing to do",
    r"follow a bar": "click a bar",
    r"per cent": "percent",
    r"(?:what|whatever) came of": "the result of",
    r"saying goodbye": "leaving",
    r"who (?:tell|tells) of": "a peer that claims",
    r"a (?:row|line) an? (?:global|step|model|prompt|caption|family|change|volunteer)": (
        "one line per step"
    ),
}
OWN = Check(
    check_type=PreferredForms(REPLACED), path="replaced_words", message="Write '{}', not '{}'."
)

# proselint's rules, without those that ask for a typesetter's characters, take formulas and tables
# for repeated words, want one spelling of a word that code spells its own way, or take file names
# for adjectives.
RULES = {"misc.phrasal_adjectives": False} | dict.fromkeys(
    (
        "replaced_words", "annotations", "archaism", "cliches", "hedging", "industrial_language",
        "malapropisms", "misc", "mixed_metaphors", "mondegreens", "needless_variants", "nonwords",
        "oxymorons", "psychology", "redundancy", "skunked_terms", "social_awareness", "terms",
        "uncomparables", "weasel_words",
    ),
    True,
)  # fmt: skip

CheckRegistry().register_many((*proselint_checks, OWN))

# A docstring says what a thing is or does: 'True if ...', not 'Whether ...'.
QUESTION = re.compile(r'"""(What|How|Whether|Who|Where|Which|Why|Tell whether)\b')

SUFFIXES = {".py", ".js", ".mjs", ".md", ".j2"}
BLANKS = re.compile(r"   +")
# Data whose texts people read.
WORDED = ("calculator/words.json", "calculator/doors/tables/*.toml")
CODE_IN_TEXT = re.compile(r"``.+?``|`[^`\n]+`")
SCRIPT_PROSE = re.compile(
    r"""/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`""", re.DOTALL
)
NOT_PROSE = re.compile(
    r"^(?P<fence>```+|~~~+).*?^(?P=fence)|\{%.*?%\}|\{\{.*?\}\}|\{#.*?#\}|<!--.*?-->"
    r"|<(?:script|style|svg|code|pre)\b.*?</(?:script|style|svg|code|pre)>|<[^<>]+>"
    r"|\]\([^)\n]*\)|\{:[^}\n]*\}|https?://[^\s)>\"]+",
    re.DOTALL | re.MULTILINE,
)


def findings(files: list[Path]) -> Iterator[str]:
    """One line per finding: where, and what to write instead."""
    for path in files:
        worded = any(map(path.match, WORDED))
        if not (path.suffix in SUFFIXES or worded) or path == Path(__file__):
            continue
        text = prose_of(path.read_text("utf-8"), path.suffix)
        text = BLANKS.sub("  ", text)  # proselint reads them all, and a finding has a line alone
        if not text.strip():
            continue
        for question in QUESTION.finditer(text):
            line = text.count("\n", 0, question.start()) + 1
            yield f"{path.relative_to(ROOT)}:{line}: Say what it is, not '{question[1]} ...'."
        for found in LintFile(str(path), text).lint({"max_errors": 1000, "checks": RULES}):
            line, _column = found.pos
            rule, message, *_ = found.check_result
            yield f"{path.relative_to(ROOT)}:{line}: {message} [{rule}]"


def prose_of(text: str, suffix: str) -> str:
    """The prose of a file, with blanks where it has something else."""
    match suffix:
        case ".py":
            text = _python_prose(text)
        case ".js" | ".mjs" | ".json" | ".toml":
            text = _only(text, [match.span() for match in SCRIPT_PROSE.finditer(text)])
        case _:
            text = _blank(text, NOT_PROSE)
    return _blank(text, CODE_IN_TEXT)


def _python_prose(text: str) -> str:
    """Comments and strings."""
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    kept = [
        (starts[token.start[0] - 1] + token.start[1], starts[token.end[0] - 1] + token.end[1])
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type in (tokenize.COMMENT, tokenize.STRING)
    ]
    return _only(text, kept)


def _blank(text: str, pattern: re.Pattern[str]) -> str:
    return pattern.sub(lambda match: _blanks(match[0]), text)


def _only(text: str, spans: list[tuple[int, int]]) -> str:
    """The text within spans, and blanks of the same length around them."""
    end, parts = 0, []
    for start, stop in spans:
        parts += [_blanks(text[end:start]), text[start:stop]]
        end = stop
    return "".join((*parts, _blanks(text[end:])))


def _blanks(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)
