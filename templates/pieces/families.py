"""The types of the models under short titles, and what was measured of each."""

from collections.abc import Iterable
from functools import lru_cache
from typing import Protocol, TypeVar

from calculator.catalog import MODELS
from calculator.catalog.models import GROUPS as MODEL_GROUPS

OTHER_TYPES = "Other types"


@lru_cache(maxsize=1)
def families() -> dict[str, str]:
    """The types of the models with short names, under the titles of their groups."""
    found: dict[str, list[str]] = {}
    for title, (first, *_) in MODEL_GROUPS.items():
        found.setdefault(MODELS[first].family, []).append(title)
    return {family: " and ".join(titles) for family, titles in found.items()}


class OfFamily(Protocol):
    """Something measured or published of one model."""

    @property
    def family(self) -> str:
        """The model's type."""


Item = TypeVar("Item", bound=OfFamily)


def by_family(items: Iterable[Item]) -> list[tuple[str, list[Item]]]:
    """The items of each family that has some, under its title; those of all other types last."""
    titles = families()
    groups: dict[str, list[Item]] = {title: [] for title in (*titles.values(), OTHER_TYPES)}
    for item in items:
        groups[titles.get(item.family, OTHER_TYPES)].append(item)
    return [(title, members) for title, members in groups.items() if members]
