"""A plan written as the command that makes the same estimate."""

import shlex
from collections.abc import Iterator, Mapping

from calculator.architecture import Architecture
from calculator.cards import TODAY
from calculator.options import Option
from calculator.plan import Plan
from calculator.presets import FIELD, Preset, beside
from calculator.units import GiB


def command_for(architecture: Architecture, plan: Plan, preset: Preset | None = None) -> str:
    """The command that makes the same estimate, with the options that differ from the defaults.

    The defaults are those of the preset, if the plan can be told beside it.
    """
    words = ["python", "-m", "calculator", "estimate", architecture.name]
    given = beside(preset, architecture, plan, plan.card)
    if preset is not None and given is not None:
        words += [f"--{FIELD}", preset]
    changed = plan.changed() if given is None else given
    card = plan.card.name or f"{plan.card.memory / GiB:g}GiB"
    gpu = [] if plan.card == TODAY else ["--gpu", card]
    return shlex.join([*words, *option_words(Plan.options(), changed), *gpu])


def option_words(options: Mapping[str, Option], changed: Mapping[str, object]) -> Iterator[str]:
    """The changed options as words of a command line."""
    for name, value in changed.items():
        if value is True:
            yield options[name].flag
        elif value is False:
            yield options[name].negative_flag
        else:
            yield from (options[name].flag, str(value))
