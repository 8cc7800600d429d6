"""The table of memory kept by one layer of each model, read from the calculator's tapes."""

from dataclasses import dataclass

from calculator.catalog import find_model
from calculator.peaks.kept import kept_by_layer
from calculator.plan import Plan, Precision

# One model of each family; T5's row is a layer of its encoder.
MODELS = ("bert-base", "t5-large", "gpt2-s", "gpt-j-6b", "dalle-together")
PRECISIONS = (Precision.FP32, Precision.AMP, Precision.HALF)
SYMBOLS = {"N d": "N·d", "N h": "N·h", "B h E": "N·h"}


@dataclass(frozen=True, slots=True)
class LayerRow:
    """Bytes kept by a layer with eager attention and with a fused kernel, in each precision."""

    title: str
    eager: tuple[str, ...]
    fused: tuple[str, ...]

    @property
    def eager_cells(self) -> tuple[str, ...]:
        """The table's row for eager attention."""
        return (self.title, *self.eager)

    @property
    def fused_cells(self) -> tuple[str, ...]:
        """The table's row for a fused kernel."""
        return (self.title, *self.fused)


def rows() -> list[LayerRow]:
    """One row per model, with formulas in bytes as texts."""
    return [
        LayerRow(
            find_model(name).title,
            tuple(_formula(name, precision, "eager") for precision in PRECISIONS),
            tuple(_formula(name, precision, "sdpa") for precision in PRECISIONS),
        )
        for name in MODELS
    ]


def _formula(name: str, precision: Precision, attention: str) -> str:
    model = find_model(name)
    options: dict[str, object] = {
        "batch_size": 2,
        "precision": precision,
        "attention": attention,
        "reversible": False,
        "sharing_groups": model.layers,
    }
    terms = kept_by_layer(model, Plan.parse(options))
    return " + ".join(f"{count} {SYMBOLS.get(term, term)}" for term, count in terms.items())
