"""The requests of a program added up without an allocator, as the calculator adds up a step."""

from calculator.allocator import Block, CachingAllocator, Pool
from calculator.estimate import fullest_part
from calculator.reserved import NO_WORKSPACES, Program, Workspaces
from calculator.resolution import resolve
from tests.calculator.plans import Case


class Endless(Pool):
    """Has a block of each size, in no segment."""

    def take(self, size: int, place: int | None = None) -> Block:
        return self, 0, size

    def put(self, start: int, size: int) -> None:
        pass


def counted(case: Case, workspaces: Workspaces = NO_WORKSPACES) -> int:
    """Bytes of the program's tensors at the peak."""
    plan = resolve(case.architecture, case.plan)
    counter = CachingAllocator()
    counter.small = counter.large = Endless(0)
    Program(fullest_part(case.architecture, plan), plan, workspaces).run(counter)
    return counter.peak_allocated
