"""The calculator's answers to what tools show of a step's memory."""

from dataclasses import dataclass

from calculator.report import Report


@dataclass(frozen=True, slots=True)
class Answer:
    """Bytes that PyTorch allocates and reserves, bytes that the driver shows, and their range."""

    allocated: int
    reserved: int
    used: int
    low: int
    high: int


def answer(report: Report) -> Answer:
    """The answer in a report."""
    peak, rest = report.gpu.total, report.overhead
    allocated = peak + rest.workspace
    return Answer(
        allocated, allocated + rest.slack, peak + rest.total, peak + rest.low, peak + rest.high
    )
