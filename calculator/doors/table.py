"""Keys of another library: what each means for a plan, or that it changes no memory.

A table gives *facts*: options of `Plan`, and what only several keys together make an option of (see
`settle`): ``model``, ``weights`` and ``autocast`` (formats), ``adapter``, ``four_bits``, ``zero``
and its ``offload_...``, ``processes``, ``update_batch``.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from operator import itemgetter
from typing import Final, Literal

from calculator.doors.file import File
from calculator.doors.names import COMPUTED

Facts = Mapping[str, object]
Way = Literal["more", "less", "either", ""]
# a value that leaves a technique out
_OFF: Final = ("", "none", "false", "no", "0", "0.0", "1", "null", "[]", "{}", "disabled")


@dataclass(frozen=True, slots=True)
class Named:
    """A key that changes memory, and is not counted as it is.

    Attributes:
        words: what it does, or what is counted in its place.
        way: the memory that the step takes beside what is counted; empty if it hardly differs.
        facts: what is counted in its place.
    """

    words: str = ""
    way: Way = "either"
    facts: Facts = field(default_factory=dict)


_SILENT: Final = Named("", "")
Reader = Callable[[object], "Facts | Named"]
Meaning = str | Named | Mapping[str, "Facts | Named"] | Reader


@dataclass(frozen=True, slots=True)
class Table:
    """All that we know of the keys of one library.

    Attributes:
        title: the library.
        marks: a file that has one of these keys, or all of those joined by ``+``, is one of it.
        keys: what a key means: the fact whose value it has, the facts of each of its values, or why
            it is not counted.
        harmless: keys without influence on memory, with ``*`` for any text.
        named: why keys that change memory are not counted, and these keys, as in `harmless`; of
            several patterns the longest counts.
        defaults: facts where no key says otherwise.
        edits: keys that make an option of a plan, by the option, with ``=`` and a value for that
            value alone; ``{}`` stands for the option's value.
        is_run: false for files that configure a part of a run alone.
    """

    title: str
    marks: tuple[str, ...]
    keys: Mapping[str, Meaning]
    harmless: str
    named: tuple[tuple[Named, str], ...]
    defaults: Facts
    edits: Mapping[str, Mapping[str, object]]
    is_run: bool = True
    finish: Callable[[dict[str, object]], None] | None = None


@dataclass(frozen=True, slots=True)
class Note:
    """A key, its value and what is to be said of it; `way` is empty if the verdict stands.

    An option of ours that is the key's `fact` answers what the file leaves open.
    """

    file: str
    key: str
    value: object
    words: str
    way: Way
    fact: str = ""


@dataclass(frozen=True, slots=True)
class Reading:
    """One file: facts, keys that are not counted as they are, and unknown ones."""

    file: File
    table: Table
    facts: Facts
    notes: tuple[Note, ...]
    unknown: tuple[Note, ...]


def read_keys(file: File, table: Table) -> Reading:
    """Every key of a file by a library's table."""
    facts: dict[str, object] = {}
    notes: list[Note] = []
    unknown: list[Note] = []
    for key, value in file.values.items():
        meaning = _meaning(table, key, value)
        if meaning is None:
            unknown.append(Note(file.name, key, value, "is not known here", "either"))
            continue
        facts.update(meaning.facts)
        if meaning.words:
            fact = table.keys.get(key)
            name = fact if isinstance(fact, str) else ""
            notes.append(Note(file.name, key, value, meaning.words, meaning.way, name))
    if table.finish:
        table.finish(facts)
    return Reading(file, table, facts, tuple(notes), tuple(unknown))


def knows(table: Table, key: str) -> bool:
    """True if a library has a key."""
    return key in table.keys or _by_pattern(table, key) is not None


def _meaning(table: Table, key: str, value: object) -> Named | None:
    """The meaning of a key, without words where it needs none; None where it is unknown."""
    known = table.keys.get(key)
    if known is None:
        found = _by_pattern(table, key)
        return _SILENT if found and is_off(value) else found
    if value is None:
        return _SILENT
    if value == COMPUTED:
        return Named("is computed in the program: give it as an option", "either")
    return _known(known, value)


def _by_pattern(table: Table, key: str) -> Named | None:
    """The reason that a key is not counted, or that it is harmless, by its longest pattern."""
    reasons = (*table.named, (_SILENT, table.harmless))
    fitting = (
        (len(pattern), why)
        for why, patterns in reasons
        for pattern in patterns.split()
        if fnmatchcase(key, pattern)
    )
    return max(fitting, key=itemgetter(0), default=(0, None))[1]


def _known(known: Meaning, value: object) -> Named:
    if isinstance(known, Named):
        return _SILENT if is_off(value) else known
    if isinstance(known, str):
        return Named("", "", {known: joined(value)})
    if callable(known):
        found = known(value)
    else:
        found = known.get(in_words(value), Named("this value is not known here"))
    return found if isinstance(found, Named) else Named("", "", found)


def joined(value: object) -> object:
    """A list as one text, and any other value as it is."""
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else value


def in_words(value: object) -> str:
    """A value as its table writes it.

    >>> in_words(True), in_words("FULL_SHARD"), in_words(["full_shard", "auto_wrap"])
    ('true', 'full_shard', 'full_shard,auto_wrap')
    """
    return str(joined(value)).strip().lower()


def is_off(value: object) -> bool:
    """True for a value that leaves a technique out."""
    return value is None or in_words(value) in _OFF or value in ([], {}, ())


def facts_of(readings: list[Reading]) -> Iterator[tuple[str, object]]:
    """The facts of several files; those of a later one go before an earlier one's."""
    for reading in readings:
        yield from reading.facts.items()
