"""Measures what it is told, a line of options in and a line of JSON out, until its input ends."""

import json
import sys

from calculator.errors import InputError
from validation import fake_device
from validation.configuration import parse


def main(device: str) -> None:
    if device == "fake":
        fake_device.load()
    from validation.measure import measure

    for line in sys.stdin:
        try:
            answer = measure(parse(line.split()), device)
        except InputError as error:
            answer = {"refused": str(error)}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
