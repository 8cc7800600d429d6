"""The command line: ``python -m calculator estimate MODEL [options] [--json]``."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from calculator.architecture import Architecture
from calculator.catalog import MODELS, find_model
from calculator.commandline import add_plan_options, plan_from
from calculator.errors import InputError
from calculator.estimate import Memory, MemoryReport, estimate
from calculator.hf_config import read_config
from calculator.units import format_bytes, format_count


class OneLineParser(argparse.ArgumentParser):
    """Says what is wrong with an option in one line."""

    def error(self, message: str) -> NoReturn:
        """Exit with status 2."""
        self.exit(2, f"error: {message}; see {self.prog} --help\n")


def build_parser() -> argparse.ArgumentParser:
    """All commands and options."""
    parser = OneLineParser(prog="python -m calculator", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("estimate", help="what one training step of a model needs")
    one.add_argument("model", help="a name from `models`, or the path of a config.json")
    add_plan_options(one)
    one.add_argument("--json", action="store_true", help="print one JSON object, sizes in bytes")
    table = commands.add_parser("models", help="the models known by name")
    table.add_argument("--json", action="store_true", help="print a JSON list")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; 0 when it worked, 2 for a bad option, told in one line on standard error."""
    arguments = build_parser().parse_args(argv)
    try:
        if arguments.command == "models":
            _print_models(arguments.json)
        else:
            report = estimate(_architecture(arguments.model), plan_from(arguments))
            print(json.dumps(report.as_json()) if arguments.json else _describe(report))
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def _architecture(name: str) -> Architecture:
    path = Path(name)
    if path.suffix == ".json" or path.is_dir() or len(path.parts) > 1:
        return read_config(path)
    return find_model(name)


def _print_models(as_json: bool) -> None:
    if as_json:
        print(
            json.dumps(
                [{"name": m.name, "title": m.title, "family": m.family} for m in MODELS.values()]
            )
        )
        return
    for model in MODELS.values():
        print(f"{model.name:<16}{format_count(estimate(model).parameters):>18}  {model.title}")


def _describe(report: MemoryReport) -> str:
    lines = [
        f"{report.model}: {format_count(report.parameters)} parameters",
        f"GPU memory at the peak ({report.peak_moment}): {format_bytes(report.gpu.total)}",
        *_parts(report.gpu),
        f"On top of it, estimated: {format_bytes(report.overhead.total)}",
        "Highest in each moment:",
    ]
    lines += [f"  {m:<14}{format_bytes(memory.total):>12}" for m, memory in report.moments.items()]
    if report.ram.total:
        lines += [f"RAM: {format_bytes(report.ram.total)}", *_parts(report.ram)]
        moved = f"{format_bytes(report.to_ram)} to RAM, {format_bytes(report.to_gpu)} to the GPU"
        lines.append(f"Moved in each step: {moved}")
    return "\n".join([*lines, *(f"Note: {note}" for note in report.notes)])


def _parts(memory: Memory) -> list[str]:
    sizes = {name: getattr(memory, name) for name in memory.__slots__}
    return [f"  {name:<14}{format_bytes(size):>12}" for name, size in sizes.items() if size]


if __name__ == "__main__":
    raise SystemExit(main())
