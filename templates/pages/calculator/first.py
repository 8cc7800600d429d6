"""Verdicts that the calculator's page shows while Python starts: Home's models and cards."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from calculator.catalog import GPUS, Gpu, find_model
from calculator.errors import InputError
from calculator.page.answer import verdict_on
from calculator.page.states import read_state
from calculator.planner.need import judged, judged_on
from calculator.presets import FIELD, Preset
from templates.pages.index.fit import CARDS, MODELS
from templates.pieces.comparisons import kept, on_all_cores

# beside the cards that Home has
IN_DATA_CENTERS: Final = ("l4", "h100")
# by preset and card: the verdict's state, and the sum behind it
Verdicts = dict[str, dict[str, tuple[str, str]]]


def first_verdicts() -> dict[str, Verdicts]:
    """The verdicts of each model."""
    found = kept("first-verdicts", lambda: on_all_cores(verdicts_of, MODELS), [Path(__file__)])
    return dict(zip(MODELS, found, strict=True))


def verdicts_of(model: str) -> Verdicts:
    """The verdicts of a model by preset and card, where it has such a training."""
    return {preset.value: dict(_by_card(model, preset)) for preset in Preset}


def _by_card(model: str, preset: Preset) -> Iterator[tuple[str, tuple[str, str]]]:
    architecture = find_model(model)
    for cards in _generations():
        try:
            _, plan, _ = read_state({"model": model, "gpu": cards[0].name, FIELD: preset.value})
            report = judged(architecture, plan)
        except InputError:
            continue  # this model or card has no such training
        for card in cards:
            verdict = verdict_on(judged_on(architecture, report, card), card)
            yield card.name, (verdict["state"], verdict["sum"])


def _generations() -> list[list[Gpu]]:
    """The cards by what a step's memory depends on: bfloat16, and cuBLAS's workspaces."""
    found: dict[tuple[bool, bool], list[Gpu]] = {}
    for card in (GPUS[name] for name in (*CARDS, *IN_DATA_CENTERS)):
        assert card.capability is not None
        key = card.capability >= (8, 0), card.capability >= (9, 0)
        found.setdefault(key, []).append(card)
    return list(found.values())
