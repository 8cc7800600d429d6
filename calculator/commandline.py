"""The command line's options, and their parser."""

import argparse
from collections.abc import Iterable
from dataclasses import replace

from calculator.architecture import Architecture
from calculator.cards import TODAY, find_card
from calculator.elsewhere import flags_of
from calculator.groups import grouped, names_elsewhere
from calculator.options import Option
from calculator.plan import Plan
from calculator.presets import FIELD, Preset, plan_with


def add_plan_options(parser: argparse.ArgumentParser) -> None:
    """Every option of `Plan`, in groups, with the names that other libraries have for it."""
    parser.add_argument(
        f"--{FIELD}",
        metavar="CHOICE",
        help="the options that tutorials set, under those that are given: "
        + ", ".join(f"{preset} ({preset.words})" for preset in Preset),
    )
    for title, options in grouped(Plan.options()):
        add_options(parser.add_argument_group(title), map(_named, options))


def _named(option: Option) -> Option:
    names = names_elsewhere(option.field)
    return replace(option, help=f"{option.help} ({names})") if names else option


def add_options(parser: argparse._ActionsContainer, options: Iterable[Option]) -> None:
    """Options that are declared at fields; what declares them checks their values, not this."""
    for option in options:
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
            words = f"{option.help} {names}".strip().replace("%", "%%")
            metavar = "NAME:NUMBER,..." if option.kind == "counts" else option.kind.upper()
            flags = (option.flag, *flags_of(option.field))
            parser.add_argument(*flags, dest=option.field, metavar=metavar, help=words)


def plan_from(arguments: argparse.Namespace, architecture: Architecture) -> Plan:
    """The plan that the command line asks for, on the card that it names.

    Raises:
        InputError: if an option does not accept its value.
    """
    name = getattr(arguments, "gpu", None)
    card = TODAY if name is None else find_card(name)
    return plan_with(architecture, card, given_options(arguments))


def given_options(arguments: argparse.Namespace) -> dict[str, object]:
    """The preset and the plan's options that the command line names, with their values."""
    return options_in(arguments, (FIELD, *Plan.options()))


def options_in(arguments: argparse.Namespace, names: Iterable[str]) -> dict[str, object]:
    """Those of the named options that the command line has, as it has them."""
    values = {name: getattr(arguments, name) for name in names}
    return {name: value for name, value in values.items() if value is not None}
