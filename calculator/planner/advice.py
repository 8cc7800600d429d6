"""The adviser: after the verdict, what would make a step fit, or what else fits.

It is found in steps, each as long as an estimate, so that the page can ask for the newest state in
between.
"""

import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from calculator.architecture import Architecture
from calculator.cards import COMMON
from calculator.cards.services import too_much_ram
from calculator.catalog import Gpu
from calculator.errors import InputError
from calculator.estimate import totals
from calculator.plan import Plan
from calculator.planner.change import Cost
from calculator.planner.changes import SHARDS_IN_RAM
from calculator.planner.fastest import fastest_in_steps
from calculator.planner.fit import Proposal, proposals_in_steps
from calculator.planner.largest import (
    Found,
    has_one_length,
    largest_batch_in_steps,
    longest_sequence_in_steps,
)
from calculator.planner.need import Need, judged, least_need, need_at, need_of
from calculator.planner.pace import describe_time, more_time, pace_of
from calculator.planner.several import (
    Several,
    fewest_for_adapters_in_steps,
    fewest_in_steps,
    fewest_with_ram_in_steps,
)
from calculator.report import Report
from calculator.resolution import refusal, resolve
from calculator.units import format_bytes, format_count

TITLE_FITS: Final = "What else fits"
TITLE_FITS_NOT: Final = "What would make it fit"
MOST_WAYS: Final = 9
MOST_GPUS: Final = 3
# in tokens; no shorter length is proposed
SHORTEST: Final = 128
# a GPU is called smaller that has less than this many thousandths of the memory
SMALLER: Final = 800
BY_MEMORY: Final = sorted(COMMON, key=lambda gpu: gpu.memory)


@dataclass(frozen=True, slots=True)
class Way:
    """One thing to do, or to know.

    Attributes:
        words: an instruction; without a plan, a statement.
        need: what the step then takes of the GPU, in words.
        details: what it saves and costs.
        plan: the plan after it, if there is something to do.
        gpu: the GPU after it.
    """

    words: str
    need: str
    details: str
    plan: Plan | None
    gpu: Gpu


@dataclass(frozen=True, slots=True)
class Advice:
    """Advice found so far; `done` when the search is over.

    `largest` has the largest micro-batch and the longest sequence that fit, 0 where none does,
    by option; it lacks what was not searched, and a length that the model's positions end.
    """

    title: str
    note: str
    ways: tuple[Way, ...]
    done: bool
    largest: Mapping[str, int] = field(default_factory=dict)


class Adviser:
    """A search for advice that goes on for a while at a time."""

    def __init__(self, architecture: Architecture, plan: Plan, gpu: Gpu) -> None:
        """Begin; nothing is searched yet.

        Raises:
            InputError: if the model does not support the plan.
        """
        resolve(architecture, plan)
        self._steps = advise_in_steps(architecture, plan, gpu)
        self._advice = Advice("", "", (), done=False)

    def go_on(self, seconds: float) -> Advice:
        """Advice after searching for some time, or to the end; always takes at least one step."""
        end = time.perf_counter() + seconds
        for advice in self._steps:
            self._advice = advice
            if time.perf_counter() >= end:
                break
        return self._advice


def advise_in_steps(architecture: Architecture, plan: Plan, gpu: Gpu) -> Iterator[Advice]:
    """The advice as it grows, after each estimate; the last one is done.

    Raises:
        InputError: if the model does not support the plan.
    """
    report = judged(architecture, plan.on(gpu))
    if need_of(report).fits(gpu.memory):
        yield from _what_else_fits(architecture, plan, gpu, report)
    else:
        yield from _what_would_fit(architecture, plan, gpu, report)


def _what_else_fits(
    architecture: Architecture, plan: Plan, gpu: Gpu, report: Report
) -> Iterator[Advice]:
    left = format_bytes(gpu.memory - need_of(report).typical)
    note = f"{left} of {format_bytes(gpu.memory)} are left."
    if report.paged:
        note += f" Paged states take up to {format_bytes(report.paged)} of it."
    ways: list[Way] = []
    limits = (architecture, plan.on(gpu), gpu.memory)
    batch = yield from _while_searching(largest_batch_in_steps(*limits), TITLE_FITS, note, ways)
    ways.append(_batch_way(architecture, report.plan, gpu, batch, plan))
    search = fastest_in_steps(*limits, batch)
    if faster := (yield from _while_searching(search, TITLE_FITS, note, ways)):
        ways.append(_way_to(architecture, faster.instruction, faster.reason, faster.plan, gpu))
    length = yield from _while_searching(longest_sequence_in_steps(*limits), TITLE_FITS, note, ways)
    ways.append(_length_way(architecture, report.plan, gpu, length, plan))
    ways += _gpu_ways(
        architecture,
        plan.on(gpu),
        [one for one in BY_MEMORY if 1000 * one.memory < SMALLER * gpu.memory],
    )
    largest = _largest(architecture, batch, length)
    yield Advice(TITLE_FITS, note, tuple(ways), done=True, largest=largest)


def _largest(architecture: Architecture, batch: int | None, length: int | None) -> dict[str, int]:
    """Search results by option; a length at the end of the model's positions is no limit."""
    found = {"batch_size": batch or 0}
    if not has_one_length(architecture) and (length or 0) != architecture.positions:
        found["sequence_length"] = length or 0
    return found


def _while_searching(
    search: Generator[None, None, Found], title: str, note: str = "", ways: Sequence[Way] = ()
) -> Generator[Advice, None, Found]:
    while True:
        try:
            next(search)
        except StopIteration as end:
            found: Found = end.value
            return found
        yield Advice(title, note, tuple(ways), done=False)


def _batch_way(
    architecture: Architecture, shown: Plan, gpu: Gpu, batch: int | None, plan: Plan
) -> Way:
    """The largest micro-batch; `shown` is the plan with the model's own values filled in."""
    length = f"{format_count(shown.sequence_length)} tokens"
    if batch is None or batch <= plan.batch_size:
        words = f"This micro-batch of {format_count(plan.batch_size)} is the largest that fits"
        return Way(words, "", f"With sequences of {length}.", None, gpu)
    return _way_to(
        architecture,
        f"Use the largest micro-batch: {format_count(batch)}",
        f"The largest batch that fits at {length}."
        + _time(architecture, plan.on(gpu), plan.but(batch_size=batch).on(gpu)),
        replace(plan, batch_size=batch),
        gpu,
    )


def _length_way(
    architecture: Architecture, shown: Plan, gpu: Gpu, length: int | None, plan: Plan
) -> Way:
    """The longest sequence."""
    own = shown.sequence_length
    if length is None or length <= own:
        words = f"Sequences of {format_count(own)} tokens are the longest"
        return Way(words, "", _why_no_longer(architecture, own), None, gpu)
    limit = "that the model has" if length == architecture.positions else "that fits"
    return _way_to(
        architecture,
        f"Use the longest sequence: {format_count(length)} tokens",
        f"The longest {limit}, {format_count(plan.batch_size)} at once.",
        replace(plan, sequence_length=length),
        gpu,
    )


def _why_no_longer(architecture: Architecture, own: int) -> str:
    if has_one_length(architecture):
        return "The model takes no others."
    if architecture.positions and own >= architecture.positions:
        return "The model has no more positions."
    return "Longer ones do not fit."


def _way_to(architecture: Architecture, words: str, details: str, plan: Plan, gpu: Gpu) -> Way:
    need = need_of(judged(architecture, plan.on(gpu)))
    return Way(words, format_bytes(need.typical), details, plan, gpu)


def _what_would_fit(
    architecture: Architecture, plan: Plan, gpu: Gpu, report: Report
) -> Iterator[Advice]:
    limits = (architecture, plan.on(gpu), gpu.memory)
    ways: list[Way] = []
    batch: int | None = None
    if plan.batch_size > 1:
        batch = yield from _while_searching(largest_batch_in_steps(*limits), TITLE_FITS_NOT)
        ways += _smaller_batch(architecture, plan, gpu, batch)
    found: list[Proposal] = []
    so_far = Advice(TITLE_FITS_NOT, "", tuple(ways), done=False)
    for step in proposals_in_steps(*limits, enough=MOST_WAYS):
        if step is not found:
            found = step
            so_far = replace(so_far, ways=(*ways, *_ways_of(found, gpu)))
        yield so_far
    ways += _ways_of(found, gpu)
    length = yield from _while_searching(
        longest_sequence_in_steps(*limits), TITLE_FITS_NOT, ways=ways
    )
    shorter = _shorter(architecture, plan, gpu, length)
    largest = _largest(architecture, batch, length)
    more_memory = [one for one in BY_MEMORY if one.memory > gpu.memory]
    larger = _gpu_ways(architecture, plan.on(gpu), more_memory)
    if ways or shorter:
        if _wants_several(plan, found):
            larger = [*(yield from _together(architecture, plan, gpu, (*ways, *shorter))), *larger]
        last = (*shorter, *larger)
        shown = (*ways[: MOST_WAYS - len(last)], *last)
        yield Advice(TITLE_FITS_NOT, "", shown, done=True, largest=largest)
        return
    others: list[Proposal] = []
    most = BY_MEMORY[-1]
    for step in proposals_in_steps(architecture, plan.on(most), most.memory):
        others = step
        yield Advice(TITLE_FITS_NOT, "", (), done=False)
    elsewhere = (*larger, *_ways_on_others(architecture, others))
    together = yield from _together(architecture, plan, gpu, elsewhere)
    note = _note_on_others(gpu, together, elsewhere)
    yield Advice(TITLE_FITS_NOT, note, (*together, *elsewhere), done=True, largest=largest)


def _wants_several(plan: Plan, found: Sequence[Proposal]) -> bool:
    """True if several GPUs are there without shards, or all else trains adapters or another model.

    Shards on as many GPUs are among what is found, if they are enough.
    """
    if plan.all_gpus > 1 and not plan.is_sharded:
        return not any(one.plan.is_sharded for one in found)
    return not plan.lora and all(one.cost >= Cost.ADAPTERS for one in found)


def _note_on_others(gpu: Gpu, together: Sequence[Way], larger: Sequence[Way]) -> str:
    first = f"No change counted here makes it fit one {gpu.short}."
    match bool(together), bool(larger):
        case True, True:
            return f"{first} On several, or on a larger GPU:"
        case True, False:
            return f"{first} On several:"
        case False, True:
            return f"{first} On a larger GPU:"
        case _:
            most = format_bytes(BY_MEMORY[-1].memory)
            return (
                f"No change counted here makes it fit one GPU, not even one of {most}. It needs "
                "several GPUs together, which are counted for some models only."
            )


def _together(
    architecture: Architecture, plan: Plan, gpu: Gpu, ways: Sequence[Way]
) -> Generator[Advice, None, list[Way]]:
    """The fewest of this GPU that hold the step together, if any number does.

    Where fewer of them hold it with adapters, or with their shards in RAM, these come first.
    """
    limits = (architecture, plan, gpu)
    whole = yield from _first(fewest_in_steps(*limits), ways)
    adapted = any(way.plan is not None and way.plan.lora for way in ways)
    found: list[Several | None] = []
    if not (plan.lora or (plan.is_sharded and adapted)):
        found.append((yield from _first(fewest_for_adapters_in_steps(*limits), ways)))
    if not plan.cpu_offload:
        found.append((yield from _first(fewest_with_ram_in_steps(*limits), ways)))
    fewer = [
        one
        for one in found
        if one is not None and (whole is None or one.plan.gpus < whole.plan.gpus)
    ]
    return [_together_way(one, plan, gpu) for one in (*fewer, whole) if one is not None]


def _first(
    search: Iterator[Several | None], ways: Sequence[Way]
) -> Generator[Advice, None, Several | None]:
    """The end of a search, with the advice so far after each of its steps."""
    so_far = Advice(TITLE_FITS_NOT, "", tuple(ways), done=False)
    found: Several | None = None
    for step in search:
        found = step
        yield so_far
    return found


def _together_way(several: Several, plan: Plan, gpu: Gpu) -> Way:
    """Shards of the step on as few of this GPU as hold them."""
    count = "" if several.plan.gpus == plan.gpus else "The fewest of 2, 4, 8 and so on. "
    ram = f" {_ram(several.ram, several.plan, gpu)}" if several.ram else ""
    moved = f" {SHARDS_IN_RAM.price}" if several.plan.cpu_offload and not plan.cpu_offload else ""
    adapters = " Trains adapters only." if several.plan.lora and not plan.lora else ""
    return Way(
        f"Use {format_count(several.plan.gpus)} of this GPU with {several.words}",
        format_bytes(several.need.typical),
        f"{count}Each holds a shard and gathers a layer at a time.{ram}{moved}{adapters}",
        several.plan,
        gpu,
    )


def _ram(ram: int, plan: Plan, gpu: Gpu) -> str:
    """Sentences on RAM; of several GPUs each has a process of its own."""
    each = " for each GPU" if plan.all_gpus > 1 else ""
    return (
        f"Takes {format_bytes(ram)} of RAM{each}. {too_much_ram(gpu, ram * plan.all_gpus)}".strip()
    )


def _smaller_batch(
    architecture: Architecture, plan: Plan, gpu: Gpu, batch: int | None
) -> list[Way]:
    if batch is None:
        return []
    words = f"Use a micro-batch of {format_count(batch)}"
    details = "The largest that fits; accumulate gradients to keep the batch of an update."
    often = plan.accumulation * -(-plan.batch_size // batch)
    accumulated = plan.but(batch_size=batch, accumulation=often)
    details += _time(architecture, plan.on(gpu), accumulated.on(gpu))
    return [_way_to(architecture, words, details, replace(plan, batch_size=batch), gpu)]


def _time(architecture: Architecture, plan: Plan, changed: Plan) -> str:
    """A sentence on the time of a token beside the plan's; empty where the clock has no answer."""
    try:
        more = more_time(pace_of(architecture, plan), pace_of(architecture, changed))
    except InputError:
        return ""  # such as an update in the backward pass, which accumulates nothing
    return "" if more is None else f" {describe_time(more)}"


def _shorter(architecture: Architecture, plan: Plan, gpu: Gpu, length: int | None) -> list[Way]:
    if length is None or length < SHORTEST:
        return []
    words = f"Use sequences of {format_count(length)} tokens"
    details = "The longest that fit; the model sees shorter texts."
    return [_way_to(architecture, words, details, replace(plan, sequence_length=length), gpu)]


def _ways_of(found: Sequence[Proposal], gpu: Gpu) -> tuple[Way, ...]:
    return tuple(_way_of(one, one.need, gpu, one.words) for one in found[:MOST_WAYS])


def _way_of(proposal: Proposal, need: Need, gpu: Gpu, words: str) -> Way:
    ram = f" {_ram(proposal.ram, proposal.plan, gpu)}" if proposal.ram else ""
    details = f"Saves {format_bytes(proposal.saved)}.{ram} {proposal.price}"
    return Way(words, format_bytes(need.typical), details, proposal.plan, gpu)


def _gpu_ways(architecture: Architecture, plan: Plan, gpus: Sequence[Gpu]) -> list[Way]:
    """The first GPU that holds the step as it is, if any does, with its time beside the plan's."""
    for gpu in gpus:
        there = plan.on(gpu)
        if refusal(architecture, there):
            continue
        need = need_at(architecture, there, totals(architecture, there).gpu, gpu.memory)
        if need.fits(gpu.memory):
            words = f"Use the {gpu.title}"
            details = (
                f"The smallest GPU on the list that holds it, with {format_bytes(gpu.memory)}."
            )
            details += _time(architecture, plan, there)
            return [Way(words, format_bytes(need.typical), details, plan, gpu)]
    return []


def _ways_on_others(architecture: Architecture, found: Sequence[Proposal]) -> list[Way]:
    """Changes that make the step fit some GPU, those for the smallest GPU first."""
    ways: dict[int, Way] = {}
    for gpu in BY_MEMORY:
        for place, proposal in enumerate(found):
            plan = proposal.plan.on(gpu)
            least = least_need(plan, proposal.peak)
            if place in ways or not least.fits(gpu.memory) or refusal(architecture, plan):
                continue
            need = need_of(judged(architecture, plan))
            if need.fits(gpu.memory):
                words = f"On the {gpu.title}: {proposal.words}"
                ways[place] = _way_of(proposal, need, gpu, words)
            if len(ways) == MOST_GPUS:
                return [*ways.values()]
    return [*ways.values()]
