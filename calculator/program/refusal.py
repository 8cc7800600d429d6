"""The error for a plan that is counted, but that no program carries out."""

from calculator.errors import InputError


class NoProgramError(InputError):
    """A plan without a program: the message names the option, its value and the reason."""
