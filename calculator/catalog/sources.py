"""Sources of formulas and figures (`sources.json`)."""

from dataclasses import dataclass
from typing import Final

from calculator.data import read_data


@dataclass(frozen=True, slots=True)
class Source:
    """Source of a formula or figure."""

    title: str
    address: str


SOURCES: Final = {
    name: Source(*values) for name, values in read_data("catalog/sources.json").items()
}
