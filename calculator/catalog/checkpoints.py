"""Published checkpoints by their names on the Hugging Face Hub (`checkpoints.json`).

Each is a model type and the keys of its config.json that differ from the type's defaults and
affect the computation. The parameters are those of transformers' class, which a test builds.
Many more were trained from one of them and have its shape (`shapes.json`; sources: LitGPT's
config.py, and the cards of the models, which name what they were trained from).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from calculator.data import read_data


@dataclass(frozen=True, slots=True, eq=False)
class Checkpoint:
    """A published model.

    Attributes:
        name: as on the Hub.
        group: its heading in the page's list.
        kind: the ``model_type`` of its config.json.
        parameters: elements of all weights in the usual class for training, tied ones once.
        config: the keys of its config.json that differ from the type's defaults.
    """

    name: str
    group: str
    kind: str
    parameters: int
    config: Mapping[str, Any]

    @property
    def title(self) -> str:
        """The name without its owner."""
        return self.name.rpartition("/")[2]

    @property
    def values(self) -> dict[str, Any]:
        """Values of its config.json."""
        return {"model_type": self.kind, **self.config}


CHECKPOINTS: Final = {
    values["name"]: Checkpoint(**values) for values in read_data("catalog/checkpoints.json")
}
SAME_SHAPE: Final[Mapping[str, str]] = read_data("catalog/shapes.json")
