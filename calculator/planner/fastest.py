"""The fastest step that fits: the most tokens a second by the clock, of all that stay the same.

A larger micro-batch is never slower by the clock, but what makes room for it may be: layers
computed again. So each way of checkpointing is tried with the largest batch that it has room for.
"""

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Any, Final

from calculator.architecture import Architecture
from calculator.clock import Seconds
from calculator.errors import InputError
from calculator.plan import LARGEST_BATCH, Checkpointing, Plan
from calculator.planner.largest import end_of, largest_batch_in_steps
from calculator.planner.pace import pace_of
from calculator.units import format_count

# from what is computed least to what is computed most
TRIED: Final = (Checkpointing.NONE, Checkpointing.OPERATIONS, Checkpointing.FULL)
# a plan that is faster by less is not worth a word: the clock does not tell them apart
WORTH_A_WORD: Final = 0.03


@dataclass(frozen=True, slots=True)
class Fastest:
    """A plan and its seconds; the largest batch that fits without another change, and its own."""

    plan: Plan
    seconds: Seconds
    largest: int
    before: Seconds

    @property
    def gain(self) -> float:
        """Tokens a second more than with the largest batch alone, as a share."""
        return self.seconds.tokens_per_second / self.before.tokens_per_second - 1

    @property
    def instruction(self) -> str:
        """An instruction."""
        match self.plan.checkpointing:
            case Checkpointing.NONE:
                way = "Recompute nothing"
            case Checkpointing.OPERATIONS:
                way = "Selective checkpointing"
            case _:
                way = "Recompute each layer"
        return f"{way}, with a micro-batch of {format_count(self.plan.batch_size)}"

    @property
    def reason(self) -> str:
        """A sentence or two on the gain."""
        rate = format_count(round(self.seconds.tokens_per_second))
        words = f"{rate} tokens per second, {self.gain:.0%} more."
        if self.plan.batch_size < self.largest:
            words += " The largest micro-batch is not the fastest."
        return words

    def as_json(self) -> dict[str, Any]:
        """The options that differ from the defaults, its seconds, and what it gains."""
        seconds = self.seconds.as_json()
        return {"plan": self.plan.changed(), "seconds": seconds, "gain": self.gain}


def fastest(
    architecture: Architecture, plan: Plan, memory: int, largest: int | None
) -> Fastest | None:
    """The fastest way of checkpointing; None where it is the plan's own, or nothing is timed.

    Args:
        architecture: the model.
        plan: the plan, on its card.
        memory: the GPU's memory in bytes.
        largest: the plan's largest micro-batch that fits.

    Raises:
        InputError: if the model does not support the plan.
    """
    return end_of(fastest_in_steps(architecture, plan, memory, largest))


def fastest_in_steps(
    architecture: Architecture, plan: Plan, memory: int, largest: int | None
) -> Generator[None, None, Fastest | None]:
    """Pauses after each estimate; the end's value is that of `fastest`."""
    if largest is None or (own := _pace(architecture, plan.but(batch_size=largest))) is None:
        return None
    best = Fastest(plan, own, largest, own)
    for tried in _others(plan):
        limit = _pace(architecture, tried.but(batch_size=LARGEST_BATCH))
        if limit is None or limit.tokens_per_second <= best.seconds.tokens_per_second:
            continue
        batch = yield from largest_batch_in_steps(architecture, tried, memory)
        if batch:
            found = tried.but(batch_size=batch)
            pace = _pace(architecture, found)
            if pace is not None and pace.tokens_per_second > best.seconds.tokens_per_second:
                best = Fastest(found, pace, largest, own)
    return best if best.gain > WORTH_A_WORD else None


def _others(plan: Plan) -> Iterator[Plan]:
    """The plan with every other way of checkpointing."""
    for way in TRIED:
        changed = plan.but(checkpointing=way, checkpoint_every=1)
        if changed != plan:
            yield changed


def _pace(architecture: Architecture, plan: Plan) -> Seconds | None:
    try:
        return pace_of(architecture, plan)
    except InputError:
        return None  # a way that this model does not have
