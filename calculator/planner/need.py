"""The memory that a step takes on a GPU, and the verdict with the sum behind it."""

from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from typing import Final

from calculator.architecture import Architecture
from calculator.bounds import range_of
from calculator.catalog import Gpu
from calculator.estimate import estimate
from calculator.overhead import Overhead, simulated_overhead, workspace_bytes
from calculator.plan import Plan
from calculator.report import Report
from calculator.reserved import overhead_of, simulated
from calculator.resolution import resolve
from calculator.techniques.paged import describe_pages
from calculator.units import MiB, format_bytes

# the allocator reserves at most so much for a peak and the workspaces, in thousandths and bytes:
# 864 steps, of all models up to 28 layers with three presets on three cards, take up to 0.95 of it
MOST: Final = 1400
MOST_MORE: Final = 1024 * MiB


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


@lru_cache(maxsize=256)
def judged(architecture: Architecture, plan: Plan) -> Report:
    """The report that a verdict reads, with the allocator simulated.

    Against a typical share of its segments Qwen 3 8B with QLoRA on a T4 takes 16 % more, and Llama
    3.3 70B with LoRA 4 % less.

    Raises:
        InputError: if the model does not support the plan.
    """
    return simulated(architecture, estimate(architecture, plan))


def judged_on(architecture: Architecture, report: Report, card: Gpu) -> Report:
    """The same of a report's step on another card of its generation, which records no step."""
    return simulated(architecture, replace(report, plan=report.plan.on(card)))


def need_of(report: Report) -> Need:
    """GPU memory that a report's step takes, with the bounds of the overhead."""
    return _need(report.gpu.total, report.overhead, report.paged)


def need_at(architecture: Architecture, plan: Plan, peak: int, memory: int) -> Need:
    """The need of a `judged` step with that peak, for a search over many plans.

    The allocator is simulated only if the step may fit so much memory; else it is a lower bound,
    which does not fit.

    Raises:
        InputError: if the model does not support the plan.
    """
    resolved = resolve(architecture, plan)
    least = least_need(resolved, peak)
    if least.high > memory:
        return least
    return _need(peak, overhead_of(architecture, resolved, peak))


def least_need(plan: Plan, peak: int) -> Need:
    """The same without a simulation: where it needs one, a lower bound."""
    return _need(peak, simulated_overhead(peak, 0, 0, plan.card, range_of(plan)))


def bounds(plan: Plan, peak: int) -> tuple[int, int]:
    """Bytes between which the need of a resolved plan with that peak is, its own bounds too."""
    reserved = (peak + workspace_bytes(plan.card)) * MOST // 1000 + MOST_MORE
    most = simulated_overhead(peak, 0, reserved, plan.card, range_of(plan))
    return least_need(plan, peak).low, peak + most.high


def by_bounds(plan: Plan, peak: int) -> tuple[Verdict, str] | None:
    """The verdict that the peak alone decides, with the sum behind it; None where it is open."""
    card = plan.card
    least, most = bounds(plan, peak)
    if least > card.memory:
        return Verdict.DOES_NOT_FIT, _against("at least", least, card)
    if most <= card.memory:
        return Verdict.FITS, _against("at most", most, card)
    return None


def _against(bound: str, need: int, card: Gpu) -> str:
    text = format_bytes(need)
    has = _beside(card.memory, text)
    return f"Needs {bound} {text}, your {card.short} has {has}. {card.caveat}".rstrip()


def _need(peak: int, overhead: Overhead, paged: int = 0) -> Need:
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
