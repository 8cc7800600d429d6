"""Data for 'Formulas and sources': the formulas' docstrings, the models, the sources."""

from calculator.autograd import operations
from calculator.catalog import MODELS, SOURCES
from calculator.estimate import estimate
from calculator.units import format_count
from templates.pages.formulas import layer_formulas
from templates.pieces.docstrings import chapters, summaries


def notes() -> dict[str, list[str]]:
    """The models' notes, each once, with the titles of the models that have it."""
    found: dict[str, list[str]] = {}
    for model in MODELS.values():
        if model.note:
            found.setdefault(model.note, []).append(model.title)
    return found


def context() -> dict[str, object]:
    """The names that `page.md.j2` uses."""
    counts = {name: estimate(model).parameters for name, model in MODELS.items()}
    return {
        "chapters": chapters(),
        "operations": summaries(operations),
        "layer_rows": layer_formulas.rows(),
        "models": MODELS.values(),
        "parameters": {name: format_count(count) for name, count in counts.items()},
        "notes": notes(),
        "sources": SOURCES,
    }
