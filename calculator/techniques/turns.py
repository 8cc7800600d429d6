"""The order in which micro-batches pass through the stages that one GPU of a pipeline has.

Source: pipeline, torch (distributed/pipelining/schedules.py)
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple, assert_never

from calculator.autograd.ledger import AHEAD, COPIED, REDUCTION
from calculator.plan import PipelineSchedule, Plan

# between the name of a stack and the number of a micro-batch
TURN: Final = "@"
# between that and the number of a stage, of a GPU that has several
STAGE_TURN: Final = "."
# stages whose weights in shards are gathered ahead at a time
MOST_GATHERED: Final = 3


class Pass(NamedTuple):
    """A micro-batch goes forward or backward through one of the GPU's stages."""

    is_forward: bool
    micro_batch: int
    stage: int = 0


@dataclass(frozen=True, slots=True)
class Turns:
    """The passes of a GPU in order; it has so many `stages`.

    What is sent stays to the end of the step, or until there is something else to send. The last
    output stays until there is another one, unless it is let go of as soon as it is sent. Weights
    in shards are gathered as layers run, or by a schedule that `gathers` those of whole stages.
    """

    passes: tuple[Pass, ...]
    keeps_sent: bool
    keeps_output: bool = True
    stages: int = 1
    gathers: bool = False

    @property
    def lets_go(self) -> bool:
        """True if a stage's weights may be let go of between its passes, to be gathered again."""
        return self.gathers and self.stages > MOST_GATHERED

    def moves(self) -> Iterator[tuple[Pass, list[int], list[int]]]:
        """All passes; before each, stages that are let go of, and stages that are gathered.

        Source: torch (distributed/pipelining/schedules.py, _add_unshard_reshard)
        """
        coming: list[list[int]] = [[]]
        for each in reversed(self.passes):
            others = (stage for stage in coming[-1] if stage != each.stage)
            coming.append([each.stage, *others])
        there: list[int] = []
        for each, following in zip(self.passes, reversed(coming), strict=False):
            wanted = following[:MOST_GATHERED] if self.gathers else []
            gone = [stage for stage in there if stage not in wanted]
            yield each, gone, [stage for stage in wanted if stage not in there]
            there = wanted

    @property
    def count(self) -> int:
        """Micro-batches."""
        return len(self.passes) // (2 * self.stages)

    @property
    def ahead(self) -> int:
        """Forward passes before the first backward one: the most that wait for theirs."""
        return next(number for number, each in enumerate(self.passes) if not each.is_forward)

    def name(self, micro_batch: int, stage: int) -> str:
        """The end of the name of a stage's stacks as a micro-batch passes through."""
        return f"{TURN}{micro_batch}" + (f"{STAGE_TURN}{stage}" if self.stages > 1 else "")

    def names(self, stage: int) -> list[str]:
        """The ends of the names of a stage's stacks: of each micro-batch, and of the reduction.

        Also of each time that they are gathered ahead.
        """
        passing = [self.name(number, stage) for number in range(self.count)]
        most = 2 * self.count if self.gathers else 0  # once before each pass
        times = (self.name(number, stage) for number in range(most))
        ahead = [name + each for name in times for each in (AHEAD, COPIED)]
        return [*passing, passing[0] + REDUCTION, *ahead]


def turns_of(plan: Plan, rank: int) -> Turns | None:
    """The passes of a GPU in order; none of a model that is not in a pipeline."""
    if plan.pipeline_parallel == 1:
        return None
    count = plan.accumulation
    match plan.pipeline_schedule:
        case PipelineSchedule.GPIPE:
            return Turns((*_in_turn(count, count),), keeps_sent=True)
        case PipelineSchedule.ONE_FORWARD_ONE_BACKWARD:
            ahead = min(count, plan.pipeline_parallel - rank)
            return Turns((*_in_turn(ahead, count),), keeps_sent=False)
        case PipelineSchedule.INTERLEAVED:
            passes = (*_interleaved(plan, rank),)
            return Turns(passes, True, False, plan.pipeline_stages, gathers=plan.is_sharded)
        case other:
            assert_never(other)


def _in_turn(ahead: int, count: int) -> Iterator[Pass]:
    """Some micro-batches forward, then backward and forward in turn."""
    yield from (Pass(True, number) for number in range(ahead))
    for number in range(count):
        yield Pass(False, number)
        if number + ahead < count:
            yield Pass(True, number + ahead)


def rounds_of(plan: Plan) -> int:
    """Rounds of an interleaved schedule, each of as many micro-batches as GPUs, or more."""
    return max(1, plan.accumulation // plan.pipeline_parallel)


def _interleaved(plan: Plan, rank: int) -> Iterator[Pass]:
    """A round's micro-batches through a stage, and then through the next; forward first."""
    stages = plan.pipeline_stages
    in_round = plan.accumulation // rounds_of(plan)
    passes = stages * plan.accumulation
    hops = plan.pipeline_parallel - 1 - rank
    ahead = min((stages - 1) * in_round + 2 * hops, passes)
    gone: Counter[tuple[bool, int]] = Counter()

    def passing(is_forward: bool, number: int) -> Pass:
        stage = number // in_round % stages
        stage = stage if is_forward else stages - 1 - stage
        gone[is_forward, stage] += 1
        return Pass(is_forward, gone[is_forward, stage] - 1, stage)

    yield from (passing(True, number) for number in range(ahead))
    for number in range(passes):
        if number + ahead < passes:
            yield passing(True, number + ahead)
        yield passing(False, number)
