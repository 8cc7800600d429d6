"""The memory that a step takes on a GPU, and the verdict with the sum behind it."""

from dataclasses import dataclass
from enum import StrEnum

from calculator.catalog import Gpu
from calculator.overhead import Overhead, estimate_overhead
from calculator.report import Report
from calculator.techniques.paged import describe_pages
from calculator.units import format_bytes


class Verdict(StrEnum):
    """The interval of peak and overhead compared with a GPU's memory."""

    FITS = "fits"
    MAY_NOT_FIT = "may not fit"
    DOES_NOT_FIT = "does not fit"


@dataclass(frozen=True, slots=True)
class Need:
    """Bytes that a step takes of a GPU: the allocator's peak and what comes on top.

    Attributes:
        typical: peak and typical overhead.
        low: peak and the least overhead.
        high: peak and the most overhead.
        paged: states that take what room is left, and RAM where none is.
    """

    typical: int
    low: int
    high: int
    paged: int = 0

    def verdict(self, memory: int) -> Verdict:
        """The verdict for a GPU of so many bytes."""
        if self.high <= memory:
            return Verdict.FITS
        return Verdict.MAY_NOT_FIT if self.low <= memory else Verdict.DOES_NOT_FIT

    def fits(self, memory: int) -> bool:
        """True if the step is certain to fit a GPU with that many bytes."""
        return self.verdict(memory) is Verdict.FITS


def need_of(report: Report) -> Need:
    """GPU memory that a report's step takes, with the bounds of the overhead."""
    peak, overhead = report.gpu.total, report.overhead
    return _need(peak, overhead, report.paged)


def need_on(peak: int, gpu: Gpu, paged: int = 0) -> Need:
    """GPU memory that a step with that peak takes; the peak itself is the same on every GPU."""
    return _need(peak, estimate_overhead(peak, gpu), paged)


def _need(peak: int, overhead: Overhead, paged: int) -> Need:
    return Need(peak + overhead.total, peak + overhead.low, peak + overhead.high, paged)


def describe_need(need: Need, gpu: Gpu) -> str:
    """The sum that decides, in words, and what must be said of the card.

    >>> from calculator.catalog import find_gpu
    >>> describe_need(Need(16 * 2**30, 15 * 2**30, 17 * 2**30), find_gpu("t4"))
    'Needs 16.0 GiB (15.0 to 17.0), your Tesla T4 has 15.0.'
    """
    typical = format_bytes(need.typical)
    low, high, memory = (_beside(size, typical) for size in (need.low, need.high, gpu.memory))
    words = f"Needs {typical} ({low} to {high}), your {gpu.short} has {memory}."
    if need.paged and need.verdict(gpu.memory) is not Verdict.DOES_NOT_FIT:
        words += f" {describe_pages(need.paged, max(0, gpu.memory - need.typical))}"
    return f"{words} {gpu.caveat}".rstrip()


def _beside(size: int, other: str) -> str:
    """A size without its unit where the one before it has the same."""
    text = format_bytes(size)
    number, unit = text.split(" ")
    return number if other.endswith(f" {unit}") else text
