"""The one error that bad input raises: it names the field, the value and the rule."""

import difflib
from collections.abc import Iterable


class InputError(ValueError):
    """A value that cannot be computed with.

    Attributes:
        field: the option's name as in `Plan`, for example ``batch_size``.
        value: what was given, as text.
        rule: what a good value looks like.
    """

    def __init__(self, field: str, value: object, rule: str) -> None:
        self.field = field
        self.value = str(value)
        self.rule = rule
        super().__init__(f"{field} = {self.value!r}: {rule}")


def unknown_name(field: str, value: object, known: Iterable[str]) -> InputError:
    """The error for a name that is not on a list, with the closest name that is."""
    names = list(known)
    close = difflib.get_close_matches(str(value).lower(), names, n=1, cutoff=0.5)
    hint = f"did you mean '{close[0]}'? " if close else ""
    return InputError(field, value, f"{hint}must be one of: {', '.join(names)}")
