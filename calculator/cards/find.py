"""The card that a name means, as tools print it and people type it."""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from calculator.cards.card import Card
from calculator.cards.known import CARDS
from calculator.cards.services import SERVICES
from calculator.errors import InputError, shortened
from calculator.units import GiB, MiB

LARGEST_GIB: Final = 10_000
# a card that is known by its memory alone is taken for one of today
TODAY: Final = CARDS["rtx-4090"]
_SIZE: Final = re.compile(
    r"\s*(\d{1,9}(?:\.\d{1,9})?)\s*(gib|gb|g|mib|mb)\s*(?:of\s+)?(?:v?ram|memory|gpu)?\s*", re.ASCII
)
# words around a card's name that tell no card from another
_MAKERS: Final = re.compile(r"nvidia|geforce|tesla|amd|instinct|radeon|apple|macbook (?:pro|air)")
_COMMON_WORDS: Final = (
    *("corporation", "graphics", "gpu", "generation", "edition", "workstation", "with"),
    *("gb", "gib", "vram", "desktop", "founders", "colab", "kaggle", "free"),
    *("mac", "macbook", "studio", "mini", "imac"),
)
# cards of rented machines, by the kinds that Amazon and Google name them by
_RENTED: Final = {
    "g4dn": "t4", "g5": "a10g", "g6": "l4", "g6e": "l40s", "p3": "v100-16", "p3dn": "v100-32",
    "p4d": "a100-40", "p4de": "a100-80", "p5": "h100", "p5e": "h200", "p5en": "h200",
    "p6-b200": "b200", "p6-b300": "b300", "g2-standard": "l4", "a2-highgpu": "a100-40",
    "a2-ultragpu": "a100-80", "a3-highgpu": "h100", "a3-ultragpu": "h200", "a4-highgpu": "b200",
}  # fmt: skip
_MACHINE: Final = re.compile(rf"(?:ml\.)?({'|'.join(_RENTED)})[.-]\d*\w+")
# what computes, but is not a GPU of these makers; part of a GPU; and several GPUs
_OTHERS: Final = re.compile(
    r"\b(?:tpu|trainium|trn\d|inferentia|inf\d|gaudi|npu|hpu|cpu|arc|intel|xpu|jetson|ascend)"
)
_SLICE: Final = re.compile(r"\d+g\.(\d+)gb")
_SEVERAL: Final = re.compile(
    r"(?:(\d{1,3})\s*[x*]\s*|dual\s+)([a-z].*|\d{3}.*)|(.+?)\s*[x*]\s*(\d{1,3})", re.DOTALL
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
    if machine := _MACHINE.fullmatch(shortened(text).lower()):
        return CARDS[_RENTED[machine[1]]]
    found = _known(text)
    if found is None:
        raise _unknown(text)
    return found


def _known(text: str) -> Card | None:
    return next((_index()[key] for key in _keys(text) if key in _index()), None)


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
    return InputError("gpu", text, _what_it_is(shortened(text).lower().strip()) or _nearest(text))


def _what_it_is(typed: str) -> str:
    """The rule for what is no card's name; empty where nobody knows what it is."""
    if (several := _SEVERAL.fullmatch(typed)) and (card := _known(several[2] or several[3])):
        number = several[1] or several[4] or 2
        return f"names {number} cards: give one, {card.name}, and their number as --gpus {number}"
    if part := _SLICE.search(typed):
        return f"is part of a card (MIG): give its memory, {part[1]}GiB"
    if typed.isdigit():
        return f"is a number: give a card's memory with its unit, as in {typed}GiB"
    for service in SERVICES:
        if service.name.lower() in typed:
            names = [card.name for card in CARDS.values() if service.name in card.note]
            return f"lends cards: give the one you have, such as {' or '.join(names)}"
    if _OTHERS.search(typed):
        return (
            "is not counted: its memory is not that of PyTorch on NVIDIA's, AMD's or Apple's GPUs. "
            "Give a card of theirs, or a size such as 16GiB"
        )
    return ""


def _nearest(text: str) -> str:
    """The rule with the nearest names, of those that have a number that was typed."""
    import difflib  # only errors need it, and a page's start is short

    typed, numbers = next(_keys(text), ""), _numbers(text)
    near = difflib.get_close_matches(typed, _index(), n=9, cutoff=0.6)
    names = list(dict.fromkeys(_index()[key].name for key in near))
    hit = [name for name in names if numbers & _numbers(name)]
    if not hit:
        near = difflib.get_close_matches(typed, near, cutoff=0.8)
        hit = list(dict.fromkeys(_index()[key].name for key in near))
    hint = f"did you mean {' or '.join(repr(name) for name in hit[:3])}? " if hit else ""
    return hint + "must be a card as nvidia-smi or rocm-smi names it, or its memory, as in 20GiB"


def _numbers(text: str) -> set[str]:
    return set(re.findall(r"\d+", text))


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
