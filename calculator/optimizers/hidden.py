"""Optimizers that update the matrices of hidden layers, and leave all else to AdamW.

Embeddings and output layers are tables, which their authors leave to it, as they do vectors.
"""

from collections.abc import Sequence
from typing import Final

from calculator.plan import Plan
from calculator.tensors import ParameterTensor

_TABLES: Final = (
    "tables = [",
    "    module for module in model.modules() if isinstance(module, torch.nn.Embedding)",
    "]",
)
# of the class inside whatever wraps it, or of a pipeline's last stage
_HEADS: Final = (
    "tables += [",
    "    module.get_output_embeddings()",
    "    for module in model.modules()",
    '    if hasattr(module, "get_output_embeddings")',
    "]",
)
_LAST: Final = (
    "tables += [module.head for module in model.modules() if isinstance(module, Stage)]",
)
_HIDDEN: Final = (
    "known = [table.weight for table in tables if table is not None]",
    "hidden = [",
    "    weight.ndim == 2 and all(weight is not table for table in known)",
    "    for weight in weights",
    "]",
)


def is_hidden(item: ParameterTensor) -> bool:
    """True for the matrices of hidden layers."""
    return len(item.shape) == 2 and not item.table


def split(
    tensors: Sequence[ParameterTensor],
) -> tuple[list[ParameterTensor], list[ParameterTensor]]:
    """The matrices of hidden layers, and all else."""
    others = [item for item in tensors if not is_hidden(item)]
    return [item for item in tensors if is_hidden(item)], others


def split_lines(title: str, tensors: str, plan: Plan) -> list[str]:
    """Lines of a program that split `tensors` into `matrices` and `others`."""
    return [
        f"# {title} is for the matrices of hidden layers, not for embeddings or the output layer.",
        *_TABLES,
        *(_HEADS if plan.pipeline_parallel == 1 else _LAST),
        *_HIDDEN,
        *_chosen("matrices", tensors, "inside"),
        *_chosen("others", tensors, "not inside"),
    ]


def _chosen(name: str, tensors: str, condition: str) -> list[str]:
    pairs = f"for item, inside in zip({tensors}, hidden, strict=True)"
    return [f"{name} = [item {pairs} if {condition}]"]
