"""``check`` on the calculator's page: files that a visitor drops or chooses there."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from time import perf_counter
from typing import Any, Final
from urllib.parse import urlencode

from calculator.architecture import Architecture
from calculator.catalog import Gpu, find_model
from calculator.doors.answer import UNKNOWN, Answer, answers_in_steps
from calculator.doors.file import FIELD, LARGEST, File, parse_file
from calculator.doors.runs import runs_of
from calculator.doors.settle import Understood
from calculator.doors.table import Note
from calculator.errors import InputError
from calculator.page.answer import in_words
from calculator.page.states import Params, architecture_of, chosen, gpu_of
from calculator.page.training import asked_job, in_sentences
from calculator.planner.job import Job
from calculator.presets import FIELD as PRESET
from calculator.presets import preset_of

FILES: Final = "files"
MOST_FILES: Final = 20
# a search pauses after so long, so that the figures of the form come first
SEARCH_SECONDS: Final = 0.1


def check_on_page(params: Params) -> list[dict[str, Any]]:
    """An answer for each run of the `files`, which are objects of a name and a text.

    The card is that of the form; so is the model where no file names one of the catalog. Until
    all are `done`, the same question goes on with the search for changes.

    Raises:
        InputError: for a file that configures no training.
    """
    searches = _searches(json.dumps(params, sort_keys=True))
    end = perf_counter() + SEARCH_SECONDS
    for number, (latest, steps) in enumerate(searches):
        while latest.searching and perf_counter() < end:
            latest = next(steps)
        searches[number] = latest, steps
    job = asked_job(params)
    return [_as_json(latest, params, job) for latest, _ in searches]


@lru_cache(maxsize=1)
def _searches(question: str) -> list[tuple[Answer, Iterator[Answer]]]:
    """For each run the latest answer, and those to come."""
    params = json.loads(question)
    own, gpu = architecture_of(params), gpu_of(params)
    runs = [_with_model(run, own) for run in runs_of(_files(params.get(FILES)), {})]
    return [(next(steps), steps) for steps in (_answers(run, own, gpu) for run in runs)]


def _files(given: object) -> list[File]:
    if not isinstance(given, list) or not 0 < len(given) <= MOST_FILES:
        raise InputError(FILES, "", f"must be a list of 1 to {MOST_FILES} files")
    return [_file(one) for one in given]


def _file(given: object) -> File:
    match given:
        case {"name": str(name), "text": str(text)} if len(text) <= LARGEST:
            return parse_file(name, text)
        case {"name": str(name), "text": str()}:
            raise InputError(FIELD, name, f"must have at most {LARGEST:,} characters")
        case _:
            raise InputError(FILES, given, "must have a name and a text each")


def _with_model(run: Understood, own: Architecture) -> Understood:
    """The run with the form's model, where its own is not in the catalog."""
    if not run.model:
        return replace(run, model=own.name, assumed=(("model", own.name), *run.assumed))
    try:
        find_model(run.model)
    except InputError as error:
        words = f"{error.rule}; counted is the model of the form, {own.name}"
        note = Note("", "model", run.model, words, "either")
        return replace(run, model=own.name, notes=(*run.notes, note))
    return run


def _answers(run: Understood, own: Architecture, gpu: Gpu) -> Iterator[Answer]:
    find = {own.name: own}.get
    return answers_in_steps(run, lambda name: find(name) or find_model(name), gpu, {})


def _as_json(found: Answer, params: Params, job: Job | None) -> dict[str, Any]:
    """The answer in words, and the state of the form that is its plan."""
    words: Mapping[str, str] = {}
    query, state = "", "unknown"
    if found.architecture is not None and found.need is not None:
        plan = found.run.plan.on(found.gpu)
        words = in_words(plan.changed())
        preset = {**params, PRESET: preset_of(plan)}
        query = urlencode(chosen(found.architecture, plan, preset))
        if found.status != UNKNOWN:
            state = found.need.verdict(found.gpu.memory).value
    note = found.architecture.note if found.architecture is not None else ""
    return {
        "title": f"{found.names}: {found.titles}",
        "state": state,
        "verdict": found.verdict,
        "time": in_sentences([*found.pace, *found.training(job)]),
        "plan": [f"Model: {found.run.model}", *words.values()],
        "assumed": found.assumed,
        "notes": [*filter(None, [note]), *found.notes],
        "remedy": f"{found.remedy}." if found.remedy.endswith("it fit") else found.remedy,
        "done": not found.searching,
        "patch": found.repair.patch if found.repair else "",
        "query": query,
    }
