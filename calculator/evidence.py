"""Evidence for an answer: steps of PyTorch that were measured with the same techniques.

The oracle writes `evidence.json` (`python -m validation evidence`): for every family the sets of
techniques of its measured steps, and how right answers were for random plans.
"""

from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import combinations
from typing import Any, Final, cast

from calculator.architecture import Architecture
from calculator.choice import Choice
from calculator.data import read_data
from calculator.plan import Plan
from calculator.resolution import resolve

# options that are sizes of a step, or whose values are counts of one technique
SIZES: Final = frozenset({"batch_size", "sequence_length", "target_length", "gpus", "labels"})
ALL_LINEAR: Final = "all-linear"
_LEAST: Final = 1e-4  # no error is said to be smaller
# the share of tries whose error is at most what is said
SHARE: Final = 0.98


Words = frozenset[str]


class State(Choice):
    """State of an answer's techniques: measured together, only in pairs, or not even so."""

    MEASURED = "measured"  # together, on a model of this family
    COMPOSED = "composed"  # each on this family, and each pair on some family
    ESTIMATED = "estimated"  # some pair never


@dataclass(frozen=True, slots=True)
class Evidence:
    """The state, how many steps were tried, and the relative error that 98 of 100 were within.

    Of a measured state the error is the largest.
    """

    state: State
    tries: int
    within: float

    def as_json(self) -> dict[str, Any]:
        """The fields by name."""
        return {"state": self.state.value, "tries": self.tries, "within": self.within}

    @property
    def words(self) -> str:
        """A sentence, with its witness."""
        steps = "step" if self.tries == 1 else "steps"
        within = f"{max(self.within, _LEAST):.2%}"
        if self.state is State.MEASURED:
            return (
                f"Evidence: measured. {self.tries:,} {steps} of this family with these techniques, "
                f"run by PyTorch on our simulated GPU; error at most {within}."
            )
        return (
            f"Evidence: {self.state}. These techniques were not measured together on this family; "
            f"of {self.tries:,} random plans like it, run by PyTorch on our simulated GPU, 98 in "
            f"100 were within {within}."
        )


def evidence_of(architecture: Architecture, plan: Plan) -> Evidence:
    """The evidence for a resolved plan's answer."""
    words = frozenset(techniques_of(architecture, plan))
    own = _measured(architecture.family)
    state = state_of(words, own, _pairs())
    found = own[words] if state is State.MEASURED else _data()["random"][state.value]
    return Evidence(state, *found)


def state_of(words: Words, own: Collection[Words], pairs: Container[Words]) -> State:
    """The state of a set of techniques: `own` are a family's measured sets, `pairs` everybody's."""
    if words in own:
        return State.MEASURED
    known = bool(own) and words <= frozenset().union(*own)
    together = all(frozenset(pair) in pairs for pair in combinations(words, 2))
    return State.COMPOSED if known and together else State.ESTIMATED


def pairs_of(sets: Iterable[Words]) -> frozenset[Words]:
    """The pairs of techniques within sets."""
    return frozenset(frozenset(pair) for each in sets for pair in combinations(each, 2))


def techniques_of(architecture: Architecture, plan: Plan) -> Iterator[str]:
    """Words for the options in which a resolved plan differs from the model's defaults."""
    plain = _plain(architecture, plan)
    for name, option in Plan.options().items():
        value, default = getattr(plan, name), getattr(plain, name)
        if name in SIZES or value == default or not (value or default):
            continue
        match option.kind:
            case "choice":
                if name != "data_parallel" or plan.replicas > 1:
                    yield f"{name}={value}"
            case "names":
                if name != "lora_targets" or value == ALL_LINEAR:
                    yield name
            case "flag":
                yield name if value else f"no {name}"
            case _:
                yield name
    if plan.replicas > 1 and plan.data_parallel == plain.data_parallel:
        yield f"data_parallel={plan.data_parallel}"


@lru_cache(maxsize=512)
def _plain_of(architecture: Architecture, card: Any) -> Plan:
    return resolve(architecture, Plan().on(card))


def _plain(architecture: Architecture, plan: Plan) -> Plan:
    return _plain_of(architecture, plan.card)


@cache
def _data() -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", read_data("evidence.json"))


@cache
def _measured(family: str) -> Mapping[Words, tuple[int, float]]:
    """The sets of techniques of a family, with their tries and largest error."""
    return dict(_read(" ".join(_data()["measured"].get(family, ()))))


def _read(text: str) -> Iterator[tuple[Words, tuple[int, float]]]:
    """Sets such as ``3.12*4!0.001``: words 3 and 12, of 4 steps, with errors of up to 0.1 %."""
    named = _data()["words"]
    for item in text.split():
        rest, _, error = item.partition("!")
        places, _, count = rest.partition("*")
        words = frozenset(named[int(place)] for place in places.split(".") if place)
        yield words, (int(count or 1), float(error or 0))


@cache
def _pairs() -> frozenset[Words]:
    return pairs_of(words for family in _data()["measured"] for words in _measured(family))
