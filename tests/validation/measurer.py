"""Measures what it is told, a line in and a line of JSON out, until its input ends.

A line is a device and the options of a step; ``call NAME WORDS`` in their place asks
`tests.validation.counted` or `programs`. `tests.validation.gloo` forks it.
"""

import json
from collections.abc import Callable
from typing import IO, Any

from calculator.errors import InputError

Measure = Callable[..., Any]  # the fixture that asks it


def serve(questions: IO[str], answers: IO[str]) -> None:
    for line in questions:
        try:
            answer = _answer(*line.split())
        except InputError as error:
            answer = {"refused": str(error)}
        print(json.dumps(answer), file=answers, flush=True)


def _answer(device: str, *words: str) -> Any:
    from tests.validation import counted, programs
    from validation.configuration import parse
    from validation.measure import measure

    if words[0] == "call":
        module = programs if hasattr(programs, words[1]) else counted
        return getattr(module, words[1])(*([" ".join(words[2:])] if words[2:] else []))
    return measure(parse(words), device)
