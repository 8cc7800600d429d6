"""The card that a name means, as tools print it and people type it."""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from calculator.cards.card import Card
from calculator.cards.known import CARDS
from calculator.errors import InputError, shortened
from calculator.units import GiB, MiB

LARGEST_GIB: Final = 10_000
# a card that is known by its memory alone is taken for one of today
TODAY: Final = CARDS["rtx-4090"]
_SIZE: Final = re.compile(r"\s*(\d{1,9}(?:\.\d{1,9})?)\s*(gib|gb|g|mib|mb)\s*", re.ASCII)
# words around a card's name that tell no card from another
_MAKERS: Final = re.compile(r"nvidia|geforce|tesla|amd|instinct|radeon|apple")
_COMMON_WORDS: Final = (
    *("corporation", "graphics", "gpu", "generation", "edition", "workstation", "with"),
    *("gb", "gib"),
)
# words that tell kinds of one card, which mostly have the same memory
_KINDS: Final = re.compile(r"quadro|[rg]tx|rx|sxm\d?|pcie?|hbm\d?e?|oam|ac|nvlink|blackwell")


def find_card(text: str) -> Card:
    """The card of that name in any spelling, or one with that memory, as in ``20GiB``.

    Of cards that share a name, such as two sizes of one, it is the first that `CARDS` lists. "GB"
    is read as GiB, because makers of cards mean it so.

    Raises:
        InputError: for a name that no card has; it names the nearest.
    """
    if sized := _SIZE.fullmatch(shortened(text).lower()):
        number, unit = sized.groups()
        size = round(float(number) * (MiB if unit.startswith("m") else GiB))
        return card_of_size(size, "gpu", text)
    if text in CARDS:
        return CARDS[text]
    for key in _keys(text):
        if key in _index():
            return _index()[key]
    raise _unknown(text)


def card_of_size(size: int, field: str, given: object, name: str | None = None) -> Card:
    """A card of today with so many bytes.

    Raises:
        InputError: for a size that no card can have.
    """
    if not 0 < size <= LARGEST_GIB * GiB:
        raise InputError(field, given, f"must be above 0 and at most {LARGEST_GIB:,} GiB")
    name = f"{size / GiB:g}GiB" if name is None else name
    title = f"GPU with {size / GiB:g} GiB" if name else "GPU"
    return Card(name, title, size, TODAY.generation, capability=TODAY.capability)


def _unknown(text: str) -> InputError:
    import difflib  # only errors need it, and a page's start is short

    typed = next(_keys(text), "")
    near = difflib.get_close_matches(typed, _index(), n=6, cutoff=0.5)
    names = list(dict.fromkeys(_index()[key].name for key in near))[:3]
    hint = f"did you mean {' or '.join(repr(name) for name in names)}? " if names else ""
    rule = "must be a card as nvidia-smi or rocm-smi names it, or its memory, as in 20GiB"
    return InputError("gpu", text, hint + rule)


def _keys(text: str) -> Iterator[str]:
    """A name without words that all cards have, then without those of a kind.

    >>> list(_keys("NVIDIA A100-SXM4-80GB"))
    ['a100sxm480', 'a10080']
    """
    plain = _MAKERS.sub(" ", shortened(text).lower()).replace("max-q", "maxq")
    spaced = re.sub(r"(?<=\d)(?=gi?b\b)", " ", plain)
    words = [word for word in re.findall(r"[a-z0-9+]+", spaced) if word not in _COMMON_WORDS]
    yield "".join(words)
    yield "".join(word for word in words if not _KINDS.fullmatch(word))


@lru_cache(maxsize=1)
def _index() -> dict[str, Card]:
    """Cards by all their keys; where two share one, it is the first card's."""
    found: dict[str, Card] = {}
    spelled = [
        [(key, card) for key in dict.fromkeys(_keys(text))]
        for card in CARDS.values()
        for text in (card.name, *card.spellings, card.title, card.short)
    ]
    for place in (0, -1):  # a card's whole names go before what is left of another's
        for keys in spelled:
            found.setdefault(*keys[place])
    return found
