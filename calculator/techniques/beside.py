"""Options that are counted one at a time, but not together."""

from collections.abc import Mapping

from calculator.errors import InputError
from calculator.plan import Plan


def refuse_beside(plan: Plan, name: str, others: Mapping[str, bool]) -> None:
    """Refuse the number of GPUs in the option `name` beside any option that `others` marks.

    Raises:
        InputError: naming `name`, and the first option that is marked.
    """
    for other, used in others.items():
        if used:
            beside = f"{other} = {getattr(plan, other)}"
            rule = f"must be 1 beside {beside}: the two are not counted together"
            raise InputError(name, getattr(plan, name), rule)
