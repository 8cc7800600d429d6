"""Options of the command line that are numbers, and no part of a plan."""

from dataclasses import dataclass

from calculator.errors import InputError


@dataclass(frozen=True, slots=True)
class Option:
    """One option of a planner's command.

    Attributes:
        field: its name, with underscores.
        help: one sentence with the unit.
        default: the text that stands in for it; None where it must be given.
        whole: only whole numbers are taken.
    """

    field: str
    help: str
    default: str | None = None
    whole: bool = False

    def read(self, text: str | None) -> float:
        """The option's number.

        Raises:
            InputError: where it is missing or no number.
        """
        given = self.default if text is None else text
        if given is None:
            raise InputError(self.field, "", f"must be given: {self.help}")
        try:
            number = float(given)
        except ValueError:
            raise InputError(self.field, given, "must be a number, such as 7e9") from None
        if self.whole and not number.is_integer():
            raise InputError(self.field, given, "must be a whole number")
        return int(number) if self.whole else number
