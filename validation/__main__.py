"""The command line: ``python -m validation measure | trace``."""

import argparse
import json
import sys
from collections.abc import Sequence

from calculator.errors import InputError
from validation import fake_device
from validation.configuration import add_options, from_arguments


def main(words: Sequence[str] | None = None) -> int:
    """Run one command; 2 for bad input."""
    arguments = _parser().parse_args(words)
    try:
        if arguments.device == "fake":
            fake_device.load()
        match arguments.command:
            case "measure":
                _measure(arguments)
            case "trace":
                _trace(arguments)
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m validation")
    commands = parser.add_subparsers(dest="command", required=True)
    measure = commands.add_parser("measure", help="what one training step needs")
    trace = commands.add_parser("trace", help="every tensor that one training step keeps alive")
    for command in (measure, trace):
        add_options(command)
        command.add_argument("--device", choices=("fake", "cpu", "cuda"), default="fake")
    measure.add_argument("--json", action="store_true", help="print one object")
    trace.add_argument("--timeline", action="store_true", help="one layer's backward, op by op")
    return parser


def _measure(arguments: argparse.Namespace) -> None:
    from validation.measure import measure

    row = measure(from_arguments(arguments), arguments.device)
    print(json.dumps(row, indent=None if arguments.json else 2))


def _trace(arguments: argparse.Namespace) -> None:
    from validation.trace import trace

    for line in trace(from_arguments(arguments), arguments.device, arguments.timeline):
        print(line)


if __name__ == "__main__":
    sys.exit(main())
