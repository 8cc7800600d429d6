"""The share of its peak that a card sustains: as many FLOPs as its power limit pays for.

A peak is a rate at the boost clock. Under load a card lowers its clock until it keeps its power
limit: a T4 may take 70 W, and boosts to 1,590 MHz from 585.
"""

from typing import Final

from calculator.cards import CARDS, Card

# Energy of a product beside that of the same in TSMC's 7 nm: 16 nm takes 1 / 0.4 of it, 12 nm 25%
# less than 16 nm, 5 nm, of which NVIDIA's 4N is a kind, 30% less. Samsung's 8 nm of GeForce RTX 30
# (8.6) is missing, as no source compares it. TSMC's announcements as AnandTech (article 11337,
# 2017) and WikiChip (5 nm, March 2020) report them.
ENERGIES: Final = {
    (6, 0): 1 / 0.4,
    (6, 1): 1 / 0.4,
    (7, 0): 0.75 / 0.4,
    (7, 5): 0.75 / 0.4,
    (8, 0): 1.0,
    (8, 9): 0.7,
    (9, 0): 0.7,
    (10, 0): 0.7,
    (10, 3): 0.7,
    (12, 0): 0.7,
}
# cards whose steps the clock was fitted on, one for each generation
TRIED: Final = tuple(CARDS[name] for name in ("t4", "a100-80", "h100"))


def shares_tried(energy: float) -> list[float]:
    """The shares of the cards whose steps were timed."""
    return [_paid_for(card, energy, ENERGIES.get(card.capability or (0, 0), 0)) for card in TRIED]


def share_of_peak(card: Card, energy: float) -> float:
    r"""The share of a card's 16-bit peak that products reach.

    $$\min(P / (e \, q \, p), m)$$

    with P the card's power limit in W, e the energy of a FLOP in 7 nm in J, q the card's process
    beside that, p its peak in FLOP/s, and m the highest share of a card that was timed. Where the
    limit or the process is unknown it is the mean of the cards timed.
    """
    beside = ENERGIES.get(card.capability or (0, 0), 0)
    tried = shares_tried(energy)
    if not (beside and card.watts):
        return sum(tried) / len(tried)
    return min(_paid_for(card, energy, beside), max(tried))


def _paid_for(card: Card, energy: float, beside: float) -> float:
    return min(1.0, card.watts / (energy * beside * card.peaks.fp16 * 1e12))
