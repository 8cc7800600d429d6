"""A plan written as the command that makes the same estimate."""

import shlex

from calculator.architecture import Architecture
from calculator.plan import Plan


def command_for(architecture: Architecture, plan: Plan) -> str:
    """The command that makes the same estimate, with the options that differ from the defaults."""
    words = ["python", "-m", "calculator", "estimate", architecture.name]
    for name, value in plan.changed().items():
        option = Plan.options()[name]
        if value is True:
            words.append(option.flag)
        elif value is False:
            words.append(option.negative_flag)
        else:
            words += [option.flag, str(value)]
    return shlex.join(words)
