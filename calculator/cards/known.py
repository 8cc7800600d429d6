"""All cards, and the few that lists and advice name."""

from typing import Final

from calculator.cards.card import Card, Family, cards_of
from calculator.cards.nvidia import FAMILIES as NVIDIA
from calculator.cards.others import FAMILIES as OTHERS

FAMILIES: Final[tuple[Family, ...]] = (*NVIDIA, *OTHERS)
CARDS: Final[dict[str, Card]] = cards_of(FAMILIES)


def grouped() -> dict[str, list[Card]]:
    """All cards by the title of their family, which several may share."""
    found: dict[str, list[Card]] = {}
    for family in FAMILIES:
        found.setdefault(family.title, []).extend(CARDS[row[0]] for row in family.rows)
    return found


# cards that one rents, finds in notebooks, or has at home: lists and advice name these
COMMON: Final[tuple[Card, ...]] = tuple(
    CARDS[name]
    for name in (
        *("t4", "p100", "v100-16", "v100-32", "gtx-1060", "gtx-1080-ti", "rtx-2080-ti"),
        *("rtx-3060", "rtx-3070", "rtx-3090", "rtx-4060", "rtx-4060-ti-16", "rtx-4070"),
        *("rtx-4080", "rtx-4090", "rtx-5090", "l4", "a10g", "a6000", "l40s", "a100-40"),
        *("a100-80", "h100", "h200"),
    )
)
