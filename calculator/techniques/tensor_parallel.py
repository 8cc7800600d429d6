"""Tensor parallelism: several GPUs compute each layer of one micro-batch together.

Counted is PyTorch's `parallelize_module`, with `ColwiseParallel` for the projections of queries,
keys, values, gate and up, and `RowwiseParallel` for those of the outputs: each GPU has its share of
the heads and of the feed-forward width. Embeddings, norms and the output layer are whole on each,
and so is the stream between the layers. The output of a layer's two halves is summed over all GPUs
in the forward pass, and the gradient of each column-wise input in the backward pass; each sum is
made in a copy.

With `sequence_parallel` each GPU has, between the layers' products, only its part of every sequence
(`SequenceParallel` for the norms). Both halves of a layer gather all tokens (`PrepareModuleInput`),
and scatter the sum of their outputs; in the backward pass it is the other way round. The embeddings
are cut to the part, and the output layer gathers the last hidden states. All tensors of the stream
are DTensors, to whose gradients PyTorch adds none in place.

What is split is a DTensor, and so are the norms of split tokens. PyTorch's foreach and fused
updates take no DTensors beside plain tensors: the optimizer has a group of parameters for each.

Beside a split projection one product of an adapter is split too: the second where outputs are, the
first where inputs are, and the other is whole on each GPU.

With FSDP every GPU has a shard of its share: `fully_shard` on the other axis of the mesh.

Source: tensor_parallel, torch (distributed/tensor/parallel/style.py, distributed/tensor/_api.py,
distributed/tensor/_redistribute.py, distributed/tensor/parallel/ddp.py)
"""

from dataclasses import dataclass, replace
from typing import Final

from calculator.architecture import Architecture
from calculator.errors import InputError
from calculator.layers.basic import Projection, RMSNorm, Split
from calculator.layers.decoder import DecoderBlock
from calculator.layers.layer import Layer, parameters_of
from calculator.models.decoder import HIDDEN, Decoder
from calculator.models.registry import build, type_of
from calculator.plan import (
    BaseBits,
    Checkpointing,
    Optimizer,
    Plan,
    Update,
)
from calculator.techniques.beside import refuse_beside
from calculator.techniques.lora import HEAD, linear_names

OPTIMIZERS: Final = (Optimizer.ADAM, Optimizer.SGD, Optimizer.MOMENTUM)
KEYS: Final = "key_value_heads"
COLUMNS: Final = ("q_proj", "k_proj", "v_proj", "gate_proj", "up_proj")
ROWS: Final = ("o_proj", "down_proj")


@dataclass(frozen=True, slots=True)
class TensorParallel:
    """Projections of which each GPU computes a share; perhaps of its part of each sequence."""

    in_parts: bool = False

    def rewrite(self, layer: Layer) -> None:
        """Say which side of a projection is split, and where tokens are."""
        match layer:
            case Projection(name=name) if name in ROWS:
                layer.split = Split.SCATTERED if self.in_parts else Split.ROWS
            case Projection(name=name) if name in COLUMNS:
                layer.split = None if self.in_parts else Split.COLUMNS
            case RMSNorm(width=width) if self.in_parts and width is HIDDEN:  # not those of heads
                layer.weight.is_summed = True
            case DecoderBlock() | Decoder():
                layer.in_parts = self.in_parts
                return
            case _:
                return
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
    """Refuse what does not divide evenly, or is not counted; `plan` is filled in.

    Raises:
        InputError: naming the option and the rule.
    """
    gpus = plan.tensor_parallel
    if gpus == 1:
        rule = "one GPU has all tokens: must be false, or tensor_parallel at least 2"
        raise InputError("sequence_parallel", True, rule)
    if others := _undivided(architecture):
        rule = f"no side is counted for the projections {', '.join(others)}: must be 1"
        raise InputError("tensor_parallel", gpus, rule)
    parts = {
        "heads": architecture.heads,
        "heads of keys and values": architecture.numbers[KEYS],
        "channels of the feed-forward layer": architecture.feed_forward_size,
    }
    uneven = [f"{number:,} {name}" for name, number in parts.items() if number % gpus]
    if uneven:
        raise InputError("tensor_parallel", gpus, f"must divide the {' and the '.join(uneven)}")
    if plan.sequence_parallel and plan.sequence_length % gpus:
        rule = f"{gpus:,} GPUs do not divide {plan.sequence_length:,} tokens evenly: must be false"
        raise InputError("sequence_parallel", True, rule)
    if plan.replicas > 1 and not plan.is_sharded:
        rule = (
            "DistributedDataParallel makes new parameters of split weights in every forward pass, "
            "and the optimizer has the first ones: must be fsdp or zero2 beside tensor_parallel"
        )
        raise InputError("data_parallel", plan.data_parallel, rule)
    _check_beside(plan)


def _undivided(architecture: Architecture) -> list[str]:
    """Products of the layers that are not divided here, experts among them."""
    if not issubclass(type_of(architecture), Decoder):
        return ["of this type"]
    model = build(architecture, True)
    names = {name for name in linear_names(model) if name not in (*COLUMNS, *ROWS, HEAD)}
    return sorted(names | ({"experts"} if architecture.has("experts") else set()))


def _check_beside(plan: Plan) -> None:
    """Refuse options that are not counted with it."""
    left_out = {
        # of split tokens RowwiseParallel makes DTensors, to which no plain tensors are added
        "lora": bool(plan.lora) and plan.sequence_parallel,
        "checkpointing": bool(plan.lora) and plan.checkpointing is not Checkpointing.NONE,
        # nobody cuts the rows of packed weights
        "quantization": plan.quantization is not BaseBits.NONE,
        "optimizer": plan.optimizer not in OPTIMIZERS,
        "optimizer_bits": plan.optimizer_bits != plan.own_bits,
        # PyTorch has no fused SGD of DTensors
        "update": plan.update is Update.FUSED and plan.optimizer is not Optimizer.ADAM,
    }
    refuse_beside(plan, "tensor_parallel", left_out)


def reads_of(plan: Plan) -> int:
    """Operations of an update that read a gradient; for each, its parts are summed again.

    Shards are made of gradients that were summed before.
    """
    if plan.is_sharded:
        return plan.accumulation
    adam = plan.optimizer is Optimizer.ADAM
    return 3 if adam and plan.update is not Update.FUSED else 1


def split_note(plan: Plan) -> str:
    """A sentence on what each GPU has."""
    beside = (
        f" Between the products each has {plan.sequence_length // plan.tensor_parallel:,} of the "
        f"{plan.sequence_length:,} tokens of every sequence."
    )
    return (
        f"Each of {plan.tensor_parallel:,} GPUs reads the same micro-batch and has its share of "
        "every layer's heads and feed-forward width; embeddings, norms and the output layer are "
        f"whole on each.{beside if plan.sequence_parallel else ''} All need the same."
    )
