"""The one error that bad input raises: it names the field, the value and the rule."""

import copyreg
import reprlib
from collections.abc import Iterable
from typing import Final

# the longest value that a message repeats, and the longest message, in characters
LONGEST_VALUE: Final = 80
LONGEST_MESSAGE: Final = 1000

_NESTED: Final = reprlib.Repr()
_NESTED.maxlevel = 2
_NESTED.maxlist = _NESTED.maxdict = _NESTED.maxtuple = 4


class InputError(ValueError):
    """An invalid value. The message is one line of limited length.

    Attributes:
        field: the option's name as in `Plan`, for example ``batch_size``.
        value: the given value as text; a long one is cut in the middle.
        rule: a description of valid values.
    """

    def __init__(self, field: str, value: object, rule: str) -> None:
        self.field = one_line(field)
        self.value = shortened(value)
        self.rule = one_line(rule, LONGEST_MESSAGE)
        super().__init__(f"{self.field} = {self.value!r}: {self.rule}")

    def __reduce__(self) -> tuple[object, ...]:
        """As it is, for another process, whatever a subclass is made from."""
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]


def shortened(value: object, most: int = LONGEST_VALUE) -> str:
    """A value as text of at most `most` characters, cut in the middle.

    >>> shortened("a" * 1000, most=9)
    'aaaa…aaaa'
    """
    text = _NESTED.repr(value) if isinstance(value, dict | list | tuple) else str(value)
    half = (most - 1) // 2
    return text if len(text) <= most else f"{text[:half]}…{text[-half:]}"


def one_line(value: object, most: int = LONGEST_VALUE) -> str:
    r"""A value as `shortened` makes it, with every character escaped that cannot be printed.

    >>> one_line("two\nlines")
    'two\\nlines'
    """
    text = shortened(value, most)
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def unknown_name(field: str, value: object, known: Iterable[str]) -> InputError:
    """The error for a name that is not on a list, with the likeliest name that is."""
    names = list(known)
    close = likeliest(shortened(value).lower(), names)
    hint = f"did you mean '{close}'? " if close else ""
    return InputError(field, value, f"{hint}must be one of: {', '.join(names)}")


def likeliest(typed: str, names: list[str]) -> str | None:
    """A name that is the typed one longer or shorter, else one that is spelled much alike.

    >>> likeliest("gpt2-large", ["t5-large", "gpt2-s", "gpt2-l"])
    'gpt2-l'
    """
    begun = [name for name in names if typed and (name.startswith(typed) or typed.startswith(name))]
    if begun:
        return max(begun, key=len) if typed.startswith(begun[0]) else begun[0]
    import difflib  # only errors need it, and a page's start is short

    alike = difflib.get_close_matches(typed, names, n=1, cutoff=0.5)
    return alike[0] if alike else None
