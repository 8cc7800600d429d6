"""The options on the command line, and how they are read."""

import argparse

from calculator.techniques import OPTIONS, Plan


def add_plan_options(parser: argparse.ArgumentParser) -> None:
    """Every option of `Plan`; values are checked by `Plan`, not here."""
    for option in OPTIONS.values():
        if option.kind == "flag":
            group = parser.add_mutually_exclusive_group()
            group.add_argument(
                option.flag, dest=option.field, action="store_const", const=True, help=option.help
            )
            group.add_argument(
                option.negative_flag, dest=option.field, action="store_const", const=False
            )
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
