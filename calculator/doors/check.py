"""``check``: hand over the files that were going to run."""

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from calculator.cards import TODAY, find_card
from calculator.commandline import add_plan_options, given_options
from calculator.doors.answer import Answer, answer, as_json, as_markdown, describe, worst
from calculator.doors.file import read_file
from calculator.doors.formats import read
from calculator.doors.settle import group_runs, settle
from calculator.doors.table import Named, Note, Reading
from calculator.named import architecture_named
from calculator.planner.job import NO_HOURS, Job, training_as_json, training_words


def add_check(parser: argparse.ArgumentParser) -> None:
    """The command's arguments; options of a plan go before what the files say."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="YAML, JSON, TOML or Python")
    parser.add_argument("--model", help="the model, where no file names one that is counted")
    parser.add_argument("--gpu", help=f"the card; default: {TODAY.title}")
    parser.add_argument(
        "--offline", action="store_true", help="read no config.json from the Hub that is not kept"
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print one JSON object, sizes in bytes")
    form.add_argument("--markdown", action="store_true", help="print a table for a pull request")
    add_plan_options(parser)


def check(arguments: argparse.Namespace) -> tuple[str, int]:
    """The text that the command prints, and its status.

    Raises:
        InputError: for a file that cannot be read or configures no training.
    """
    given = given_options(arguments)
    answers = check_files(
        arguments.files, arguments.gpu, given, arguments.model or "", arguments.offline
    )
    status = worst(answers)
    job = Job.asked(vars(arguments))
    if arguments.json:
        runs = [{**as_json(found), **_training(found, job)} for found in answers]
        return json.dumps({"version": 1, "status": status, "runs": runs}), status
    if arguments.markdown:
        return as_markdown(answers), status
    return "\n\n".join(_described(found, job) for found in answers), status


def _described(found: Answer, job: Job | None) -> str:
    """The answer for a terminal, with the hours of a training where they are asked for."""
    if found.report is None or job is None:
        return describe(found)
    hours = training_words(found.report, job) if found.seconds else [NO_HOURS]
    return "\n".join([describe(found), *hours])


def _training(found: Answer, job: Job | None) -> dict[str, Any]:
    if found.seconds is None or found.report is None:
        return {} if job is None else {"training": None}
    return training_as_json(found.report, job)


def check_files(
    files: Sequence[str],
    gpu: str | None = None,
    given: Mapping[str, object] | None = None,
    model: str = "",
    offline: bool = False,
) -> list[Answer]:
    """An answer for each run that the files configure.

    Args:
        files: their paths.
        gpu: a card by any name, or its memory, as in ``20GiB``; by default one of today.
        given: options of `Plan`, which go before what the files say.
        model: the model, where no file names one that is counted.
        offline: read no config.json from the Hub that is not kept.

    Raises:
        InputError: for a file that cannot be read or configures no training.
    """
    card = TODAY if gpu is None else find_card(gpu)
    options = given or {}
    readings = [read(read_file(path)) for path in files]
    return [
        answer(
            settle(_with_parts(of_one_run), options, model),
            lambda name: architecture_named(name, offline),
            card,
            options,
        )
        for of_one_run in group_runs(readings)
    ]


def _with_parts(readings: Sequence[Reading]) -> list[Reading]:
    """The files, with one that they name, such as DeepSpeed's, if it is there."""
    found = list(readings)
    for reading in readings:
        part = reading.facts.get("part")
        if not isinstance(part, str) or any(one.table.title == "DeepSpeed" for one in found):
            continue
        places = (Path(reading.file.name).parent / part, Path(part))
        path = next((place for place in places if place.is_file()), None)
        if path is not None:
            found.insert(0, read(read_file(str(path))))
            continue
        words = Named("hand over this file too").words
        note = Note(reading.file.name, "deepspeed", part, words, "either")
        changed = Reading(
            reading.file, reading.table, reading.facts, (*reading.notes, note), reading.unknown
        )
        found[found.index(reading)] = changed
    return found
