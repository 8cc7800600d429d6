"""Checks shared by the planner's formulas: each names the field, the value and the rule."""

import math

from calculator.errors import InputError


def check_positive(**values: float) -> None:
    """Refuse values that are not finite numbers above 0.

    Raises:
        InputError: for the first such value.
    """
    for field, value in values.items():
        if not (_is_number(value) and value > 0):
            raise InputError(field, value, "must be a finite number above 0")


def check_not_negative(**values: float) -> None:
    """Refuse values that are not finite numbers of at least 0.

    Raises:
        InputError: for the first such value.
    """
    for field, value in values.items():
        if not (_is_number(value) and value >= 0):
            raise InputError(field, value, "must be a finite number, 0 or above")


def check_share(**values: float) -> None:
    """Refuse values that are not between 0 and 1.

    Raises:
        InputError: for the first such value.
    """
    for field, value in values.items():
        if not (_is_number(value) and 0 <= value <= 1):
            raise InputError(field, value, "must be between 0 and 1")


def check_count(**values: float) -> None:
    """Refuse values that are not whole numbers of at least 1.

    Raises:
        InputError: for the first such value.
    """
    for field, value in values.items():
        if not (_is_number(value) and value >= 1 and value == int(value)):
            raise InputError(field, value, "must be a whole number, at least 1")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
