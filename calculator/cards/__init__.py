"""Graphics cards: memory, capability, rates, and the names that tools print for them."""

from calculator.cards.card import Card, Peaks
from calculator.cards.find import TODAY, card_of_size, find_card
from calculator.cards.known import CARDS, COMMON, grouped

__all__ = ["CARDS", "COMMON", "TODAY", "Card", "Peaks", "card_of_size", "find_card", "grouped"]
