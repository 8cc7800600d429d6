"""The page's only door: a question as JSON text in, an answer as JSON text out.

A question is ``{"id", "method", "params"}``; the answer is ``{"id", "kind": "result", "value"}`` or
``{"id", "kind": "error", "error": {"type", "field", "message"}}``.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from functools import lru_cache
from typing import Any, Final
from urllib.parse import urlencode

from calculator.architecture import Architecture
from calculator.catalog import GPUS, MODELS, Gpu, find_gpu, find_model
from calculator.command import command_for
from calculator.errors import InputError, unknown_name
from calculator.estimate import MemoryReport, estimate
from calculator.techniques import (
    OPTIONS,
    Plan,
    attention_kernels,
    can_untie,
    plain_value,
    resolve,
    techniques,
    without_techniques,
)
from calculator.units import GiB, format_bytes, format_count

DEFAULT_MODEL: Final = "gpt2-l"
DEFAULT_GPU: Final = "t4"
LARGEST_GPU_GIB: Final = 10_000

Params = Mapping[str, object]


def handle(request: str) -> str:
    """Answer one question; a question that cannot be answered gets an error, never a trace."""
    question_id = None
    try:
        question = json.loads(request)
        question_id = question.get("id")
        method = _METHODS.get(question.get("method"))
        if method is None:
            raise unknown_name("method", question.get("method"), _METHODS)
        value = method(question.get("params") or {})
    except InputError as error:
        return _error(question_id, "InputError", error.field, str(error))
    except (ValueError, AttributeError, TypeError) as error:
        return _error(question_id, type(error).__name__, "request", f"request: {error}")
    return json.dumps({"id": question_id, "kind": "result", "value": value})


def _error(question_id: object, kind: str, field: str, message: str) -> str:
    error = {"type": kind, "field": field, "message": message}
    return json.dumps({"id": question_id, "kind": "error", "error": error})


def answer(params: Params) -> dict[str, Any]:
    """Everything that the calculator's page shows for one state of its form."""
    architecture = find_model(str(params.get("model") or DEFAULT_MODEL))
    gpu = _gpu(params)
    plan = Plan.parse({k: v for k, v in params.items() if k not in ("model", "gpu", "gpu_memory")})
    report = estimate(architecture, plan, gpu.generation)
    baseline = _baseline(architecture, plan, report, gpu.generation)
    value: dict[str, Any] = {
        "report": report.as_json(),
        "baseline": baseline.as_json(),
        "monitor": {"report": _monitor(report), "baseline": _monitor(baseline)},
        "savings": _savings(architecture, plan, report),
        "available": _available(architecture, report),
        "gpu": {"key": gpu.name, "name": gpu.title, "memory": gpu.memory},
        "verdict": _verdict(report, gpu),
        "command": command_for(architecture, plan),
        "query": urlencode(_chosen(architecture, plan, params)),
    }
    value["figures"] = figures(value)
    return value


def _gpu(params: Params) -> Gpu:
    if params.get("gpu_memory") not in (None, ""):
        return _custom_gpu(str(params["gpu_memory"]))
    return find_gpu(str(params.get("gpu") or DEFAULT_GPU))


def _custom_gpu(text: str) -> Gpu:
    try:
        memory = float(text)
    except ValueError:
        memory = 0.0
    if not 0 < memory <= LARGEST_GPU_GIB:
        raise InputError("gpu_memory", text, f"must be above 0 and at most {LARGEST_GPU_GIB:,} GiB")
    return Gpu("", "Your GPU", round(memory * GiB), "")


@lru_cache(maxsize=64)
def _cached(architecture: Architecture, plan: Plan, generation: str) -> MemoryReport:
    return estimate(architecture, plan, generation)


def _baseline(
    architecture: Architecture, plan: Plan, report: MemoryReport, generation: str
) -> MemoryReport:
    plain = without_techniques(architecture, plan)
    if resolve(architecture, plain) == report.plan:
        return report
    return _cached(architecture, plain, generation)


def _savings(architecture: Architecture, plan: Plan, report: MemoryReport) -> list[dict[str, Any]]:
    """For each technique in use: the peak without it minus the peak with it."""
    found = []
    for option in techniques():
        plain = plain_value(architecture, option.field)
        if not _in_use(report, option.field, architecture):
            continue
        without = _cached(architecture, _replace(plan, option.field, plain), "")
        found.append(
            {
                "option": option.field,
                "label": option.label,
                "gpu": without.gpu.total - report.gpu.total,
                "ram": without.ram.total - report.ram.total,
            }
        )
    return found


def _in_use(report: MemoryReport, field: str, architecture: Architecture) -> bool:
    plan = report.plan
    match field:
        case "optimizer_bits":
            return plan.optimizer_bits == 8
        case "sharing_groups":
            return plan.sharing_groups < architecture.shared_layers
        case "reversible":
            return plan.reversible
        case _:
            return str(getattr(plan, field)) != "none"


def _replace(plan: Plan, field: str, value: object) -> Plan:
    return Plan.parse({**asdict(plan), field: value})


def _available(architecture: Architecture, report: MemoryReport) -> dict[str, list[Any]]:
    """Values that this model can take, for options where it cannot take them all."""
    kernels = [str(kernel) for kernel in attention_kernels(architecture, report.plan.precision)]
    bits = ["32", "16"] if report.plan.optimizer == "adafactor" else ["32", "16", "8"]
    updates = (
        ["foreach", "loop"]
        if report.plan.optimizer == "adafactor"
        else ["foreach", "fused", "loop"]
    )
    tied = ["true", "false"] if can_untie(architecture) else ["true"]
    return {
        "attention": kernels,
        "optimizer_bits": bits,
        "update": updates,
        "tied_embeddings": tied,
    }


def _monitor(report: MemoryReport) -> dict[str, int]:
    """What a monitor such as nvidia-smi would show: the peak and what comes on top of it."""
    peak, overhead = report.gpu.total, report.overhead
    return {
        "shown": peak + overhead.total,
        "low": peak + overhead.low,
        "high": peak + overhead.high,
    }


def _verdict(report: MemoryReport, gpu: Gpu) -> dict[str, Any]:
    margin = gpu.memory - report.gpu.total - report.overhead.total
    fits = margin >= 0
    words = "to spare" if fits else "too little"
    start = "Fits" if fits else "Does not fit"
    text = f"{start} on {gpu.title}: {format_bytes(abs(margin))} {words}."
    return {"fits": fits, "margin": margin, "text": text}


def _chosen(architecture: Architecture, plan: Plan, params: Params) -> dict[str, str]:
    """What differs from the defaults, as the page's address holds it."""
    chosen = {} if architecture.name == DEFAULT_MODEL else {"model": architecture.name}
    chosen |= {name: _text(value) for name, value in plan.changed().items()}
    if params.get("gpu_memory") not in (None, ""):
        chosen["gpu_memory"] = str(params["gpu_memory"])
    elif params.get("gpu") not in (None, "", DEFAULT_GPU):
        chosen["gpu"] = str(params["gpu"])
    return chosen


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def figures(value: Mapping[str, Any]) -> dict[str, str]:
    """Every figure and word that the page shows, as text by its dotted path in the answer.

    Sizes also stand under ``exact.`` to the byte.
    """
    texts: dict[str, str] = {}
    for path, leaf in _leaves(value):
        match leaf:
            case bool() | None:
                continue
            case int() if path.endswith(".parameters"):
                texts[path] = format_count(leaf)
            case int():
                texts[path] = format_bytes(leaf)
                texts[f"exact.{path}"] = f"{leaf:,} B"
            case str():
                texts[path] = leaf
    return texts


def _leaves(value: Any) -> Iterator[tuple[str, Any]]:
    """What the page shows as text; it draws a moment's parts by their bytes alone."""
    for side in ("report", "baseline"):
        for name in ("parameters", "gpu", "transfer"):
            yield from _walk(value[side][name], f"{side}.{name}")
        yield f"{side}.ram.peak", value[side]["ram"]["peak"]
    for number, moment in enumerate(value["report"]["moments"]):
        yield f"report.moments.{number}.gpu", moment["gpu"]
    for name in ("savings", "gpu", "verdict", "monitor"):
        yield from _walk(value[name], name)


def _walk(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _walk(item, f"{path}.{name}")
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _walk(item, f"{path}.{number}")
    else:
        yield path, value


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
        "moment": str(report.peak_moment),
    }


def describe(_: Params) -> dict[str, Any]:
    """The options, models and GPUs that can be chosen."""
    return {
        "options": [asdict(option) for option in OPTIONS.values()],
        "models": [model.name for model in MODELS.values()],
        "gpus": [asdict(gpu) for gpu in GPUS.values()],
    }


def report_only(params: Params) -> dict[str, Any]:
    """The object of ``python -m calculator estimate MODEL --json``."""
    options = {name: value for name, value in params.items() if name != "model"}
    architecture = find_model(str(params.get("model") or DEFAULT_MODEL))
    return estimate(architecture, Plan.parse(options)).as_json()


def aggregate(params: Params) -> dict[str, Any]:
    """The demonstration of 'Security', see `plane.answer`."""
    from calculator import plane  # each page loads what it needs, and starts sooner

    return plane.answer(params)


def pace(params: Params) -> dict[str, Any]:
    """The demonstration of 'How it works', see `race.answer`."""
    from calculator import race

    return race.answer(params)


_METHODS: Final[dict[str, Callable[[Params], Any]]] = {
    "answer": answer,
    "estimate": report_only,
    "models": models,
    "describe": describe,
    "aggregate": aggregate,
    "pace": pace,
}
