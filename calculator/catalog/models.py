"""The project's original models, by their short names (`models.json`), and their headings."""

from typing import Any, Final

from calculator.architecture import Architecture
from calculator.data import read_data

_FAMILIES: Final[list[dict[str, Any]]] = read_data("catalog/models.json")
MODELS: Final = {
    values["name"]: Architecture(**family["shared"], **values)
    for family in _FAMILIES
    for values in family["models"]
}
GROUPS: Final[dict[str, tuple[str, ...]]] = {
    family["group"]: tuple(values["name"] for values in family["models"]) for family in _FAMILIES
}
