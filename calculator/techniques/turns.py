"""The order in which micro-batches pass through one stage of a pipeline.

Source: pipeline, torch (distributed/pipelining/schedules.py)
"""

from dataclasses import dataclass
from typing import Final

from calculator.plan import PipelineSchedule, Plan

# between the name of a stack and the number of a micro-batch
TURN: Final = "@"


@dataclass(frozen=True, slots=True)
class Turns:
    """The passes of a stage in order: whether each is a forward one, and its micro-batch.

    What is sent stays to the end of the step, or until there is something else to send.
    """

    passes: tuple[tuple[bool, int], ...] = ()
    keeps_sent: bool = False

    @property
    def count(self) -> int:
        """Micro-batches."""
        return len(self.passes) // 2

    @property
    def names(self) -> list[str]:
        """The ends of the stacks' names, one for each micro-batch."""
        return [f"{TURN}{place}" for place in range(self.count)]

    @property
    def ahead(self) -> int:
        """Forward passes before the first backward one."""
        return next(place for place, (is_forward, _) in enumerate(self.passes) if not is_forward)


def turns_of(plan: Plan, place: int) -> Turns | None:
    """The passes of a stage in order; none of a model that is not in a pipeline."""
    if plan.pipeline_parallel == 1:
        return None
    count = plan.accumulation
    at_once = plan.pipeline_schedule is PipelineSchedule.GPIPE
    ahead = count if at_once else min(count, plan.pipeline_parallel - place)
    passes = [(True, number) for number in range(ahead)]
    for number in range(count):
        passes.append((False, number))
        if number + ahead < count:
            passes.append((True, number + ahead))
    return Turns(tuple(passes), at_once)
