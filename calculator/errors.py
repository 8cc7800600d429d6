"""The one error that bad input raises: it names the field, the value and the rule."""

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
    """The error for a name that is not on a list, with the likeliest name that is."""
    names = list(known)
    close = _likeliest(str(value).lower(), names)
    hint = f"did you mean '{close}'? " if close else ""
    return InputError(field, value, f"{hint}must be one of: {', '.join(names)}")


def _likeliest(typed: str, names: list[str]) -> str | None:
    """A name that is the typed one longer or shorter, else one that is spelled much alike.

    >>> _likeliest("gpt2-large", ["t5-large", "gpt2-s", "gpt2-l"])
    'gpt2-l'
    """
    begun = [name for name in names if typed and (name.startswith(typed) or typed.startswith(name))]
    if begun:
        return max(begun, key=len) if typed.startswith(begun[0]) else begun[0]
    import difflib  # only errors need it, and a page's start is short

    alike = difflib.get_close_matches(typed, names, n=1, cutoff=0.5)
    return alike[0] if alike else None
