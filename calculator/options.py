"""The options of `Plan`: a label and help, the accepted values, and a parser for each.

The command line, the page's form, the page's address, the protocol and the reference all read it
there: an option is declared once, by `choice`, `integer`, `number`, `flag`, `names` or `counts`.
Their words stand apart: those of `Plan`'s in `words.json`, with their groups and other libraries'
names.
"""

import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from calculator.data import read_data
from calculator.errors import InputError, unknown_name

WORDS: Final = read_data("words.json")
TIMES: Final = "\N{MULTIPLICATION SIGN}"

Kind = Literal["choice", "integer", "number", "flag", "names", "counts"]


@dataclass(frozen=True, slots=True)
class Option:
    """One option.

    Attributes:
        values: for a choice, each value that it takes and its words for people; for counts, each
            name.
        meanings: for a choice, common words for something else, by what they mean.
        negative: a flag's opposite on the command line, without dashes.
        technique: true if it saves memory at a price.
        warning: a caveat, shown beside the option.
        needs: the option without which this one cannot be used.
        field: its name in `Plan`.
    """

    label: str
    help: str
    kind: Kind
    values: tuple[tuple[object, str], ...] = ()
    minimum: float = 1
    maximum: float = 1
    technique: bool = False
    meanings: Mapping[str, Sequence[str]] = dataclasses.field(default_factory=dict)
    negative: str = ""
    warning: str = ""
    needs: str = ""
    field: str = ""

    @property
    def choices(self) -> tuple[tuple[str, str], ...]:
        """The values of a choice as texts, with their words."""
        return tuple((str(value), words) for value, words in self.values)

    @property
    def flag(self) -> str:
        """The option on the command line, for example ``--batch-size``."""
        return "--" + self.field.replace("_", "-")

    @property
    def negative_flag(self) -> str:
        """A flag's opposite on the command line, for example ``--no-reversible``."""
        return f"--{self.negative}" if self.negative else f"--no-{self.flag[2:]}"

    def as_json(self) -> dict[str, Any]:
        """The option as in the protocol's ``describe``."""
        names = ("field", "label", "help", "kind", "choices", "minimum", "maximum")
        return {name: getattr(self, name) for name in (*names, "technique", "warning")}

    def parse(self, value: object) -> Any:
        """The value as `Plan` holds it.

        Raises:
            InputError: if the option does not accept the value.
        """
        if not isinstance(value, str | int | float):
            raise InputError(self.field, value, "must be one value: text, a number, true or false")
        text = str(value).strip()
        match self.kind:
            case "choice":
                return self._parse_choice(value, text)
            case "flag":
                return self._parse_flag(text)
            case "integer":
                return self._parse_integer(text)
            case "number":
                return self._parse_number(text)
            case "names":
                return self._parse_names(text)
            case "counts":
                return self._parse_counts(text)

    def _parse_choice(self, given: object, text: str) -> object:
        for value, _ in self.values:
            if str(value) == text:
                return value
        for meaning, typed in self.meanings.items():
            if text.lower() in typed:
                words = "; ".join(words for _, words in self.values)
                raise InputError(self.field, given, f"{meaning}. Must be one of: {words}")
        raise unknown_name(self.field, given, (name for name, _ in self.choices))

    def _parse_flag(self, text: str) -> bool:
        if text.lower() in ("true", "1", "on", "yes"):
            return True
        if text.lower() in ("false", "0", "off", "no"):
            return False
        raise InputError(self.field, text, "must be true or false")

    def _parse_integer(self, text: str) -> int:
        rule = f"must be a whole number from {self.minimum:,.0f} to {self.maximum:,.0f}"
        try:
            number = int(text)
        except ValueError:
            raise InputError(self.field, text, rule) from None
        if not self.minimum <= number <= self.maximum:
            raise InputError(self.field, text, rule)
        return number

    def _parse_number(self, text: str) -> float:
        rule = f"must be a number of at least {self.minimum:g} and below {self.maximum:g}"
        try:
            number = float(text)
        except ValueError:
            raise InputError(self.field, text, rule) from None
        if not (math.isfinite(number) and self.minimum <= number < self.maximum):
            raise InputError(self.field, text, rule)
        return number

    def _parse_names(self, text: str) -> str:
        names = [name for name in text.replace(" ", ",").split(",") if name]
        parts = [part for name in names for part in name.split(".")]
        plain = all(map(_is_name, parts))
        if not names or not plain or len(text) > self.maximum:
            raise InputError(self.field, text, "must be names with commas between them")
        return ",".join(names)

    def _parse_counts(self, text: str) -> str:
        rule = f"must be at most {len(self.values)} names, each with a number, such as "
        rule += ",".join(f"{name}:{number}" for number, (name, _) in enumerate(self.choices[:2], 1))
        found = list(counts_in(text))
        if not 0 < len(found) <= len(self.values):
            raise InputError(self.field, text, rule)
        for name, number in found:
            if name not in dict(self.choices):
                raise unknown_name(self.field, name, (known for known, _ in self.choices))
            is_whole = number.isdecimal() and len(number) < 10
            if not (is_whole and self.minimum <= int(number) <= self.maximum):
                rule = f"must be a whole number from {self.minimum:,.0f} to {self.maximum:,.0f}"
                raise InputError(self.field, f"{name}:{number}", rule)
        return ",".join(f"{name}:{int(number)}" for name, number in found)

    def in_words(self, text: str) -> str:
        """A value of the option, given as text, in words for people."""
        words = dict(self.choices)
        match self.kind:
            case "choice":
                return words.get(text, text)
            case "flag":
                return "yes" if text == "true" else "no"
            case "counts":
                return ", ".join(f"{int(n):,} {TIMES} {words[name]}" for name, n in counts_in(text))
            case _:
                return text


# Each of these makes a field of a dataclass. They return Any, as `dataclasses.field` does in
# its own way: the field's type is the one that stands before it.


def choice(default: object, values: Iterable[Any], **more: Any) -> Any:
    """A field that takes one of some values, which may have their words."""
    pairs = values.items() if isinstance(values, Mapping) else ((each, "") for each in values)
    return _field(default, "choice", values=tuple(pairs), **more)


def integer(default: int | None, most: int, **more: Any) -> Any:
    """A field that takes a whole number from 1 to `most`."""
    return _field(default, "integer", maximum=most, **more)


def number(default: float | None, below: float, least: float = 0) -> Any:
    """A field that takes a number of at least 0, or another least, and below a limit."""
    return _field(default, "number", minimum=least, maximum=below)


def flag(default: bool | None, **more: Any) -> Any:
    """A field that is true or false."""
    return _field(default, "flag", **more)


def names(default: str | None, most: int) -> Any:
    """A field that takes comma-separated names, with a limit on its characters."""
    return _field(default, "names", maximum=most)


def counts(default: str | None, values: Mapping[str, str], most: int) -> Any:
    """A field that takes some names, each with a number from 1 to `most`, as in ``t4:5,l4:2``."""
    return _field(default, "counts", values=tuple(values.items()), maximum=most)


def _is_name(part: str) -> bool:
    """True for a name, which may have dashes, and for numbers such as 3 or 0-11."""
    return part.replace("-", "").isidentifier() or all(n.isdecimal() for n in part.split("-"))


def counts_in(text: str) -> Iterator[tuple[str, str]]:
    """Each name of such a text with its number; a name alone counts once.

    >>> list(counts_in("t4:5,l4"))
    [('t4', '5'), ('l4', '1')]
    """
    for part in text.replace(" ", ",").split(","):
        if part:
            name, colon, number = part.partition(":")
            yield name, number if colon else "1"


def _field(default: object, kind: Kind, **more: Any) -> Any:
    return dataclasses.field(default=default, metadata={"option": Option("", "", kind, **more)})


def options_of(plan: type[Any], words: Mapping[str, Mapping[str, Any]]) -> dict[str, Option]:
    """The options that stand at a dataclass' fields, by their names, with their words."""
    return {
        field.name: _worded(field.name, field.metadata["option"], words[field.name])
        for field in dataclasses.fields(plan)
        if "option" in field.metadata
    }


def _worded(name: str, option: Option, words: Mapping[str, Any]) -> Option:
    """An option with its name, and with a label, help and words for its values."""
    said = {key: words[key] for key in ("label", "help", "warning", "meanings") if key in words}
    if "values" in words:
        known = {str(value): value for value, _ in option.values}
        said["values"] = tuple((known[text], each) for text, each in words["values"].items())
    return dataclasses.replace(option, field=name, **said)


def as_text(value: object) -> str:
    """A value as an address holds it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
