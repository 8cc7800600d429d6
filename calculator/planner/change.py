"""One change that the adviser may propose: its words, its cost, and the plan after it."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from math import inf
from typing import Any, Final

from calculator.architecture import Architecture
from calculator.data import read_data
from calculator.models.registry import type_of
from calculator.plan import LARGEST_BATCH, Plan


class Cost(IntEnum):
    """Costs of a change, from least to most.

    First what takes time or precision at most, then traffic and the links for it, and at last what
    makes another training or another model. Among changes of one `rank` it is time that decides.
    """

    NOTHING = 0
    EFFICIENCY = 1
    PRECISION = 2
    LITTLE_TIME = 3
    TIME = 4
    TRANSFER = 5
    LINKS = 6
    OTHER_TRAINING = 7
    ADAPTERS = 8
    OTHER_MODEL = 9

    @property
    def rank(self) -> "Cost":
        """The same for all that leaves the training as it is, and costs something."""
        return Cost.EFFICIENCY if Cost.NOTHING < self < Cost.OTHER_TRAINING else self

    @property
    def usual_time(self) -> float:
        """Time that a token takes more, as a share, to order plans that the clock cannot time."""
        match self:
            case Cost.LITTLE_TIME:
                return 1 / 6
            case Cost.TIME:
                return 1 / 3
            case Cost.TRANSFER | Cost.LINKS:
                return inf
            case _:
                return 0.0


def has_class(architecture: Architecture) -> bool:
    """True for models that transformers has a class of."""
    return bool(type_of(architecture).counted)


def has_experts(architecture: Architecture) -> bool:
    """True for models with experts."""
    return architecture.has("experts")


def _all(_: Architecture) -> bool:
    return True


# what changes are about
CHECKPOINTS: Final = "layers computed again"
DIVISION: Final = "what each GPU holds"
LENGTH: Final = "the tokens of a sequence"

_TEXTS: Final = read_data("planner/changes.json")


@dataclass(frozen=True, slots=True)
class Change:
    """One thing to do to a plan.

    Attributes:
        words: what a person does, as an instruction; names of options in braces stand for their
            values in the plan after it.
        cost: how much it costs, beside other changes.
        price: what it costs, in a sentence.
        guess: a sentence on the time that it takes, where the clock has no answer.
        apply: the plan after it, or None where it changes nothing.
        short: the change as a table names it.
        lesser: the same to a lesser degree, which saves and costs less, from more to less.
        about: changes about the same thing, such as the length, are not proposed together.
        is_for: false for models that never take it; others may refuse it beside other options.
        is_slow: true if it takes so long to estimate that it is tried without others only, and
            where nothing cheaper is enough.
    """

    words: str
    cost: Cost
    price: str
    apply: Callable[[Plan], Plan | None]
    short: str
    guess: str = ""
    lesser: tuple["Change", ...] = ()
    about: str = ""
    is_for: Callable[[Architecture], bool] = _all
    is_slow: bool = False

    def words_for(self, plan: Plan) -> str:
        """The instruction; `plan` is the one after the change."""
        return self.words.format_map(vars(plan))

    def goes_with(self, other: "Change") -> bool:
        """True if both are tried together."""
        alike = self.about and self.about == other.about
        return not (alike or self.is_slow or other.is_slow)


def change(name: str, cost: Cost, apply: Callable[[Plan], Plan | None], **more: object) -> Change:
    """The change of that name in `changes.json`, which names it in tables unless `short` does."""
    texts: dict[str, Any] = {"short": name, **_TEXTS[name], **more}
    return Change(cost=cost, apply=apply, **texts)


def setting(**values: object) -> Callable[[Plan], Plan | None]:
    """A change of some options to these values."""

    def apply(plan: Plan) -> Plan | None:
        changed = plan.but(**values)
        return None if changed == plan else changed

    return apply


def accumulated(plan: Plan, times: int, **values: object) -> Plan | None:
    """Other values, and so many times as many micro-batches per update; None if too many."""
    accumulation = plan.accumulation * times
    return None if accumulation > LARGEST_BATCH else plan.but(accumulation=accumulation, **values)
