"""The runs that some files configure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from calculator.doors.file import File
from calculator.doors.formats import read
from calculator.doors.settle import Understood, group_runs, settle
from calculator.doors.table import Note, Reading

# the file that another one names, by both names
Beside = Callable[[str, str], File | None]


def runs_of(
    files: Sequence[File],
    given: Mapping[str, object],
    model: str = "",
    beside: Beside = lambda name, part: None,
) -> list[Understood]:
    """The runs that the files configure.

    Args:
        files: all of them.
        given: options of `Plan`, which go before what the files say.
        model: the model, where no file names one that is counted.
        beside: looks for a file that another one names, such as DeepSpeed's.

    Raises:
        InputError: for a file that configures no training.
    """
    runs = group_runs([read(file) for file in files])
    return [settle(with_parts(run, beside), given, model) for run in runs]


def with_parts(readings: Sequence[Reading], beside: Beside) -> list[Reading]:
    """The files, with one that they name, if it is there."""
    found = list(readings)
    for reading in readings:
        part = reading.facts.get("part")
        if not isinstance(part, str) or any(one.table.title == "DeepSpeed" for one in found):
            continue
        if file := beside(reading.file.name, part):
            found.insert(0, read(file))
            continue
        note = Note(reading.file.name, "deepspeed", part, "hand over this file too", "either")
        found[found.index(reading)] = replace(reading, notes=(*reading.notes, note))
    return found
