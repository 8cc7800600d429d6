"""The words of ``fit`` and of ``estimate --gpu``: the sum that decides, and what to change."""

import json
from typing import Any

from calculator.architecture import Architecture
from calculator.cards import COMMON
from calculator.catalog import Gpu
from calculator.plan import Plan
from calculator.planner.fastest import fastest
from calculator.planner.fit import Proposal, proposals
from calculator.planner.largest import largest_batch, longest_sequence
from calculator.planner.need import Need, describe_need, judged, need_of
from calculator.report import Report
from calculator.units import format_bytes


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
    needs = _needs_on_all(architecture, plan)
    return "\n".join(describe_verdict(need, one) for one, need in needs)


def fits_as_json(architecture: Architecture, plan: Plan) -> str:
    """The same as an object; sizes are integers of bytes.

    Raises:
        InputError: if the model does not support the plan.
    """
    verdicts = [verdict_as_json(need, one) for one, need in _needs_on_all(architecture, plan)]
    return json.dumps({"model": architecture.name, "gpus": verdicts})


def _needs_on_all(architecture: Architecture, plan: Plan) -> list[tuple[Gpu, Need]]:
    """The need of the step on each GPU, in the format and with the kernels that it picks."""
    return [(one, need_of(judged(architecture, plan.on(one)))) for one in COMMON]


def describe_fit(architecture: Architecture, plan: Plan, report: Report) -> str:
    """Output of `fit` for one GPU: the verdict, and what would make it fit, or is left over.

    `plan` is on its card, and has the `report`.
    """
    gpu, need = plan.card, need_of(report)
    limits = (architecture, plan, gpu.memory)
    lines = [describe_verdict(need, gpu)]
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


def fit_as_json(architecture: Architecture, plan: Plan, report: Report) -> str:
    """The same as an object; sizes are integers of bytes."""
    gpu, need = plan.card, need_of(report)
    limits = (architecture, plan, gpu.memory)
    batch = largest_batch(*limits)
    found = fastest(*limits, batch)
    answer = {
        "model": architecture.name,
        **verdict_as_json(need, gpu),
        "proposals": []
        if need.fits(gpu.memory)
        else [_as_json(proposal) for proposal in proposals(*limits)],
        "largest_batch": batch,
        "longest_sequence": longest_sequence(*limits),
        "fastest": found and found.as_json(),
    }
    return json.dumps(answer)


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
