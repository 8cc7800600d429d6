"""Hours and price of a whole training, for the data set that the page's form describes."""

from typing import TYPE_CHECKING

from calculator.page.states import Params, job_of
from calculator.report import Report

if TYPE_CHECKING:
    from calculator.planner.job import Job


def asked_job(params: Params) -> "Job | None":
    """The training of a state; None where it names no data set.

    Raises:
        InputError: for a value that no training can have.
    """
    given = job_of(params)
    if not given.keys() & {"tokens", "rows"}:
        return None
    from calculator.planner.job import Job  # few visitors ask for a whole training

    return Job.asked(given)


def training_sentences(report: Report, params: Params) -> str:
    """Hours, price, energy, and carbon of it; empty where it names no data set."""
    job = asked_job(params)
    if job is None:
        return ""
    from calculator.planner.job import training_words

    return in_sentences(training_words(report, job))


def in_sentences(lines: list[str]) -> str:
    """Lines of an answer as one paragraph.

    >>> in_sentences(["It takes 2 h.", "Price: $4"])
    'It takes 2 h. Price: $4.'
    """
    return " ".join(f"{line.removesuffix('.')}." for line in lines)
