"""Published steps that the clock is tried on, and not fitted on: other programs, and more GPUs."""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Final

from calculator.architecture import Architecture
from calculator.autograd.ledger import ALL_REDUCE
from calculator.cards import Card, find_card
from calculator.clock import Work
from calculator.clock.links import Traffic, traffic
from calculator.estimate import estimate
from calculator.plan import Plan
from calculator.report import Phase
from calculator.techniques.collectives import Collective
from calculator.techniques.pipeline import MOST_MICRO_BATCHES
from validation.subject import find_subject

PATH: Final = Path(__file__).with_name("published") / "seconds.toml"
CONFIGS: Final = PATH.with_name("configs")


@dataclass(frozen=True, slots=True)
class Timed:
    """A published step: where from, on which card, its work, and the seconds measured.

    `differs` says why it stands apart: what its program does that the calculator does not count, or
    what was chosen after it had been seen.
    """

    source: str
    words: str
    card: Card
    work: Work
    measured: float
    differs: str = ""


def published() -> Iterator[Timed]:
    """All rows of the file."""
    for source in tomllib.loads(PATH.read_text("utf-8"))["source"]:
        for row in source["rows"]:
            card = _changed(find_card(row.get("card", source["card"])), source)
            plan = Plan.parse(source["options"] | row["options"]).on(card)
            model = _model(row["model"])
            work = _with_copies(model, plan, row.get("copies", 1))
            measured = _seconds(row, model, plan)
            differs = source.get("differs", "")
            yield Timed(source["key"], row["model"], card, work, measured, differs)


def _changed(card: Card, source: Mapping[str, Any]) -> Card:
    """The card with the source's own memory and power limit.

    A chip below its maker's limit keeps more of its clock than of its power, which goes with the
    clock's cube: it lowers the voltage with it (Hennessy and Patterson, section 1.5). The clock's
    law takes watts for a rate.
    """
    share = source.get("watts", card.watts) / card.watts
    bandwidth = source.get("bandwidth", card.bandwidth)
    return replace(card, watts=card.watts * share ** (1 / 3), bandwidth=bandwidth)


def _model(name: str) -> Architecture:
    path = CONFIGS / f"{name}.json"
    return find_subject(str(path) if path.exists() else name, None).architecture


def _seconds(row: Mapping[str, Any], model: Architecture, plan: Plan) -> float:
    """Seconds of a step; from tokens a second on each GPU, or by equation 3 of Narayanan et al."""
    if "seconds" in row:
        return float(row["seconds"])
    tokens = plan.batch_size * plan.sequence_length * plan.accumulation
    if "tokens" in row:
        return tokens / plan.sharing_gpus / float(row["tokens"])
    width, layers = model.numbers["hidden_size"], model.layers
    words = model.numbers["vocabulary_size"] / (16 * layers * width)
    flops = 96 * tokens * layers * width**2 * (1 + plan.sequence_length / (6 * width) + words)
    return flops / plan.sharing_gpus / float(row["teraflops"]) / 1e12


def _with_copies(model: Architecture, plan: Plan, copies: int) -> Work:
    """The work of a step of several copies of a divided model, which the calculator does not count.

    Megatron sums their gradients after the last micro-batch.
    """
    few = plan.pipeline_parallel
    is_long = plan.accumulation > MOST_MICRO_BATCHES
    report = estimate(model, plan.but(accumulation=few) if is_long else plan)
    work = report.work
    if is_long:
        more = min(2 * few, MOST_MICRO_BATCHES)
        other = estimate(model, plan.but(accumulation=more)).work
        work = _extended(work, other, (plan.accumulation - few) / (more - few))
        work = replace(work, bubble=work.bubble * few / plan.accumulation)
    gradients = report.phases[Phase.UPDATE].gradients
    summed = traffic([Collective(ALL_REDUCE, (gradients,))], plan.but(gpus=plan.all_gpus * copies))
    return replace(work, waited=_added(work.waited, summed))


def _extended(work: Work, longer: Work, often: float) -> Work:
    """The work of more micro-batches than are counted: what the longer one has more, so often."""
    counts = {
        item.name: one + round(often * (getattr(longer, item.name) - one))
        for item in fields(Work)
        if isinstance(one := getattr(work, item.name), int)
    }
    waited = _added(_added(work.waited, longer.waited, often), work.waited, -often)
    return replace(work, **counts, waited=waited)


def _added(one: Traffic, other: Traffic, often: float = 1.0) -> Traffic:
    return Traffic(one.near + often * other.near, one.far + often * other.far)
