"""Options of other libraries on the command line: ``--load_in_4bit --deepspeed zero3.json``.

They mean what the same keys mean in a file, but no library's defaults are taken for what is not
given.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from calculator.doors import accelerate, axolotl, deepspeed, llamafactory, trainer
from calculator.doors.file import File
from calculator.doors.readers import load
from calculator.doors.runs import Beside, with_parts
from calculator.doors.settle import Understood, settle
from calculator.doors.shell import options_of
from calculator.doors.table import Reading, Table, knows, read_keys
from calculator.errors import InputError, likeliest
from calculator.plan import Plan
from calculator.presets import FIELD, Preset

# a key that several have is the first one's
TABLES: Final = (
    trainer.TRL,
    accelerate.TABLE,
    llamafactory.TABLE,
    axolotl.TABLE,
    deepspeed.TABLE,
    load("scripts"),
)
NAME: Final = "the command line"


def understood(
    words: Sequence[str], given: Mapping[str, object], beside: Beside = lambda name, part: None
) -> Understood:
    """The plan that options of other libraries make beside those of ours, which go before them.

    Raises:
        InputError: for an option that no library has, and a value of none.
    """
    if not words[0].startswith("--"):
        rule = "belongs to no option; several values of one are joined by commas"
        raise InputError("command line", words[0], rule)
    values = options_of(words)
    if given.get("lora"):  # an option of ours that decides what others mean
        values = {"use_peft": True, "lora_r": given["lora"], **values}
    found: dict[str, Table] = {}
    for key in values:
        table = next((table for table in TABLES if knows(table, key)), None)
        if table is None:
            raise InputError("command line", f"--{key}", _nearest(key))
        found[key] = table
    readings = [
        _reading(table, {key: values[key] for key in values if found[key] is table})
        for table in TABLES
        if table in found.values()
    ]
    run = settle(with_parts(readings, beside), given)
    return replace(run, options=_said(run, given))


def _nearest(key: str) -> str:
    """The rule for an option that nobody has."""
    if key in list(Preset):
        return f"is a preset here: --{FIELD} {key}"
    near = likeliest(key, [*Plan.options()])
    hint = f"did you mean {Plan.options()[near].flag}? " if near else ""
    return f"{hint}is an option of neither this command nor a library that is known"


def _reading(table: Table, values: Mapping[str, object]) -> Reading:
    return read_keys(File(NAME, "", "", values), replace(table, defaults={}, is_run=True))


def _said(run: Understood, given: Mapping[str, object]) -> Mapping[str, object]:
    """The options that follow from what was said: without those of an empty line."""
    plain = settle([], given).options
    return {name: value for name, value in run.options.items() if plain.get(name) != value}
