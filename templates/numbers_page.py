"""What 'How the numbers are made' needs: the formulas' docstrings, the models, the sources."""

from calculator import operations
from calculator.catalog import MODELS, SOURCES
from calculator.units import format_count
from templates.calculator_page import MOMENTS, PARTS, ask
from templates.docstrings import chapters, summaries


def notes() -> dict[str, list[str]]:
    """The models' notes, each once, with the titles of the models that have it."""
    found: dict[str, list[str]] = {}
    for model in MODELS.values():
        if model.note:
            found.setdefault(model.note, []).append(model.title)
    return found


def context() -> dict[str, object]:
    """The names that `pages/numbers.md.j2` uses."""
    counts = {name: ask("answer", model=name)["report"]["parameters"] for name in MODELS}
    return {
        "chapters": chapters(),
        "operations": summaries(operations),
        "models": MODELS.values(),
        "parameters": {name: format_count(count) for name, count in counts.items()},
        "notes": notes(),
        "moments": MOMENTS,
        "parts": PARTS,
        "sources": SOURCES,
    }
