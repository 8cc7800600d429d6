"""Tensor parallelism: several GPUs compute each layer of one micro-batch together.

Counted is PyTorch's `parallelize_module`, with `ColwiseParallel` for the projections of queries,
keys, values, gate and up, and `RowwiseParallel` for those of the outputs: each GPU has its share of
the heads and of the feed-forward width. Embeddings, norms and the output layer are whole on each,
and so is the stream between the layers. The output of a layer's two halves is summed over all GPUs
in the forward pass, and the gradient of each column-wise input in the backward pass; each sum is
made in a copy.

What is split is a DTensor, and PyTorch's foreach and fused updates take no DTensors beside plain
tensors: the optimizer has a group of parameters for each.

Source: tensor_parallel, torch (distributed/tensor/parallel/style.py, distributed/tensor/_api.py,
distributed/tensor/_redistribute.py)
"""

from dataclasses import dataclass, replace
from typing import Final

from calculator.architecture import Architecture
from calculator.errors import InputError
from calculator.layers.basic import Projection, Split
from calculator.layers.layer import Layer, parameters_of
from calculator.models.measured import Technique
from calculator.models.registry import not_measured
from calculator.plan import (
    ActivationOffload,
    ChunkedLoss,
    Offload,
    Optimizer,
    Plan,
)

OPTIMIZERS: Final = (Optimizer.ADAM, Optimizer.SGD, Optimizer.MOMENTUM)
KEYS: Final = "key_value_heads"
COLUMNS: Final = ("q_proj", "k_proj", "v_proj", "gate_proj", "up_proj")
ROWS: Final = ("o_proj", "down_proj")


@dataclass(frozen=True, slots=True)
class TensorParallel:
    """Projections of which each GPU computes a share."""

    def rewrite(self, layer: Layer) -> None:
        """Say which side of a projection is split."""
        if not isinstance(layer, Projection) or layer.name not in (*COLUMNS, *ROWS):
            return
        layer.split = Split.COLUMNS if layer.name in COLUMNS else Split.ROWS
        for parameter in parameters_of(layer):
            parameter.is_split = True


def share_of(architecture: Architecture, plan: Plan) -> Architecture:
    """The shape of the part of a model that one of a plan's GPUs has."""
    if plan.tensor_parallel == 1:
        return architecture
    gpus = plan.tensor_parallel
    more = tuple(
        (name, number // gpus if name == KEYS else number) for name, number in architecture.more
    )
    return replace(
        architecture,
        heads=architecture.heads // gpus,
        feed_forward_size=architecture.feed_forward_size // gpus,
        more=more,
    )


def check_tensor_parallel(plan: Plan, architecture: Architecture) -> None:
    """Refuse what does not divide evenly, or was not measured; `plan` is filled in.

    Raises:
        InputError: naming the option and the rule.
    """
    gpus = plan.tensor_parallel
    if rule := not_measured(Technique.TENSOR_PARALLEL, architecture.family):
        raise InputError("tensor_parallel", gpus, f"was {rule}: must be 1")
    parts = {
        "heads": architecture.heads,
        "heads of keys and values": architecture.numbers[KEYS],
        "channels of the feed-forward layer": architecture.feed_forward_size,
    }
    uneven = [f"{number:,} {name}" for name, number in parts.items() if number % gpus]
    if uneven:
        raise InputError("tensor_parallel", gpus, f"must divide the {' and the '.join(uneven)}")
    _check_beside(plan)


def _check_beside(plan: Plan) -> None:
    """Refuse options that were not measured with it."""
    left_out = {
        "gpus": plan.gpus > 1,
        "lora": bool(plan.lora),
        "offload": plan.offload is not Offload.NONE,
        "update_in_backward": plan.update_in_backward,
        "activation_offload": plan.activation_offload is not ActivationOffload.NONE,
        "chunked_loss": plan.chunked_loss is not ChunkedLoss.NONE,
        "reversible": plan.reversible,
        "optimizer": plan.optimizer not in OPTIMIZERS,
        "optimizer_bits": plan.optimizer_bits != plan.own_bits,
    }
    for name, used in left_out.items():
        if used:
            value = getattr(plan, name)
            raise InputError(
                "tensor_parallel",
                plan.tensor_parallel,
                f"was not measured with {name} = {value}: must be 1",
            )


def split_note(plan: Plan) -> str:
    """A sentence on what each GPU has."""
    return (
        f"Each of {plan.tensor_parallel:,} GPUs reads the same micro-batch and has its share of "
        "every layer's heads and feed-forward width; embeddings, norms and the output layer are "
        "whole on each. All need the same."
    )
