"""The page's only interface: a request as JSON text in, an answer as JSON text out.

A question is ``{"id", "method", "params"}``; the answer is ``{"id", "kind": "result", "value"}`` or
``{"id", "kind": "error", "error": {"type", "field", "message"}}``; the error of a bad value
also has ``value`` and ``rule``, of which a page makes a sentence with its own label. Question and
answer are JSON in the strict sense: neither has NaN or Infinity.
"""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, Final

from calculator.architecture import Architecture
from calculator.catalog import GPUS, MODELS, groups
from calculator.errors import InputError, unknown_name
from calculator.estimate import estimate
from calculator.nesting import DEEPEST, is_too_deep
from calculator.page.advice import advise
from calculator.page.answer import answer, glance
from calculator.page.states import Params, architecture_of
from calculator.plan import Plan
from calculator.planner.need import judged
from calculator.units import format_bytes, format_count
from calculator.way_out import WayOutError

# in characters; a pasted config.json travels in a request, and some list thousands of labels
LONGEST_REQUEST: Final = 4_000_000
LONGEST_ID: Final = 100


def handle(request: str) -> str:
    """Answer one request; a request that cannot be answered gets an error, never a traceback.

    A mistake in the question is an ``InputError``; a mistake of ours is an ``InternalError``, whose
    trace goes to standard error.
    """
    question_id: str | int | None = None
    try:
        question = _read(request)
        question_id = _question_id(question)
        value = _method(question)(_params(question))
        return _json({"id": question_id, "kind": "result", "value": value})
    except InputError as error:
        return _refusal(question_id, error)
    except Exception:  # the page's only door: whatever fails behind it, the page gets an answer
        import traceback

        traceback.print_exc()
        message = "The calculator failed on this request. The bug is ours, not yours."
        return _error(question_id, {"type": "InternalError", "field": None, "message": message})


def _read(request: str) -> Params:
    """The question as an object."""
    if len(request) > LONGEST_REQUEST:
        rule = f"must have at most {LONGEST_REQUEST:,} characters"
        raise InputError("request", f"{len(request):,} characters", rule)
    if is_too_deep(request):
        rule = f"must not nest more than {DEEPEST} objects and lists"
        raise InputError("request", request, rule)
    try:
        question = json.loads(request, parse_constant=_refuse_constant, parse_float=_finite)
    except InputError:
        raise
    except ValueError as error:
        raise InputError("request", request, f"must be JSON: {error}") from None
    if not isinstance(question, dict):
        raise InputError("request", question, 'must be an object with "id", "method" and "params"')
    return question


def _refuse_constant(name: str) -> float:
    raise InputError("request", name, "must be JSON, which has no such number")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise InputError("request", text, "must have numbers below 1.8e308")
    return number


def _question_id(question: Params) -> str | int | None:
    found = question.get("id")
    if found is None or (isinstance(found, int) and not isinstance(found, bool)):
        return found
    if isinstance(found, str) and len(found) <= LONGEST_ID:
        return found
    rule = f"must be a whole number, a text of at most {LONGEST_ID} characters, or null"
    raise InputError("id", found, rule)


def _method(question: Params) -> Callable[[Params], Any]:
    name = question.get("method")
    if not isinstance(name, str) or name not in _METHODS:
        raise unknown_name("method", name, _METHODS)
    return _METHODS[name]


def _params(question: Params) -> Params:
    params = question.get("params")
    if params is None:
        return {}
    if not isinstance(params, dict):
        raise InputError("params", params, "must be an object of names and values")
    return params


def _json(value: object) -> str:
    return json.dumps(value, allow_nan=False)


def _refusal(question_id: str | int | None, error: InputError) -> str:
    details = {"message": str(error), "value": error.value, "rule": error.rule}
    way = {"way_out": error.link} if isinstance(error, WayOutError) else {}
    return _error(question_id, {"type": "InputError", "field": error.field, **details, **way})


def _error(question_id: str | int | None, error: Mapping[str, object]) -> str:
    return _json({"id": question_id, "kind": "error", "error": error})


def models(_: Params) -> list[dict[str, str]]:
    """The table of all models at the default plan, as texts."""
    return [_model_row(architecture) for architecture in MODELS.values()]


def _model_row(architecture: Architecture) -> dict[str, str]:
    report = estimate(architecture)
    return {
        "name": architecture.name,
        "title": architecture.title,
        "parameters": format_count(report.parameters),
        "tokens": format_count(report.plan.sequence_length),
        "weights": format_bytes(report.gpu.weights),
        "peak": format_bytes(report.gpu.total),
        "phase": str(report.peak_phase),
    }


def describe(_: Params) -> dict[str, Any]:
    """The options, models and GPUs that can be chosen."""
    return {
        "options": [option.as_json() for option in Plan.options().values()],
        "models": [
            {"name": model.name, "title": model.title, "group": group}
            for group, found in groups().items()
            for model in found
        ],
        "gpus": [asdict(gpu) for gpu in GPUS.values()],
    }


def report_only(params: Params) -> dict[str, Any]:
    """The object of ``python -m calculator estimate MODEL --json``."""
    options = {name: value for name, value in params.items() if name not in ("model", "config")}
    return judged(architecture_of(params), Plan.parse(options)).as_json()


def step_curve(params: Params) -> dict[str, Any]:
    """The memory of a whole step over its operations, see `page.curve.draw_curve`."""
    from calculator.page.curve import draw_curve  # for those who open the figure

    return draw_curve(params)


def frontier(params: Params) -> dict[str, Any]:
    """The largest micro-batch at each length, see `page.frontier.draw_frontier`."""
    from calculator.page.frontier import draw_frontier  # for those who open the figure

    return draw_frontier(params)


def code(params: Params) -> dict[str, Any]:
    """The program of a plan, see `page.program.show_program`."""
    from calculator.page.program import show_program  # for those who open it

    return show_program(params)


def explain(params: Params) -> dict[str, Any]:
    """A pasted out-of-memory message beside a plan, see `page.message.explain_message`."""
    from calculator.page.message import explain_message  # for those who have one

    return explain_message(params)


def check(params: Params) -> list[dict[str, Any]]:
    """Files that configure a training, see `doors.page.check_on_page`."""
    try:
        from calculator.doors.page import check_on_page  # a page fetches it for those who have one
    except ImportError:
        rule = "cannot be read now, for their readers did not load: try again"
        raise InputError("files", "", rule) from None
    return check_on_page(params)


def plan(params: Params) -> dict[str, Any]:
    """The forecast of a run of volunteers, see `page.run.plan_run`."""
    from calculator.page.run import plan_run  # the planner's page alone asks for it

    return plan_run(params)


_METHODS: Final[dict[str, Callable[[Params], Any]]] = {
    "answer": answer,
    "glance": glance,
    "advise": advise,
    "curve": step_curve,
    "frontier": frontier,
    "code": code,
    "explain": explain,
    "check": check,
    "estimate": report_only,
    "models": models,
    "describe": describe,
    "plan": plan,
}
