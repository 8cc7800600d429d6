"""Two plans side by side: the words of ``compare``, and the object of its ``--json``."""

from collections.abc import Iterator
from typing import Any, Final

from calculator.catalog import Gpu
from calculator.clock import Seconds
from calculator.planner.need import need_of
from calculator.planner.pace import describe_time, more_time
from calculator.planner.verdict import describe_verdict, verdict_as_json
from calculator.report import Report
from calculator.units import format_bytes, format_count, format_seconds

Row = tuple[str, str, str, str]
UNTIMED: Final = "no answer"


def describe_comparison(first: Report, second: Report, gpu: Gpu | None) -> str:
    """A table with a column for each plan and one for the difference, and the verdicts."""
    rows = [("", "first", "second", "difference"), *_rows(first, second)]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    lines = [
        f"{name:<{widths[0]}}"
        + "".join(f"  {t:>{w}}" for t, w in zip(texts, widths[1:], strict=True))
        for name, *texts in rows
    ]
    if gpu:
        lines += [
            f"{name}: {describe_verdict(need_of(report), gpu)}"
            for name, report in (("first", first), ("second", second))
        ]
    return "\n".join(line.rstrip() for line in lines)


def _rows(first: Report, second: Report) -> Iterator[Row]:
    yield ("model", first.model, second.model, "")
    yield (
        "parameters",
        format_count(first.parameters),
        format_count(second.parameters),
        f"{second.parameters - first.parameters:+,}",
    )
    for name, (was, now) in _changes(first, second).items():
        yield (name, was, now, "")
    yield _row("GPU memory at the peak", first.gpu.total, second.gpu.total)
    yield ("  in the phase", str(first.peak_phase), str(second.peak_phase), "")
    for part, size in first.gpu.as_json().items():
        yield _row(f"  {part}", size, second.gpu.as_json()[part])
    yield _row("on top of it, estimated", first.overhead.total, second.overhead.total)
    for phase, memory in first.phases.items():
        yield _row(f"highest in {phase}", memory.total, second.phases[phase].total)
    yield _row("RAM", first.ram.total, second.ram.total)
    yield _row("moved to RAM in each step", first.to_ram, second.to_ram)
    yield _row("moved to the GPU in each step", first.to_gpu, second.to_gpu)
    if first.paged or second.paged:
        yield _row("paged states, on the GPU or in RAM", first.paged, second.paged)
    yield from _seconds(first.seconds, second.seconds)


def _seconds(first: Seconds | None, second: Seconds | None) -> Iterator[Row]:
    """Rows of what the clock says, where it says it of one at least."""
    if first is None and second is None:
        return
    more = more_time(first, second)
    both = (first, second)
    step, other = (UNTIMED if one is None else format_seconds(one.step) for one in both)
    yield "time of a step", step, other, ""
    rate, other = (
        UNTIMED if one is None else format_count(round(one.tokens_per_second)) for one in both
    )
    difference = "" if more is None else describe_time(more).removesuffix(".")
    yield "tokens per second", rate, other, difference


def _row(name: str, was: int, now: int) -> Row:
    sign = "+" if now > was else ""
    return name, format_bytes(was), format_bytes(now), f"{sign}{format_bytes(now - was)}"


def _changes(first: Report, second: Report) -> dict[str, tuple[str, str]]:
    """The options in which the two plans differ, the model's own values filled in."""
    pairs = {
        name: (str(getattr(first.plan, name)), str(getattr(second.plan, name)))
        for name in first.plan.options()
    }
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def comparison_as_json(first: Report, second: Report, gpu: Gpu | None) -> dict[str, Any]:
    """Both reports as ``estimate --json`` has them, and the second's sizes less the first's."""
    return {
        "first": _with_verdict(first, gpu),
        "second": _with_verdict(second, gpu),
        "difference": {
            "parameters": second.parameters - first.parameters,
            "gpu": {
                "peak": second.gpu.total - first.gpu.total,
                "parts": _less(second.gpu.as_json(), first.gpu.as_json()),
            },
            "ram": {
                "peak": second.ram.total - first.ram.total,
                "parts": _less(second.ram.as_json(), first.ram.as_json()),
            },
            "phases": [
                {
                    "name": phase.value,
                    "gpu": second.phases[phase].total - memory.total,
                    "parts": _less(second.phases[phase].as_json(), memory.as_json()),
                }
                for phase, memory in first.phases.items()
            ],
            "transfer": {
                "to_ram": second.to_ram - first.to_ram,
                "to_gpu": second.to_gpu - first.to_gpu,
            },
            "paged": {"bytes": second.paged - first.paged},
            "time": more_time(first.seconds, second.seconds),
        },
    }


def _with_verdict(report: Report, gpu: Gpu | None) -> dict[str, Any]:
    verdict = {"fit": verdict_as_json(need_of(report), gpu)} if gpu else {}
    return {**report.as_json(), **verdict}


def _less(now: dict[str, int], was: dict[str, int]) -> dict[str, int]:
    return {name: now[name] - size for name, size in was.items()}
