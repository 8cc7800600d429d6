"""The command line: ``python -m validation measure | trace | grid | sample | compare | ...``."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from calculator.errors import InputError
from validation import counting_device
from validation.audit import audit
from validation.configuration import add_options, from_arguments
from validation.sample import options as add_sample_options

COUNTLESS: Final = ("compare", "evidence", "real", "seconds", "audit")  # need no counting device


def main(words: Sequence[str] | None = None) -> int:
    """Run one command; 2 for bad input."""
    arguments = _parser().parse_args(words)
    try:
        if _counts(arguments):
            counting_device.load()
        COMMANDS[arguments.command](arguments)
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    except counting_device.UnavailableError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m validation")
    commands = parser.add_subparsers(dest="command", required=True)
    measure = commands.add_parser("measure", help="measure the memory of one training step")
    trace = commands.add_parser(
        "trace", help="list every tensor that one training step keeps alive"
    )
    for command in (measure, trace):
        add_options(command, optional=command is measure)
        command.add_argument("--device", choices=("counting", "cpu", "cuda"), default="counting")
    grid = commands.add_parser("grid", help="measure every configuration that has no row yet")
    grid.add_argument("--device", choices=("counting", "cpu", "cuda"), default="counting")
    grid.add_argument("--list", action="store_true", help="print the configurations and stop")
    grid.add_argument("--kind", help="only configurations of this model type")
    again = "only committed rows of an earlier oracle, which the grid may draw no more"
    grid.add_argument("--again", action="store_true", help=again)
    grid.add_argument("--part", default="0/1", help="I/N: every N-th configuration from the I-th")
    add_sample_options(
        commands.add_parser("sample", help="predict random plans, measure them, and compare")
    )
    compare = commands.add_parser("compare", help="compare the calculator with the committed rows")
    compare.add_argument("--device", choices=("counting", "cpu", "cuda", "*"), default="counting")
    compare.add_argument("--json", action="store_true", help="print one object for a page")
    compare.add_argument("--figure", type=Path, help="draw predicted against measured as SVG")
    compare.add_argument("--worst", type=int, default=20, help="number of rows to list")
    evidence = commands.add_parser("evidence", help="write what the calculator's answers rest on")
    evidence.add_argument("--folder", type=Path, default=Path(".build/sample"), help="of `sample`")
    commands.add_parser("real", help="compare the calculator with figures from real cards")
    commands.add_parser("seconds", help="compare the clock with published seconds")
    sources = commands.add_parser("audit", help="list allocations in kernels that no table names")
    sources.add_argument("checkout", type=Path, help="sources of PyTorch, or installed packages")
    measure.add_argument("--json", action="store_true", help="print one object")
    measure.add_argument("--keep", action="store_true", help="add it to the committed rows")
    measure.add_argument(
        "--folder",
        type=Path,
        help="folder for a file to send; default without a model: the current folder",
    )
    trace.add_argument("--timeline", action="store_true", help="one layer's backward, op by op")
    return parser


def _counts(arguments: argparse.Namespace) -> bool:
    """True if the counting device has to be there before PyTorch."""
    if arguments.command == "sample":
        return arguments.part is not None
    return arguments.command not in COUNTLESS and arguments.device != "cuda"


def _measure(arguments: argparse.Namespace) -> None:
    if arguments.model is None or arguments.folder is not None:
        _contribute(arguments)
        return
    from validation.measure import measure
    from validation.run import keep
    from validation.table import table

    _check_device(arguments.device)
    configuration = from_arguments(arguments)
    row = (keep if arguments.keep else measure)(configuration, arguments.device)
    print(json.dumps(row) if arguments.json else "\n".join(table(configuration, row)))


def _contribute(arguments: argparse.Namespace) -> None:
    if arguments.device == "counting":
        rule = "must be cuda or cpu for a file to send in: counted rows are made by `grid`"
        raise InputError("device", arguments.device, rule)
    _check_device(arguments.device)
    from validation.contribution import contribute
    from validation.grid import CARD_STEPS

    steps = [from_arguments(arguments).command] if arguments.model else CARD_STEPS
    for line in contribute(arguments.device, arguments.folder or Path(), steps):
        print(line, flush=True)


def _trace(arguments: argparse.Namespace) -> None:
    from validation.trace import trace

    for line in trace(from_arguments(arguments), arguments.device, arguments.timeline):
        print(line)


def _grid(arguments: argparse.Namespace) -> None:
    from validation.run import run

    index, count = map(int, arguments.part.split("/"))
    run(arguments.device, index, count, arguments.list, arguments.kind, arguments.again)


def _evidence(arguments: argparse.Namespace) -> None:
    from validation.evidence import write

    print("\n".join(write(arguments.folder)))


def _sample(arguments: argparse.Namespace) -> None:
    from validation.sample import measure_part, sample

    if arguments.part is not None:
        measure_part(arguments.seed, arguments.count, arguments.part, arguments.folder)
        return
    print("\n".join(sample(arguments.seed, arguments.count, arguments.processes, arguments.folder)))


def _compare(arguments: argparse.Namespace) -> None:
    from validation.compare import as_json, compare, summary
    from validation.figure import draw
    from validation.rows import read_rows, write_whole

    comparisons = compare(read_rows(arguments.device))
    if not comparisons:
        raise InputError("device", arguments.device, "has no rows; measure some first")
    if arguments.figure:
        write_whole(arguments.figure, draw(comparisons))
    if arguments.json:
        print(json.dumps(as_json(comparisons)))
    else:
        print("\n".join(summary(comparisons, arguments.worst)))


def _real(_: argparse.Namespace) -> None:
    from validation.real import summary
    from validation.scoreboard import answers_to, scores, steps

    print("\n".join(summary(scores(answers_to(range(len(steps())))))))


def _seconds(_: argparse.Namespace) -> None:
    from validation.seconds import summary

    print("\n".join(summary()))


def _audit(arguments: argparse.Namespace) -> None:
    sys.stdout.writelines(f"{line}\n" for line in audit(arguments.checkout))


def _check_device(device: str) -> None:
    """Refuse a GPU that is not there."""
    import torch

    if device == "cuda" and not torch.cuda.is_available():
        rule = "PyTorch finds no GPU here; --device counting counts without one"
        raise InputError("device", device, rule)


COMMANDS: Final = {
    "measure": _measure,
    "trace": _trace,
    "grid": _grid,
    "sample": _sample,
    "compare": _compare,
    "evidence": _evidence,
    "real": _real,
    "seconds": _seconds,
    "audit": _audit,
}

if __name__ == "__main__":
    sys.exit(main())
