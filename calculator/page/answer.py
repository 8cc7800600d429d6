"""Every figure that the calculator's page shows for one state of its form."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from itertools import product
from typing import Any, Final
from urllib.parse import urlencode

from calculator.architecture import Architecture
from calculator.catalog import Gpu
from calculator.clock import why_untimed
from calculator.command import command_for
from calculator.errors import InputError
from calculator.estimate import estimate
from calculator.laws import RefusedError
from calculator.options import as_text
from calculator.page.beside import describe_beside, pin, pinned
from calculator.page.figures import figures
from calculator.page.states import (
    JOB,
    Params,
    architecture_of,
    chosen,
    gpu_of,
    plan_of,
    read_state,
)
from calculator.page.training import training_sentences
from calculator.plan import DataParallel, Plan, techniques
from calculator.planner.need import Verdict, by_bounds, describe_need, judged, need_of
from calculator.presets import FIELD, preset_named
from calculator.report import Report
from calculator.resolution import plain_value, resolve, without_techniques
from calculator.way_out import WayOutError, described, offering, value_in_words

# figures of a report that the simulated allocator gives
OF_THE_ALLOCATOR: Final = ("allocated", "reserved", "used", "overhead", "low", "high")
OWN_CHOICES: Final = "No preset: your own choices, from PyTorch's defaults."


def answer(params: Params) -> dict[str, Any]:
    """Every figure that the calculator's page shows for one state of its form."""
    value, report, baseline = _counted(params, judged)
    value["monitor"] = {"report": _monitor(report), "baseline": _monitor(baseline)}
    value["verdict"] = verdict_on(report, report.plan.card)
    value["refused"] = _refused(params)
    value["figures"] = figures(value)
    return value


def glance(params: Params) -> dict[str, Any]:
    """The figures that take no longer than a frame: without a simulation, or a search for refusals.

    It has a verdict where the peak alone decides it.
    """
    value, report, _ = _counted(params, _cached)
    for side, name in product(("report", "baseline"), OF_THE_ALLOCATOR):
        del value[side]["gpu"][name]
    known = by_bounds(report.plan, report.gpu.total)
    value["monitor"], value["verdict"] = None, known and _in_parts(*known)
    value["figures"] = figures(value)
    return value


def _counted(
    params: Params, count: Callable[[Architecture, Plan], Report]
) -> tuple[dict[str, Any], Report, Report]:
    """The values that both have, the report, and that of the second column."""
    architecture, plan, gpu = read_state(params)
    try:
        with offering(architecture, plan):
            report = count(architecture, plan)
    except WayOutError as error:
        near = plan.but(**error.changes)
        query = urlencode(chosen(architecture, near, params))
        error.link = {"words": described(error.changes), "query": query}
        raise
    untimed = list(why_untimed(report.plan))
    without = without_techniques(architecture, plan)
    is_plain = resolve(architecture, without) == report.plan
    plain = report if is_plain else count(architecture, without)
    state = chosen(architecture, plan, params)
    preset = preset_named(state.get(FIELD))
    shown, other, baseline = (architecture, report.plan, gpu), pinned(params), plain
    if other:
        baseline = count(other[0], other[1])
        other = other[0], baseline.plan, other[2]
    value: dict[str, Any] = {
        "title": architecture.title,
        "report": report.as_json(),
        "baseline": baseline.as_json(),
        "plain_peak": plain.gpu.total,
        "is_plain": other is None and is_plain,
        "beside": describe_beside(shown, other),
        "savings": _savings(architecture, plan, report),
        "longest": architecture.sequence_length,
        "gpu": {"key": gpu.name, "name": gpu.title, "memory": gpu.memory},
        "time": report.seconds.words if report.seconds else " ".join(untimed),
        "training": training_sentences(report, params),
        "job": {name: state.get(name, "") for name in JOB},
        "evidence": report.evidence.words,
        "notes": [note for note in report.notes if note not in untimed],
        "command": command_for(architecture, plan, preset),
        "preset": preset.words if preset else OWN_CHOICES,
        "changed": in_words(state),
        "pin": pin(architecture, plan, params),
        "query": urlencode(state),
    }
    return value, report, baseline


def in_words(state: Mapping[str, object]) -> dict[str, str]:
    """The options of a state, in words: they differ from the defaults, or from the preset's."""
    options = Plan.options()
    return {
        name: f"{options[name].label}: {value_in_words(options[name].parse(value))}"
        for name, value in state.items()
        if name in options
    }


@lru_cache(maxsize=64)
def _cached(architecture: Architecture, plan: Plan) -> Report:
    return estimate(architecture, plan)


def _savings(architecture: Architecture, plan: Plan, report: Report) -> list[dict[str, Any]]:
    """For each technique in use: the peak without it minus the peak with it.

    There is no row for a technique that another one needs: the laws refuse the step without it. RAM
    includes all paged states, as on a GPU without room for them.
    """
    found = []
    for option in techniques():
        plain = plain_value(architecture, option.field)
        if not _in_use(report.plan, option.field, plain):
            continue
        try:
            without = _cached(architecture, _replace(plan, option.field, plain))
        except RefusedError:
            continue
        found.append(
            {
                "option": option.field,
                "label": option.label,
                "gpu": without.gpu.total - report.gpu.total,
                "ram": without.ram.total + without.paged - report.ram.total - report.paged,
            }
        )
    return found


def _in_use(plan: Plan, field: str, plain: object) -> bool:
    match field:
        case "optimizer_bits":
            return plan.optimizer_bits == 8
        case "data_parallel":
            return plan.replicas > 1 and plan.data_parallel is not DataParallel.DDP
        case _:
            return bool(getattr(plan, field) != plain)


def _replace(plan: Plan, field: str, value: object) -> Plan:
    """The plan with another value, and without what needs the option's own."""
    without = {option.field: None for option in techniques() if option.needs == field}
    values = {name: getattr(plan, name) for name in Plan.options()}
    return Plan.parse({**values, field: value, **without}).on(plan.card)


def _refused(params: Params) -> dict[str, dict[str, str]]:
    """By option, the values that a law forbids beside the other choices, each with the rule.

    A value stays on offer whose refusal would name another option to change.
    """
    architecture, gpu = architecture_of(params), gpu_of(params)
    found: dict[str, dict[str, str]] = {}
    for name, option in Plan.options().items():
        flags = (True, False) if option.kind == "flag" else ()
        for value in flags or [value for value, _ in option.values]:
            try:
                resolve(architecture, plan_of(architecture, gpu, {**params, name: value}))
            except RefusedError as error:
                if error.field == name and not error.out:
                    found.setdefault(name, {})[as_text(value)] = error.rule
            except InputError:
                continue
    return found


def _monitor(report: Report) -> dict[str, int]:
    """The figure that a monitor such as nvidia-smi would show: what is needed, peak and overhead.

    With paged states, while all of them are on the GPU; without any of them at the least.
    """
    need = need_of(report)
    return {
        "needed": need.typical,
        "shown": need.typical + need.paged,
        "low": need.low,
        "high": need.high + need.paged,
    }


def verdict_on(report: Report, gpu: Gpu) -> dict[str, str]:
    """The verdict, and the sum behind it."""
    need = need_of(report)
    return _in_parts(need.verdict(gpu.memory), describe_need(need, gpu))


def _in_parts(verdict: Verdict, reason: str) -> dict[str, str]:
    words = f"{verdict.capitalize()}."
    return {"state": verdict.value, "words": words, "sum": reason, "text": f"{words} {reason}"}
