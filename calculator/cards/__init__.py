"""Graphics cards: memory, capability, rates, and the names that tools print for them."""

from calculator.cards.card import Card, Peaks
from calculator.cards.find import card_of_size, find_card
from calculator.cards.known import CARDS, COMMON, grouped

__all__ = ["CARDS", "COMMON", "Card", "Peaks", "card_of_size", "find_card", "grouped"]
