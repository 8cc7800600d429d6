"""The options of `Plan`: a label and help, the accepted values, and a parser for each.

The command line, the page's form, the page's address, the protocol and the reference all read it
there: an option is declared once, by `choice`, `integer`, `number`, `flag` or `names`.
"""

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from calculator.errors import InputError, unknown_name

Kind = Literal["choice", "integer", "number", "flag", "names"]


@dataclass(frozen=True, slots=True)
class Option:
    """One option.

    Attributes:
        values: for a choice, each value that it takes and its words for people.
        explained: for a choice, common words for something else, and their meanings.
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
    explained: tuple[tuple[str, str], ...] = ()
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
        return {
            "field": self.field,
            "label": self.label,
            "help": self.help,
            "kind": self.kind,
            "choices": self.choices,
            "minimum": self.minimum,
            "maximum": self.maximum,
            "technique": self.technique,
            "warning": self.warning,
        }

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

    def _parse_choice(self, given: object, text: str) -> object:
        for value, _ in self.values:
            if str(value) == text:
                return value
        meaning = dict(self.explained).get(text.lower())
        if meaning:
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
        plain = all(part.replace("-", "").isidentifier() for n in names for part in n.split("."))
        if not names or not plain or len(text) > self.maximum:
            raise InputError(self.field, text, "must be names with commas between them")
        return ",".join(names)


# Each of these makes a field of a dataclass. They return Any, as `dataclasses.field` does in
# its own way: the field's type is the one that stands before it.


def choice(default: object, label: str, text: str, values: Mapping[Any, str], **more: Any) -> Any:
    """A field that takes one of some values."""
    return _field(default, Option(label, text, "choice", tuple(values.items()), **more))


def integer(default: int | None, label: str, text: str, most: int, **more: Any) -> Any:
    """A field that takes a whole number from 1 to `most`."""
    return _field(default, Option(label, text, "integer", maximum=most, **more))


def number(
    default: float | None, label: str, text: str, below: float, least: float = 0, **more: Any
) -> Any:
    """A field that takes a number of at least 0, or another least, and below a limit."""
    return _field(default, Option(label, text, "number", minimum=least, maximum=below, **more))


def flag(default: bool | None, label: str, text: str, **more: Any) -> Any:
    """A field that is true or false."""
    return _field(default, Option(label, text, "flag", **more))


def names(default: str | None, label: str, text: str, most: int, **more: Any) -> Any:
    """A field that takes comma-separated names, with a limit on its characters."""
    return _field(default, Option(label, text, "names", maximum=most, **more))


def _field(default: object, option: Option) -> Any:
    return dataclasses.field(default=default, metadata={"option": option})


def options_of(plan: type[Any]) -> dict[str, Option]:
    """The options that stand at a dataclass' fields, by their names."""
    return {
        field.name: dataclasses.replace(field.metadata["option"], field=field.name)
        for field in dataclasses.fields(plan)
    }
