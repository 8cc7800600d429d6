"""Tensor parallelism: several GPUs compute each layer of one micro-batch together.

Counted is PyTorch's `parallelize_module`, with `ColwiseParallel` for the products whose outputs are
heads or the feed-forward width, and `RowwiseParallel` for those whose inputs are: each GPU has its
share of both. The experts of a layer are divided likewise, each by its width, as transformers does
it: their outputs are summed in place. Embeddings, norms and the output layer are whole on each,
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
distributed/tensor/_redistribute.py, distributed/tensor/parallel/ddp.py), transformers
(distributed/tensor_parallel.py, and each class's `base_model_tp_plan`)
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from calculator.architecture import Architecture
from calculator.autograd.ledger import ALL_REDUCE
from calculator.autograd.sizes import Size
from calculator.layers.basic import LayerNorm, Projection, RMSNorm, Split
from calculator.layers.decoder import DecoderBlock
from calculator.layers.experts import Experts
from calculator.layers.layer import Layer, parameters_of
from calculator.models.decoder import HIDDEN, Decoder
from calculator.models.model import Model
from calculator.models.registry import type_of
from calculator.peaks.step import Prepared
from calculator.plan import Optimizer, Plan, Update
from calculator.states import sent_by_update
from calculator.techniques.collectives import Collective, Group
from calculator.techniques.effect import Answer, Effect, Tensors

KEYS: Final = "key_value_heads"
FEED: Final = "feed_forward_size"
INNER: Final = "expert_size"
# projections that are one head wide where each GPU has one head of keys and values
ONE_HEAD: Final = ("k_proj", "v_proj")
BYTES_OF_ROWS: Final = 16  # PyTorch multiplies groups of rows that are whole pieces of so many
# the numbers of which each GPU has a share, in words
DIVIDED: Final = {
    "heads": "heads",
    KEYS: "heads of keys and values",
    FEED: "channels of the feed-forward layer",
    INNER: "channels of an expert",
    "shared_size": "channels of the shared expert",
    "global_key_value_heads": "heads of keys and values of global layers",
}


@dataclass(frozen=True, slots=True)
class TensorParallel:
    """Projections of which each GPU computes a share; perhaps of its part of each sequence.

    Of numbers whose names are `divided` each GPU has a share.
    """

    divided: tuple[str, ...]
    in_parts: bool = False

    def rewrite(self, layer: Layer) -> None:
        """Say which side of a projection is split, and where tokens are."""
        match layer:
            case Projection() if self.is_divided(layer.inputs):
                layer.split = Split.SCATTERED if self.in_parts else Split.ROWS
                layer.weight.axis = layer.weight.shape.index(layer.inputs)
            case Projection() if self.is_divided(layer.outputs) or self.has_one_head(layer):
                layer.split = None if self.in_parts else Split.COLUMNS
                layer.weight.axis = layer.weight.shape.index(layer.outputs)
            case Experts():
                layer.are_shares = True
            case RMSNorm(width=width) | LayerNorm(width=width) if self.in_parts and width is HIDDEN:
                for parameter in parameters_of(layer):  # not those of heads
                    parameter.is_summed = True
            case DecoderBlock() | Decoder():
                layer.in_parts = self.in_parts
                return
            case _:
                return
        for parameter in parameters_of(layer):
            parameter.is_split = True

    def is_divided(self, width: Size) -> bool:
        """True if each GPU has a share of a width: of heads, or of a feed-forward layer."""
        return any(
            dimension.name in self.divided or any(map(self.is_divided, dimension.bases))
            for dimension in width.dimensions
        )

    def has_one_head(self, layer: Projection) -> bool:
        """True if it makes the one head of keys or values that a GPU may have."""
        return KEYS in self.divided and layer.name in ONE_HEAD


def side_of(projection: Projection) -> Split | None:
    """The side of a product's weight that is divided, if one is, in a model that was changed.

    A packed one is whole on each GPU.
    """
    if projection.packed is not None:
        return None
    weight = projection.weight
    if weight.axis is None:
        return None
    return Split.ROWS if weight.shape[weight.axis] is projection.inputs else Split.COLUMNS


def divided_in(kind: type[Model]) -> tuple[str, ...]:
    """The names of the numbers that a type's GPUs divide."""
    return tuple(each for each in DIVIDED if not (kind.whole_heads and each.endswith("heads")))


def share_of(architecture: Architecture, plan: Plan) -> Architecture:
    """The shape of the part of a model that one of a plan's GPUs has."""
    if plan.tensor_parallel == 1:
        return architecture
    divided = divided_in(type_of(architecture))

    def share(name: str, number: int) -> int:
        return number // plan.tensor_parallel if name in divided else number

    return replace(
        architecture,
        heads=share("heads", architecture.heads),
        feed_forward_size=share(FEED, architecture.feed_forward_size),
        more=tuple((name, share(name, number)) for name, number in architecture.more),
    )


def reads_of(plan: Plan) -> int:
    """Operations of an update that read a gradient; for each, its parts are summed again.

    Shards are made of gradients that were summed before.
    """
    if plan.is_sharded:
        return plan.accumulation
    adam = plan.optimizer in (Optimizer.ADAM, Optimizer.MUON)
    return 3 if adam and plan.update is not Update.FUSED else 1


def summed(plan: Plan, _: Prepared, tensors: Callable[[], Tensors]) -> Iterator[Collective]:
    """Gradients of split tokens' norms: summed once for each operation of the update that reads."""
    if not plan.is_sharded:
        yield from sent_by_update(plan, tensors, Group.LAYERS)
    if plan.sequence_parallel or plan.expert_parallel > 1:
        found = [each for each in tensors() if each.is_summed]
        sizes = [each.elements * plan.trained_bytes for each in found for _ in range(each.copies)]
        yield Collective(ALL_REDUCE, tuple(sizes) * reads_of(plan), Group.LAYERS)


def _notes(answer: Answer) -> Iterator[str]:
    """A sentence on what each GPU has."""
    plan = answer.plan
    beside = (
        f" Between the products each has {plan.sequence_length // plan.tensor_parallel:,} of the "
        f"{plan.sequence_length:,} tokens of every sequence."
    )
    experts_alone = type_of(answer.architecture).whole_heads
    parts = "layer's experts" if experts_alone else "layer's heads and feed-forward width"
    others = "attention, embeddings" if experts_alone else "embeddings"
    yield (
        f"Each of {plan.tensor_parallel:,} GPUs reads the same micro-batch and has its share of "
        f"every {parts}; {others}, norms and the output layer are "
        f"whole on each.{beside if plan.sequence_parallel else ''} All need the same."
    )


EFFECT: Final = Effect(
    used=lambda plan: plan.tensor_parallel > 1,
    layers=lambda architecture, plan: (
        TensorParallel(divided_in(type_of(architecture)), plan.sequence_parallel),
    ),
    exchanges=summed,
    notes=_notes,
)
