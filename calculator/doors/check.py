"""``check``: hand over the files that were going to run."""

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from calculator.cards import TODAY, find_card
from calculator.commandline import add_plan_options, given_options
from calculator.doors.answer import Answer, answer, as_json, as_markdown, describe, worst
from calculator.doors.file import FIELD, LARGEST, File, parse_file
from calculator.doors.runs import runs_of
from calculator.errors import InputError
from calculator.named import architecture_named
from calculator.planner.job import Job, training_as_json


def add_check(parser: argparse.ArgumentParser) -> None:
    """The command's arguments; options of a plan go before what the files say."""
    parser.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help="YAML, JSON, TOML, Python, a shell script or a notebook",
    )
    parser.add_argument("--model", help="the model, where no file names one that is counted")
    parser.add_argument("--gpu", help=f"the card; default: {TODAY.title}")
    parser.add_argument(
        "--offline",
        action="store_true",
        help="use only config.json files already kept",
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
    words = ("\n".join([describe(found), *found.training(job)]) for found in answers)
    return "\n\n".join(words), status


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
        offline: use only config.json files already kept.

    Raises:
        InputError: for a file that cannot be read or configures no training.
    """
    card = TODAY if gpu is None else find_card(gpu)
    options = given or {}
    runs = runs_of([read_file(path) for path in files], options, model, beside)
    return [
        answer(run, lambda name: architecture_named(name, offline), card, options) for run in runs
    ]


def beside(name: str, part: str) -> File | None:
    """A file that another one names, if it is there."""
    places = (Path(name).parent / part, Path(part))
    path = next((place for place in places if place.is_file()), None)
    return read_file(str(path)) if path is not None else None


def read_file(path: str) -> File:
    """The file at a path.

    Raises:
        InputError: when it cannot be read, or is no file of training.
    """
    try:
        with Path(path).open("rb") as opened:
            content = opened.read(LARGEST + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(FIELD, path, f"cannot be read: {reason}") from None
    if len(content) > LARGEST:
        rule = f"must have at most {LARGEST:,} bytes: give the file that configures the training"
        rule += ", a notebook without its outputs"
        raise InputError(FIELD, path, rule)
    try:
        text = content.decode("utf-8-sig")
    except ValueError:
        raise InputError(FIELD, path, "must be text in UTF-8") from None
    return parse_file(path, text)
