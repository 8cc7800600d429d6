"""Pace of a plan by the clock, and the time that it takes beside another."""

from calculator.architecture import Architecture
from calculator.clock import Seconds, step_seconds, why_untimed
from calculator.estimate import paced_work
from calculator.plan import Plan
from calculator.resolution import resolve


def pace_of(architecture: Architecture, plan: Plan) -> Seconds | None:
    """Seconds of a step on the plan's card, without the rest of a report; None if it has none.

    Raises:
        InputError: if the model does not support the plan.
    """
    resolved = resolve(architecture, plan)
    if any(why_untimed(resolved)):
        return None
    return step_seconds(paced_work(architecture, resolved), resolved)


def more_time(before: Seconds | None, after: Seconds | None) -> float | None:
    """Time that a token takes more than before, as a share; None where one has no seconds."""
    if before is None or after is None:
        return None
    return before.tokens_per_second / after.tokens_per_second - 1


def describe_time(more: float) -> str:
    """The same as a sentence.

    >>> describe_time(0.21), describe_time(-0.08), describe_time(0.004)
    ('+21% time.', '-8% time.', 'About the same time.')
    """
    return f"{more:+.0%} time." if round(100 * more) else "About the same time."
