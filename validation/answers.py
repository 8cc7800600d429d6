"""The calculator's answers to what tools show of a step's memory."""

from dataclasses import dataclass, fields

from calculator.architecture import Architecture
from calculator.cards import Card
from calculator.overhead import handle_bytes
from calculator.plan import Plan
from calculator.planner.need import judged
from calculator.reserved import Workspaces, reserved


@dataclass(frozen=True, slots=True)
class Answer:
    """Bytes that PyTorch allocates and reserves, bytes that the driver shows, and their range."""

    allocated: int
    reserved: int
    used: int
    low: int
    high: int

    def less(self, size: int) -> "Answer":
        """The same step without so many bytes of tensors."""
        return Answer(*(getattr(self, item.name) - size for item in fields(self)))


def answer(architecture: Architecture, plan: Plan, card: Card, expandable: bool = False) -> Answer:
    """The answer for a card; segments of PyTorch's allocator may be `expandable`."""
    report = judged(architecture, plan.on(card))
    more = 0
    if expandable:
        workspaces = Workspaces((handle_bytes(card),), (handle_bytes(card),))
        found = reserved(architecture, report.plan, workspaces, expandable=True)
        more = found.reserved - report.reserved
    peak = report.gpu.total
    low, high = (peak + size + more for size in (report.overhead.low, report.overhead.high))
    return Answer(report.allocated, report.reserved + more, report.used + more, low, high)
