"""The cheapest change that makes a run fit, in the keys of its own files."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from calculator.architecture import Architecture
from calculator.catalog import Gpu
from calculator.doors.file import File, parse_file
from calculator.doors.formats import read
from calculator.doors.patch import diff, edited
from calculator.doors.relax import relaxed
from calculator.doors.settle import Understood, settle
from calculator.doors.table import Reading, Table
from calculator.errors import InputError
from calculator.plan import Plan
from calculator.planner.change import accumulated
from calculator.planner.fit import Proposal, proposals_in_steps
from calculator.planner.need import Need, judged, need_of
from calculator.planner.pace import more_time, pace_of
from calculator.resolution import resolve

MOST_TRIED: Final = 12
SMALLER_BATCH: Final = "A GPU computes smaller batches less efficiently."


@dataclass(frozen=True, slots=True)
class Repair:
    """A proposal, what the step needs after it, and the unified diff that carries it out."""

    proposal: Proposal
    need: Need
    patch: str


def repairs_in_steps(
    architecture: Architecture, run: Understood, gpu: Gpu, given: Mapping[str, object]
) -> Iterator[Repair | None]:
    """The first proposal that the files' keys can say, and that fits once they are read again.

    None as long as the search goes on, and last where there is none.
    """
    before = run.plan.on(gpu)
    own = resolve(architecture, before).sequence_length

    def can(after: Plan) -> bool:
        wanted = _wanted(before, after, own)
        return any(_keys(reading.table, reading.file, wanted) for reading in run.readings)

    search = proposals_in_steps(architecture, before, gpu.memory, enough=MOST_TRIED, allowed=can)
    found: list[Proposal] = []
    for latest in search:
        found = latest
        yield None
    tried = [one for each in found[:MOST_TRIED] for one in _milder(architecture, each, before)]
    for proposal in tried:
        wanted = _wanted(before, proposal.plan, own)
        for reading in run.readings:
            text = _patched(reading, wanted)
            need = text and _need(architecture, run, reading, text, gpu, given)
            if text and need and need.fits(gpu.memory):
                yield Repair(proposal, need, diff(reading.file, text))
                return
            yield None


def _milder(architecture: Architecture, proposal: Proposal, before: Plan) -> Iterator[Proposal]:
    """The same, before it with larger micro-batches where it splits the batch and no more."""
    options = [name for name in Plan.options() if vars(proposal.plan)[name] != vars(before)[name]]
    if options == ["batch_size", "accumulation"]:
        for size in range(before.batch_size // 2, 1, -1):
            times, left = divmod(before.batch_size, size)
            plan = None if left else accumulated(before, times, batch_size=size)
            if plan is not None:
                words = f"Use a micro-batch of {size} and {times} times as many per update"
                change = replace(proposal.changes[0], words=words, guess=SMALLER_BATCH)
                time = more_time(pace_of(architecture, before), pace_of(architecture, plan))
                yield replace(proposal, changes=(change,), plan=plan, time=time)
    yield proposal


def _wanted(before: Plan, after: Plan, length: int) -> dict[str, object]:
    """The options that differ, with their values after."""
    old, new = ({**vars(plan)} for plan in (before, after))
    old["sequence_length"] = old["sequence_length"] or length
    new["sequence_length"] = new["sequence_length"] or length
    return {name: new[name] for name in Plan.options() if old[name] != new[name]}


def _keys(table: Table, file: File, wanted: Mapping[str, object]) -> dict[str, object] | None:
    """Keys and values that say some options; None where one cannot be said."""
    direct = dict(reversed([*_direct(table)]))
    present = {meaning: key for meaning, key in _direct(table) if key in file.values}
    found: dict[str, object] = {}
    for name, value in wanted.items():
        plain = value if isinstance(value, bool | int | float) else str(value)
        edit = table.edits.get(f"{name}={str(plain).lower()}") or table.edits.get(name)
        key = present.get(name) or direct.get(name)
        if edit is None and key is None:
            return None
        own = {key: plain} if key else {}
        found |= own if edit is None else {k: plain if v == "{}" else v for k, v in edit.items()}
    return found


def _direct(table: Table) -> Iterator[tuple[str, str]]:
    """Facts that keys have as they are, with the keys; of several the first is the usual one."""
    return ((name, key) for key, name in table.keys.items() if isinstance(name, str))


def _patched(reading: Reading, wanted: Mapping[str, object]) -> str | None:
    if reading.facts.get("pairs") and "batch_size" in wanted:  # counted as two sequences each
        pairs, left = divmod(int(str(wanted["batch_size"])), 2)
        if left:
            return None
        wanted = {**wanted, "batch_size": pairs}
    keys = _keys(reading.table, reading.file, wanted)
    return edited(reading.file, keys) if keys else None


def _need(
    architecture: Architecture,
    run: Understood,
    changed: Reading,
    text: str,
    gpu: Gpu,
    given: Mapping[str, object],
) -> Need | None:
    """The need with another text of one of the files; None if that cannot be said."""
    try:
        again = read(parse_file(changed.file.name, text))
        readings: Sequence[Reading] = [again if one is changed else one for one in run.readings]
        after = relaxed(architecture, settle(readings, given, run.model), given)
        if after.model != run.model or len(after.notes) > len(run.notes) + 1:
            return None
        return need_of(judged(architecture, after.plan.on(gpu)))
    except InputError:  # another choice of the file excludes it
        return None
