"""The figures of each choice as HTML, by the places of the page that have them."""

from itertools import groupby
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from calculator.parts import Part, Phase
from calculator.planner.need import need_of
from calculator.units import format_bytes
from templates.pages.numbers import sentences
from templates.pages.numbers.choices import Choice, choices
from templates.pages.numbers.curves import pictures
from templates.pages.numbers.one_layer import kept_by_one_layer
from templates.pages.numbers.savings import MICRO_BATCH, plain_state, techniques
from templates.pieces.comparisons import Recorded
from templates.pieces.counted import count

FOLDER: Final = Path(__file__).parent
TEMPLATE: Final = "figures.html.j2"
# macros of the template, which the page names in its attributes `data-figures`
PLACES: Final = (
    *("peak", "plan", "parts", "layer", "curve", "phases"),
    *("changes", "savings", "overhead"),
)
Figures = dict[str, str]


def all_figures() -> dict[str, Figures]:
    """The figures by the name of the choice, as recorded."""
    return {name: each for one in MEMORY.results() for name, each in one.items()}


def _by_model() -> list[list[Choice]]:
    return [[*group] for _, group in groupby(choices(), lambda choice: choice.model.name)]


def _of_model(asked: list[Choice]) -> dict[str, Figures]:
    """The figures of a model's choices, which share recorded steps."""
    return {choice.name: figures(choice) for choice in asked}


MEMORY = Recorded("memory", _of_model, _by_model)


def figures(choice: Choice) -> Figures:
    """The HTML of each of `PLACES`, in one line."""
    environment = Environment(
        loader=FileSystemLoader(FOLDER), undefined=StrictUndefined, autoescape=False
    )
    template = environment.get_template(TEMPLATE).make_module(_context(choice))
    return {place: " ".join(getattr(template, place)().split()) for place in PLACES}


def _context(choice: Choice) -> dict[str, Any]:
    plain, *changed = pictures(choice)
    report = plain.counted.report
    need, phases = need_of(report), report.phases
    loss_lift = phases[Phase.LOSS].total - phases[Phase.FORWARD].total
    return {
        "choice": choice,
        "plain": plain,
        "changed": changed,
        "report": report,
        "all_parts": list(Part),
        "sizes": plain.counted.parts,
        "layer_kept": kept_by_one_layer(choice),
        "verdict": need.verdict(choice.card.memory),
        "need": need,
        "loss_lift": loss_lift,
        "micro_batch": MICRO_BATCH,
        "batch_peak": count(**plain_state(choice)).peak,
        "techniques": techniques(choice),
        "say": sentences,
        "size": format_bytes,
    }
