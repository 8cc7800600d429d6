"""The words of ``fit`` and of ``estimate --gpu``: the sum that decides, and what to change."""

from typing import Any

from calculator.architecture import Architecture
from calculator.cards import COMMON
from calculator.catalog import Gpu
from calculator.clock import why_untimed
from calculator.errors import InputError
from calculator.plan import Plan
from calculator.planner.fastest import fastest
from calculator.planner.fit import Proposal, proposals
from calculator.planner.largest import largest_batch, longest_sequence
from calculator.planner.need import Need, describe_need, judged, need_of
from calculator.report import Report
from calculator.resolution import refusal
from calculator.units import format_bytes, format_count


def describe_verdict(need: Need, gpu: Gpu) -> str:
    """The verdict, and the figures that decide."""
    return f"{gpu.title}: {need.verdict(gpu.memory)}. {describe_need(need, gpu)}"


def verdict_as_json(need: Need, gpu: Gpu) -> dict[str, Any]:
    """The verdict as the object that ``--json`` prints; sizes are integers of bytes."""
    return {
        "gpu": gpu.name,
        "memory": gpu.memory,
        "verdict": need.verdict(gpu.memory).value,
        "typical": need.typical,
        "low": need.low,
        "high": need.high,
        "paged": need.paged,
        "caveat": gpu.caveat,
    }


def describe_fits(architecture: Architecture, plan: Plan) -> str:
    """Output of `fit` without a GPU: a line for each.

    Raises:
        InputError: if the model does not support the plan.
    """
    return "\n".join(
        f"{gpu.title}: {found}"
        if isinstance(found, InputError)
        else f"{describe_verdict(need_of(found), gpu)}{_pace(found)}"
        for gpu, found in on_all(architecture, plan)
    )


def fits_as_json(architecture: Architecture, plan: Plan) -> dict[str, Any]:
    """The same as an object; sizes are integers of bytes.

    Raises:
        InputError: if the model does not support the plan.
    """
    verdicts, refused = [], []
    for gpu, found in on_all(architecture, plan):
        if isinstance(found, InputError):
            refused.append({"gpu": gpu.name, "memory": gpu.memory, "error": str(found)})
        else:
            verdicts.append({**verdict_as_json(need_of(found), gpu), **_seconds_as_json(found)})
    answer = {"model": architecture.name, "gpus": verdicts}
    return {**answer, "refused": refused} if refused else answer


def on_all(architecture: Architecture, plan: Plan) -> list[tuple[Gpu, Report | InputError]]:
    """The step on each common GPU, in the format and with the kernels that it picks.

    Of a card that lacks a kernel, the reason.

    Raises:
        InputError: if the model does not support the plan.
    """
    on_cards = ((one, plan.on(one)) for one in COMMON)
    found = [
        (one, refusal(architecture, there) or judged(architecture, there))
        for one, there in on_cards
    ]
    errors = [each for _, each in found if isinstance(each, InputError)]
    if len(errors) == len(found):
        raise errors[0]
    return found


def _pace(report: Report) -> str:
    """A sentence on the seconds of a step, where it fits and the clock has an answer."""
    seconds = report.seconds
    if seconds is None or not need_of(report).fits(report.plan.card.memory):
        return ""
    return f" {format_count(round(seconds.tokens_per_second))} tokens per second."


def _seconds_as_json(report: Report) -> dict[str, Any]:
    seconds = report.seconds
    return {"seconds": seconds and seconds.as_json()}


def describe_fit(architecture: Architecture, plan: Plan, report: Report) -> str:
    """Output of `fit` for one GPU: the verdict, and what would make it fit, or is left over.

    `plan` is on its card, and has the `report`.
    """
    gpu, need = plan.card, need_of(report)
    limits = (architecture, plan, gpu.memory)
    lines = [describe_verdict(need, gpu), *pace_words(report)]
    if not need.fits(gpu.memory):
        found = proposals(*limits)
        if not found:
            kept = "one GPU" if plan.all_gpus == 1 else f"{plan.all_gpus:,} GPUs"
            return f"{lines[0]}\nNo change that keeps {kept} makes it fit; see `fit` without --gpu."
        return "\n".join([*lines, "What would make it fit:", *map(_describe_proposal, found)])
    paged = f", of which paged states take up to {format_bytes(need.paged)}" if need.paged else ""
    batch = largest_batch(*limits)
    lines += [
        f"Left over: {format_bytes(gpu.memory - need.typical)}{paged}",
        f"Largest micro-batch at this length: {batch}",
        f"Longest sequence at this micro-batch: {longest_sequence(*limits)}",
    ]
    quickest = fastest(*limits, batch)
    if quickest:
        lines.append(f"Fastest: {quickest.instruction}: {quickest.reason}")
    return "\n".join(lines)


def pace_words(report: Report) -> list[str]:
    """The line on the seconds of a step, or on why there are none."""
    return [report.seconds.words] if report.seconds else list(why_untimed(report.plan))


def fit_as_json(architecture: Architecture, plan: Plan, report: Report) -> dict[str, Any]:
    """The same as an object; sizes are integers of bytes."""
    gpu, need = plan.card, need_of(report)
    limits = (architecture, plan, gpu.memory)
    batch = largest_batch(*limits)
    found = fastest(*limits, batch)
    return {
        "model": architecture.name,
        **verdict_as_json(need, gpu),
        **_seconds_as_json(report),
        "proposals": []
        if need.fits(gpu.memory)
        else [_as_json(proposal) for proposal in proposals(*limits)],
        "largest_batch": batch,
        "longest_sequence": longest_sequence(*limits),
        "fastest": found and found.as_json(),
    }


def _describe_proposal(proposal: Proposal) -> str:
    ram = f", {format_bytes(proposal.ram)} of RAM" if proposal.ram else ""
    needs = f"needs {format_bytes(proposal.need.typical)}{ram}"
    return f"  {proposal.words}: {needs}. {proposal.price}"


def _as_json(proposal: Proposal) -> dict[str, Any]:
    return {
        "changes": proposal.instructions,
        "cost": proposal.price,
        "plan": proposal.plan.changed(),
        "typical": proposal.need.typical,
        "high": proposal.need.high,
        "saved": proposal.saved,
        "time": proposal.time,
        "ram": proposal.ram,
    }
