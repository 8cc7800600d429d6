"""Evidence for answers: sets of techniques that were measured, and errors for random plans."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import ceil
from pathlib import Path
from textwrap import wrap
from typing import Any, Final

from calculator.evidence import SHARE, State, Words, pairs_of, state_of, techniques_of
from validation.compare import NEARLY_EXACT, Comparison, compare
from validation.configuration import Configuration
from validation.rows import read_rows
from validation.sample import Try, tries_in

PATH: Final = Path(__file__).parent.parent / "calculator" / "evidence.json"
Sets = dict[str, dict[Words, list[float]]]


def measured(comparisons: Iterable[Comparison]) -> Sets:
    """For each family the errors of its committed rows, by their sets of techniques."""
    found: Sets = defaultdict(lambda: defaultdict(list))
    for each in comparisons:
        family, words = _place(each.configuration)
        found[family][words].append(abs(each.error))
    return found


def random_errors(tries: Iterable[Try], sets: Sets) -> dict[State, list[float]]:
    """Errors of answers to random plans that were measured, by the state of their evidence."""
    found: dict[State, list[float]] = {state: [] for state in State}
    pairs = pairs_of(words for own in sets.values() for words in own)
    for each in tries:
        if each.is_compared:
            family, words = _place(each.configuration)
            found[state_of(words, sets.get(family, ()), pairs)].append(abs(each.off))
    return found


def _place(configuration: Configuration) -> tuple[str, Words]:
    architecture = configuration.architecture
    return architecture.family, frozenset(techniques_of(architecture, configuration.resolved))


def written(sets: Sets, random: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    """The data that the calculator reads."""
    words = sorted({word for family in sets.values() for one in family for word in one})
    place = {word: number for number, word in enumerate(words)}
    families = {}
    for family, own in sorted(sets.items()):
        items = sorted(_item([place[word] for word in one], errors) for one, errors in own.items())
        families[family] = wrap(" ".join(items), 96)
    return {"words": words, "random": random, "measured": families}


def _item(places: Sequence[int], errors: Sequence[float]) -> str:
    count = f"*{len(errors)}" if len(errors) > 1 else ""
    worst = max(errors)
    error = f"!{worst:.1g}" if worst > NEARLY_EXACT / 100 else ""
    return f"{'.'.join(map(str, sorted(places)))}{count}{error}" or "*1"


def bound(errors: Sequence[float]) -> float:
    """The error that 98 of 100 do not exceed."""
    return round(sorted(errors)[ceil(SHARE * len(errors)) - 1], 6) if errors else 0.0


def write(folder: Path) -> Iterator[str]:
    """Write the data, and say what it is: the lines that the command prints."""
    sets = measured(compare(read_rows("counting")))
    found = random_errors(tries_in(folder), sets)
    random = {state.value: (len(errors), bound(errors)) for state, errors in found.items()}
    PATH.write_text(f"{json.dumps(written(sets, random), indent=0)}\n", "utf-8")
    yield f"{sum(map(len, sets.values())):,} sets of techniques in {len(sets)} families"
    for name, (number, within) in random.items():
        yield f"{name:<10} {number:>4} random plans, 98 of 100 within {within:.3%}"
