"""All cards (`families.json`), and the few that lists and advice name.

Memory of NVIDIA's is what nvidia-smi prints as total; an A16 is four GPUs, and one of them is
meant. Rates are its documents', without sparsity and with sums in 32 bits: the products of
GeForce's tensor cores with such sums run at half the rate of the workstation cards' (appendix A of
NVIDIA's white paper on each architecture). Rates of laptops are those of the highest clock that
NVIDIA names.

Memory of AMD's is what rocm-smi prints as total VRAM; an MI250 or MI250X is two GPUs, and one of
them is meant. Of Apple's chips it is what Metal recommends at most (`recommendedMaxWorkingSetSize`,
which llama.cpp prints): two thirds of 32 GB and less, three quarters of more. Apple publishes no
rates; bandwidths are those of its machines' technical specifications.
"""

from typing import Final

from calculator.cards.card import Card, Family, cards_of
from calculator.data import read_data

FAMILIES: Final = tuple(Family(**values) for values in read_data("cards/families.json"))
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
