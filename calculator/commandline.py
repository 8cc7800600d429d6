"""The options on the command line: how they are read, and how a plan is written as a command."""

import argparse
import shlex
from typing import Final

from calculator.architecture import Architecture
from calculator.techniques import OPTIONS, Plan

UNTIED: Final = "--untied-embeddings"


def add_plan_options(parser: argparse.ArgumentParser) -> None:
    """Every option of `Plan`; values are checked by `Plan`, not here."""
    for option in OPTIONS.values():
        if option.kind == "flag":
            negative = UNTIED if option.field == "tied_embeddings" else f"--no-{option.flag[2:]}"
            group = parser.add_mutually_exclusive_group()
            group.add_argument(
                option.flag, dest=option.field, action="store_const", const=True, help=option.help
            )
            group.add_argument(negative, dest=option.field, action="store_const", const=False)
        else:
            names = " ".join(name for name, _ in option.choices)
            words = f"{option.help} {names}".strip()
            parser.add_argument(option.flag, metavar=option.kind.upper(), help=words)


def plan_from(arguments: argparse.Namespace) -> Plan:
    """The plan that the command line asks for.

    Raises:
        InputError: for a value that its option does not take.
    """
    return Plan.parse({name: getattr(arguments, name) for name in OPTIONS})


def command_for(architecture: Architecture, plan: Plan) -> str:
    """The command that makes the same estimate, with the options that differ from the defaults."""
    words = ["python", "-m", "calculator", "estimate", architecture.name]
    for name, value in plan.changed().items():
        option = OPTIONS[name]
        if value is True:
            words.append(option.flag)
        elif value is False:
            words.append(UNTIED if name == "tied_embeddings" else f"--no-{option.flag[2:]}")
        else:
            words += [option.flag, str(value)]
    return shlex.join(words)
