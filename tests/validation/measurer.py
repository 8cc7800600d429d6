"""Measures what it is told, a line of options in and a line of JSON out, until its input ends.

A line ``call NAME WORDS`` asks `tests.validation.counted` or `programs` instead.
"""

import json
import sys
from typing import Any

from calculator.errors import InputError
from validation import counting_device


def main(device: str) -> None:
    counting_device.load()
    for line in sys.stdin:
        try:
            answer = _answer(line.split(), device)
        except InputError as error:
            answer = {"refused": str(error)}
        print(json.dumps(answer), flush=True)


def _answer(words: list[str], device: str) -> Any:
    from tests.validation import counted, programs
    from validation.configuration import parse
    from validation.measure import measure

    if words[0] == "call":
        module = programs if hasattr(programs, words[1]) else counted
        return getattr(module, words[1])(*([" ".join(words[2:])] if words[2:] else []))
    return measure(parse(words), device)


if __name__ == "__main__":
    main(sys.argv[1])
