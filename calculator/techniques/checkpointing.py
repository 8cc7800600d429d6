"""Checkpointing of some layers, or of some operations, only.

Of layers every n-th one, the first included: counted is transformers' `every_n_layers`, which
numbers the layers of all stacks in one row. Those whose number n divides are computed again, the
others keep what they save.

Of operations all but the costly ones (`calculator.autograd.results`): counted is a layer computed
again in the contexts of PyTorch's `create_selective_checkpoint_contexts`. Its results of attention
and of every second matrix product are kept, as torchtitan's option `selective` with `op` keeps
them. There only products without a bias count, since its models have no others; here all do.

Source: checkpointing, transformers (modeling_utils.py, _set_gradient_checkpointing), torchtitan
(distributed/activation_checkpoint.py, _apply_op_sac)
"""

from collections.abc import Iterator
from typing import Final

from calculator.plan import Checkpointing
from calculator.techniques.effect import Answer, Effect

OPERATIONS_NOTE: Final = (
    "The results of attention's fused kernels and of every second matrix product of a layer are "
    "kept; everything else is recomputed, as in torchtitan's selective checkpointing by "
    "operation."
)


def keeping_of(layers: int, every: int, before: int) -> tuple[bool, ...]:
    """For each layer of a stack, true if it keeps its activations; `before` it are so many layers.

    >>> keeping_of(5, every=2, before=0)
    (False, True, False, True, False)

    Source: transformers (modeling_utils.py, _set_gradient_checkpointing)
    """
    return tuple((before + place) % every > 0 for place in range(layers))


def _notes(answer: Answer) -> Iterator[str]:
    """Sentences on what is kept, and on the layers that are computed again."""
    plan = answer.plan
    if plan.checkpointing is Checkpointing.OPERATIONS:
        yield OPERATIONS_NOTE
    if plan.checkpoint_every > 1:
        first = ", ".join(str(1 + place * plan.checkpoint_every) for place in range(3))
        yield (
            f"Layers {first} and so on are computed again; the others keep their activations, as "
            "with transformers' every_n_layers."
        )


EFFECT: Final = Effect(
    used=lambda plan: plan.checkpointing is not Checkpointing.NONE,
    mode=lambda plan: {"checkpointing": plan.checkpointing},
    notes=_notes,
)
