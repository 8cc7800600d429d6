"""The origin of a program's model: the Hub, or a config.json."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from calculator.architecture import Architecture
from calculator.catalog import MODELS, find_model
from calculator.configuration import Configuration
from calculator.errors import InputError
from calculator.hf_config import from_config, text_model
from calculator.models.registry import TYPES, type_of

# Names on the Hub of the models that have short names here.
ON_THE_HUB: Final[dict[str, str]] = {
    "bert-base": "google-bert/bert-base-uncased",
    "bert-large": "google-bert/bert-large-uncased",
    "t5-small": "google-t5/t5-small",
    "t5-base": "google-t5/t5-base",
    "t5-large": "google-t5/t5-large",
    "t5-3b": "google-t5/t5-3b",
    "t5-11b": "google-t5/t5-11b",
    "gpt2-s": "openai-community/gpt2",
    "gpt2-m": "openai-community/gpt2-medium",
    "gpt2-l": "openai-community/gpt2-large",
    "gpt2-xl": "openai-community/gpt2-xl",
    "gpt-j-6b": "EleutherAI/gpt-j-6b",
}


@dataclass(frozen=True, slots=True, eq=False)
class Origin:
    """A model, and what a program loads it by.

    Attributes:
        hub: its name on the Hub; empty where it has none.
        path: of its config.json; empty where it has none.
        values: the keys of its config.json, `model_type` among them; none for our own class.
    """

    architecture: Architecture
    hub: str
    path: str
    values: Mapping[str, Any]

    @property
    def dropouts(self) -> list[str]:
        """The keys of a config.json that a plan's dropout sets."""
        read = Configuration(self.values)
        TYPES[self.architecture.family].read(read, self.architecture.name)
        return sorted(read.dropouts)

    @property
    def folder(self) -> str:
        """The folder that holds the config.json, where pretrained weights would be, too."""
        if not self.path.endswith(".json"):
            return self.path
        return self.path.replace("\\", "/").rpartition("/")[0] or "."


def origin_of(name: str) -> Origin:
    """A model of the catalog.

    Raises:
        InputError: for a name that it does not have.
    """
    architecture = find_model(name)
    from calculator.catalog.checkpoints import CHECKPOINTS  # on first use, as the catalog does

    hub = ON_THE_HUB.get(name, "" if name in MODELS else name)
    if hub:
        return Origin(architecture, hub, "", CHECKPOINTS[hub].values)
    return Origin(architecture, "", "", type_of(architecture).values(architecture))


def origin_at(path: str, values: Mapping[str, Any], name: str = "") -> Origin:
    """The model that a config.json's values describe; `name` is shown for it.

    Raises:
        InputError: for a model that the calculator cannot count, or no program can load.
    """
    architecture = from_config(values, name or path)
    return Origin(architecture, "", path, loaded_values(values))


def loaded_values(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """The values of the model that a program loads by a config.json.

    Raises:
        InputError: for a part of a larger model that no class loads alone.
    """
    found = text_model(values)
    if found is not values and not TYPES[str(found["model_type"])].is_inner:
        rule = "no program is written for a part of it: give a config.json of its text model alone"
        raise InputError("model_type", values.get("model_type"), rule)
    return found
