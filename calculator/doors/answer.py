"""The answer of ``check``: the plan, what is not counted, the verdict, and a patch."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from calculator.architecture import Architecture
from calculator.catalog import Gpu
from calculator.clock import TIMED_NOTE, Seconds
from calculator.command import command_for
from calculator.doors.advise import Repair, repairs_in_steps
from calculator.doors.relax import relaxed
from calculator.doors.settle import Understood
from calculator.doors.table import Note, is_off
from calculator.errors import LONGEST_MESSAGE, InputError, one_line
from calculator.planner.job import NO_HOURS, Job, training_words
from calculator.planner.need import Need, judged, need_of
from calculator.planner.verdict import describe_verdict, pace_words, verdict_as_json
from calculator.report import Report
from calculator.units import format_bytes

FITS, FITS_NOT, UNKNOWN = 0, 1, 2
# keys that compile the step, in transformers, axolotl, LLaMA-Factory, torchtune and torchtitan
COMPILING: Final = ("torch_compile", "compile", "compile.enable")
UNTIMED_COMPILED: Final = (
    f"{TIMED_NOTE}the clock does not count compiled operations (torch.compile)."
)
Find = Callable[[str], Architecture]


@dataclass(frozen=True, slots=True)
class Answer:
    """A run's files, what they say, and what the card says to it.

    Attributes:
        architecture: None where the model or the plan cannot be counted, for the `reason`.
        repair: a change that makes it fit, if it does not and there is one.
        searching: true as long as the change is not found.
    """

    run: Understood
    gpu: Gpu
    architecture: Architecture | None = None
    report: Report | None = None
    repair: Repair | None = None
    reason: str = ""
    searching: bool = False

    @property
    def need(self) -> Need | None:
        """Memory that the step takes; None where it cannot be counted."""
        return None if self.report is None else need_of(self.report)

    @property
    def pace(self) -> list[str]:
        """The line on the step's seconds, or on why there are none."""
        if self.report is None:
            return []
        return [UNTIMED_COMPILED] if self.is_compiled else pace_words(self.report)

    @property
    def seconds(self) -> Seconds | None:
        """Seconds of the step; None where the clock has no answer."""
        return None if self.report is None or self.is_compiled else self.report.seconds

    def training(self, job: Job | None) -> list[str]:
        """The lines on a whole training, where one is asked for."""
        if job is None or self.report is None:
            return []
        return training_words(self.report, job) if self.seconds else [NO_HOURS]

    @property
    def is_compiled(self) -> bool:
        """True if a file asks for torch.compile, of which the clock knows nothing."""
        values = [reading.file.values for reading in self.run.readings]
        return any(not is_off(own.get(key)) for own in values for key in COMPILING)

    @property
    def status(self) -> int:
        """0 where it fits, 1 where it does not, 2 where what is not counted may change that."""
        if self.need is None:
            return UNKNOWN
        ways = {note.way for note in self.run.notes}
        fits = self.need.fits(self.gpu.memory)
        if "either" in ways or ("more" if fits else "less") in ways:
            return UNKNOWN
        return FITS if fits else FITS_NOT

    @property
    def names(self) -> str:
        """The files of the run."""
        return ", ".join(reading.file.name for reading in self.run.readings)

    @property
    def titles(self) -> str:
        """The libraries whose keys they have."""
        return ", ".join(dict.fromkeys(reading.table.title for reading in self.run.readings))

    @property
    def command(self) -> str:
        """The command that makes the same estimate; empty without a plan."""
        if self.architecture is None:
            return ""
        return command_for(self.architecture, self.run.plan.on(self.gpu))

    @property
    def verdict(self) -> str:
        """The verdict in words, and why it is none where it is none."""
        if self.need is None:
            return f"Could not say: {self.reason}"
        words = describe_verdict(self.need, self.gpu)
        if self.status == UNKNOWN:
            return f"Could not say for certain; what is counted: {words}"
        return words

    @property
    def assumed(self) -> str:
        """Options and facts that no file says, with the values that are counted."""
        return ", ".join(f"{name} {value}" for name, value in self.run.assumed)

    @property
    def notes(self) -> list[str]:
        """Keys that are not counted as they are, or not known, in words."""
        return [_note(note) for note in self.run.notes]

    @property
    def remedy(self) -> str:
        """The change that makes it fit, in words; empty where it fits, or cannot be counted."""
        if self.repair:
            proposal, need = self.repair.proposal, format_bytes(self.repair.need.typical)
            words = f"The cheapest change that makes it fit: {proposal.words}"
            return f"{words}: needs {need}. {proposal.price}"
        if self.searching:
            return "Looking for a change that makes it fit …"
        if self.need is None or self.need.fits(self.gpu.memory):
            return ""
        return "No change of these files alone makes it fit"


def answer(run: Understood, find: Find, gpu: Gpu, given: Mapping[str, object]) -> Answer:
    """The answer for a run; `find` is the architecture of a name."""
    *_, found = answers_in_steps(run, find, gpu, given)
    return found


def answers_in_steps(
    run: Understood, find: Find, gpu: Gpu, given: Mapping[str, object]
) -> Iterator[Answer]:
    """The same, first without the change, and again after each step of the search for it."""
    if not run.model:
        reason = str(InputError("model", "", "no file names it: give --model"))
        yield Answer(run, gpu, reason=reason)
        return
    try:
        architecture = find(run.model)
        run = relaxed(architecture, run, given)
        report = judged(architecture, run.plan.on(gpu))
    except InputError as error:
        yield Answer(run, gpu, reason=str(error))
        return
    found = Answer(run, gpu, architecture, report)
    if need_of(report).fits(gpu.memory):
        yield found
        return
    change = None
    for latest in repairs_in_steps(architecture, run, gpu, given):
        change = latest
        yield replace(found, searching=True)
    yield replace(found, repair=change)


def describe(found: Answer) -> str:
    """The answer for a terminal."""
    lines = [f"{one_line(found.names)}: {found.titles}"]
    lines += [f"Plan: {found.command or _options(found.run)}"]
    if found.assumed:
        lines.append(f"Assumed, for no file says it: {found.assumed}")
    if found.architecture is not None and found.architecture.note:
        lines.append(f"Note: {one_line(found.architecture.note, LONGEST_MESSAGE)}")
    lines += [f"  {note}" for note in found.notes]
    lines += [found.verdict, *found.pace]
    if found.remedy:
        lines.append(found.remedy if found.repair else f"{found.remedy}; see `fit` for others.")
    if found.repair:
        lines.append(found.repair.patch.rstrip())
    return "\n".join(lines)


def _options(run: Understood) -> str:
    return ", ".join(f"{name} {value}" for name, value in run.options.items()) or "none"


def _note(note: Note) -> str:
    extra = {"more": " (takes more)", "less": " (takes less)", "either": " (not counted)", "": ""}
    return f"{one_line(note.key)} = {one_line(note.value)}: {note.words}{extra[note.way]}"


def as_json(found: Answer) -> dict[str, Any]:
    """The answer as an object; sizes are integers of bytes."""
    need, change, seconds = found.need, found.repair, found.seconds
    return {
        "files": [reading.file.name for reading in found.run.readings],
        "formats": [reading.table.title for reading in found.run.readings],
        "status": found.status,
        "model": found.run.model,
        "plan": {name: _plain(value) for name, value in found.run.options.items()},
        "command": found.command,
        "assumed": {name: _plain(value) for name, value in found.run.assumed},
        "notes": [
            {
                "file": note.file,
                "key": note.key,
                "value": one_line(note.value),
                "words": note.words,
                "way": note.way,
            }
            for note in found.run.notes
        ],
        "reason": found.reason,
        "fit": verdict_as_json(need, found.gpu) if need else None,
        "seconds": None if seconds is None else seconds.as_json(),
        "change": None
        if change is None
        else {
            "words": change.proposal.words,
            "cost": change.proposal.price,
            "typical": change.need.typical,
            "patch": change.patch,
        },
    }


def _plain(value: object) -> object:
    return value if isinstance(value, bool | int | float) else str(value)


def as_markdown(answers: list[Answer]) -> str:
    """A table for a pull request, with the patches below it."""
    rows = ["| File | Model | Needs | GPU | Verdict |", "| --- | --- | ---: | --- | --- |"]
    for found in answers:
        needs = "" if found.need is None else format_bytes(found.need.typical)
        words = found.reason or "could not say for certain"
        if found.need is not None and found.status != UNKNOWN:
            words = found.need.verdict(found.gpu.memory).value
        cells = (found.names, found.run.model, needs, found.gpu.title, words)
        rows.append(f"| {' | '.join(one_line(cell, 200).replace('|', '/') for cell in cells)} |")
    for found in answers:
        if found.run.notes:
            rows += ["", f"Not counted as it is in {one_line(found.names)}:", ""]
            rows += [f"- {note}".replace("<", "&lt;") for note in found.notes]
        if found.repair:
            rows += ["", f"{found.repair.proposal.words}:", "", "```diff"]
            rows += [found.repair.patch.rstrip(), "```"]
    return "\n".join(rows)


def worst(answers: list[Answer]) -> int:
    """The status of several runs: one that does not fit goes before one of which none can say."""
    statuses = [found.status for found in answers]
    return FITS_NOT if FITS_NOT in statuses else max(statuses)
