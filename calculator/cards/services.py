"""RAM of the services that lend cards without charge: less than what some offloading needs."""

from dataclasses import dataclass
from typing import Final

from calculator.cards.card import Card
from calculator.units import GiB, format_bytes


@dataclass(frozen=True, slots=True)
class Service:
    """A service that lends cards without charge, and the RAM of its machines in bytes."""

    name: str
    ram: int
    source: str

    def lends(self, card: Card) -> bool:
        """True if the card's note says that the service has it without charge."""
        return card.note.startswith("free") and self.name in card.note


SERVICES: Final = (
    Service(
        "Colab",
        round(12.7 * GiB),
        "https://linux-blog.anracom.com/2023/05/04/google-colab-ram-vram-and-gpu-usage-limits-i-no-clear-conditions-over-multiple-sessions/",
    ),
    Service("Kaggle", 29 * GiB, "https://www.kaggle.com/docs/notebooks#technical-specifications"),
)


def too_much_ram(card: Card, ram: int) -> str:
    """A sentence on the services that lend a card and have less RAM; empty if none has less.

    >>> from calculator.cards import CARDS
    >>> too_much_ram(CARDS["t4"], 20 * GiB)
    'Free Colab has 12.7 GiB.'
    """
    short = [one for one in SERVICES if one.lends(card) and one.ram < ram]
    found = " and ".join(f"{one.name} has {format_bytes(one.ram)}" for one in short)
    return f"Free {found}." if found else ""
