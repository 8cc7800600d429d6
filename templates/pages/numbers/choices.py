"""The models and GPUs that a reader of 'Where the memory goes' can choose."""

from dataclasses import dataclass, field
from typing import Final

from calculator.architecture import Architecture
from calculator.cards import CARDS, Card
from calculator.catalog import find_model
from templates.pages.how_it_works.context import RUN, UNSHARED

# Models of several kinds: decoders, encoders, both, and the run's own. The first is the default.
NAMES: Final = (
    "gpt2-l",
    "meta-llama/Llama-3.2-1B",
    "Qwen/Qwen3-0.6B",
    "Qwen/Qwen3-8B",
    "answerdotai/ModernBERT-base",
    "bert-large",
    "t5-large",
    RUN["model"],
)
GPUS: Final = ("t4", "rtx-3060", "rtx-4090", "a100-80")


@dataclass(frozen=True, slots=True)
class Choice:
    """A model on a GPU.

    Attributes:
        model: its sizes.
        card: the GPU.
        options: what its plan changes of the calculator's default.
    """

    model: Architecture
    card: Card
    options: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of the file with its figures, as the page's script puts it together."""
        return f"{self.model.name.rpartition('/')[2]}.{self.card.name}"

    @property
    def state(self) -> dict[str, str]:
        """The state of the calculator."""
        return {"model": self.model.name, "gpu": self.card.name, **self.options}

    @property
    def is_of_the_run(self) -> bool:
        """True for the run's model, which is counted without what saved it memory."""
        return self.model.name == RUN["model"]


def choices() -> list[Choice]:
    """Each model on each GPU, the default first."""
    plain_run = {k: v for k, v in RUN.items() if k != "model"} | {"sharing_groups": UNSHARED}
    options = {RUN["model"]: plain_run}
    models = [(find_model(name), options.get(name, {})) for name in NAMES]
    return [Choice(model, CARDS[gpu], changed) for model, changed in models for gpu in GPUS]
