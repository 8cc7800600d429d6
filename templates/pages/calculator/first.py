"""Verdicts that the calculator's page shows while Python starts: every model, preset and card.

PyTorch's allocator is simulated for Home's models and cards, and for two cards where it must be.
Else the verdicts are those that a step's peak decides, because what the allocator reserves for it
has bounds; where these leave it open, the page waits for Python.
"""

from collections.abc import Iterator
from functools import cache, partial
from itertools import chain, groupby
from operator import itemgetter
from typing import Final

from calculator.architecture import Architecture
from calculator.cards import CARDS, Card
from calculator.catalog import MODELS, find_model, groups
from calculator.catalog.checkpoints import CHECKPOINTS, SAME_SHAPE
from calculator.catalog.names import VARIANTS, shape_key
from calculator.errors import InputError
from calculator.estimate import estimate, totals
from calculator.page.states import read_state
from calculator.plan import Plan
from calculator.planner.need import by_bounds, describe_need, judged_on, need_of
from calculator.presets import FIELD, Preset
from calculator.report import Report
from calculator.resolution import resolve
from calculator.units import format_bytes
from templates.pages.index import fit
from templates.pieces.comparisons import Recorded

# beside the cards that Home has
IN_DATA_CENTERS: Final = ("l4", "h100")
# what the bounds leave open is computed for these, of every model
COMPUTED: Final = ("t4", "rtx-4090")
CARD: Final = "{card}"
MEMORY: Final = "{memory}"
# by preset: a verdict's state, the sum behind it in which the page puts the card, and the cards
Verdicts = dict[str, list[tuple[str, str, list[str]]]]
Found = tuple[str, str]


def first_verdicts() -> dict[str, Verdicts]:
    """The verdicts of each model."""
    return {name: found for part in VERDICTS.results() for name, found in part.items()}


def _types() -> list[list[str]]:
    """Names by type, the most first: those of a type share what one process has recorded."""
    types: dict[str, list[str]] = {}
    for architecture in chain.from_iterable(groups().values()):
        types.setdefault(architecture.family, []).append(architecture.name)
    return sorted(types.values(), key=len, reverse=True)


def _of_type(models: list[str]) -> dict[str, Verdicts]:
    return {model: verdicts_of(model) for model in models}


VERDICTS = Recorded("first-verdicts", _of_type, _types)


def shapes() -> dict[str, object]:
    """The list's names by the key that all names of their shape have, and how to make a key."""
    names: dict[str, str] = {}
    for name in (*MODELS, *CHECKPOINTS, *SAME_SHAPE):
        names.setdefault(shape_key(name), SAME_SHAPE.get(name, name))
    return {"variants": VARIANTS.pattern, "names": names}


def verdicts_of(model: str) -> Verdicts:
    """The verdicts of a model by preset, where it has such a training."""
    return {preset.value: _grouped(dict(found_for(model, preset))) for preset in Preset}


def _grouped(found: dict[str, Found]) -> list[tuple[str, str, list[str]]]:
    pairs = sorted((pair, card) for card, pair in found.items())
    return [(*pair, [card for _, card in same]) for pair, same in groupby(pairs, key=itemgetter(0))]


def found_for(model: str, preset: Preset) -> Iterator[tuple[str, Found]]:
    """Each card's name, its verdict and the sum."""
    architecture = find_model(model)
    for cards in _generations():
        try:
            _, plan, _ = read_state({"model": model, "gpu": cards[0].name, FIELD: preset.value})
            resolved = resolve(architecture, plan)
            peak = totals(architecture, plan).gpu
        except InputError:
            continue  # this model or card has no such training
        report = cache(partial(estimate, architecture, plan))
        for card in cards:
            if model in fit.MODELS and card.name in (*fit.CARDS, *IN_DATA_CENTERS):
                yield card.name, _as_python(architecture, report(), card)
            elif found := _decided(resolved.on(card), peak):
                yield card.name, found
            elif card.name in COMPUTED:
                yield card.name, _as_python(architecture, report(), card)


def _as_python(architecture: Architecture, report: Report, card: Card) -> Found:
    need = need_of(judged_on(architecture, report, card))
    return need.verdict(card.memory).value, _without(card, describe_need(need, card))


def _decided(plan: Plan, peak: int) -> Found | None:
    found = by_bounds(plan, peak)
    return found and (found[0].value, _without(plan.card, found[1]))


def _without(card: Card, words: str) -> str:
    """A sum in which the page puts the card, so that cards share it."""
    words = words.replace(f"your {card.short}", f"your {CARD}")
    return words.replace(f"has {gibibytes(card)}", f"has {MEMORY}")


def gibibytes(card: Card) -> str:
    """A card's memory as the page puts it into a sum, whose unit is in the sum."""
    return format_bytes(card.memory).removesuffix(" GiB")


def _generations() -> list[list[Card]]:
    """All cards by what a step's peak depends on: bfloat16, and flash attention with it."""
    found: dict[bool, list[Card]] = {}
    for card in CARDS.values():
        found.setdefault(card.predates_ampere, []).append(card)
    return list(found.values())
