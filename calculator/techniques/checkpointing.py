"""Checkpointing of some layers only: every n-th one, the first included.

Counted is transformers' `every_n_layers`, which numbers the layers of all stacks in one row: those
whose number n divides are computed again, the others keep what they save.

Source: checkpointing, transformers (modeling_utils.py, _set_gradient_checkpointing)
"""

from calculator.architecture import Architecture
from calculator.errors import InputError
from calculator.models.registry import type_of
from calculator.plan import Plan


def keeping_of(layers: int, every: int, before: int) -> tuple[bool, ...]:
    """For each layer of a stack, true if it keeps its activations; `before` it are so many layers.

    >>> keeping_of(5, every=2, before=0)
    (False, True, False, True, False)

    Source: transformers (modeling_utils.py, _set_gradient_checkpointing)
    """
    return tuple((before + place) % every > 0 for place in range(layers))


def check_every(plan: Plan, architecture: Architecture) -> None:
    """Refuse what was not measured; `plan` is filled in.

    Raises:
        InputError: naming the option and the rule.
    """
    rule = ""
    if plan.reversible:
        rule = "chooses among layers that keep something, which reversible ones do not"
    elif plan.sharing_groups < architecture.shared_layers:
        rule = "was not measured with layers that share weights"
    elif not type_of(architecture).counted:
        rule = f"is an option of transformers, which has no class of {architecture.name}"
    if rule:
        raise InputError("checkpoint_every", plan.checkpoint_every, f"{rule}: must be 1")


def every_note(plan: Plan) -> str:
    """A sentence on the layers that are computed again."""
    first = ", ".join(str(1 + place * plan.checkpoint_every) for place in range(3))
    return (
        f"Layers {first} and so on are computed again; the others keep their activations, as with "
        "transformers' every_n_layers."
    )
