"""The requests of a program added up without an allocator, as the calculator adds up a step."""

from calculator.allocator import Block, CachingAllocator, Pool, round_block
from calculator.estimate import fullest_part
from calculator.reserved import NO_WORKSPACES, Program, Workspaces
from calculator.resolution import resolve
from tests.calculator.plans import Case


class Counter(CachingAllocator):
    """Adds up blocks without segments, as the calculator does."""

    def allocate(self, size: int) -> Block:
        self.allocated += round_block(size)
        self.peak_allocated = max(self.peak_allocated, self.allocated)
        return Pool(0), 0, round_block(size)

    def free(self, block: Block) -> None:
        self.allocated -= block[2]


def counted(case: Case, workspaces: Workspaces = NO_WORKSPACES) -> int:
    """Bytes of the program's tensors at the peak."""
    plan = resolve(case.architecture, case.plan)
    counter = Counter()
    Program(fullest_part(case.architecture, plan), plan, workspaces).run(counter)
    return counter.peak_allocated
