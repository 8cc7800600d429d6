"""A plan's GPUs as one mesh: stages, then replicas, then the GPUs that share each layer.

Replicas read other sequences, or other parts of them (context parallelism); gradients and shards
are theirs. Which GPU is measured is a place on every axis.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, Final

from calculator.errors import InputError
from calculator.plan import DataParallel, Plan

PIPELINE: Final = "pipeline"
REPLICAS: Final = "replicas"
LAYERS: Final = "layers"


@dataclass(frozen=True, slots=True)
class Axes:
    """The sizes of a mesh; the last place changes first."""

    pipeline: int
    replicas: int
    layers: int

    @property
    def sizes(self) -> dict[str, int]:
        """The sizes by name, in order."""
        return {PIPELINE: self.pipeline, REPLICAS: self.replicas, LAYERS: self.layers}

    @property
    def world(self) -> int:
        """All GPUs."""
        return prod(self.sizes.values())

    def places(self, rank: int) -> dict[str, int]:
        """The place of a rank on every axis."""
        rank, layer = divmod(rank, self.layers)
        stage, replica = divmod(rank, self.replicas)
        return {PIPELINE: stage, REPLICAS: replica, LAYERS: layer}

    def rank(self, places: Mapping[str, int]) -> int:
        """The rank at these places; the first on axes that are not named."""
        found = 0
        for name, size in self.sizes.items():
            found = found * size + places.get(name, 0)
        return found


def axes_of(plan: Plan) -> Axes:
    """The axes of a plan's GPUs; where their number is left out, it is the others' product.

    Raises:
        InputError: if the others do not divide the GPUs.
    """
    layers = plan.tensor_parallel * plan.expert_parallel
    least = plan.pipeline_parallel * plan.context_parallel * layers
    gpus = plan.gpus if plan.gpus > 1 else least
    if gpus % least:
        raise InputError("gpus", gpus, f"must be a multiple of {least:,}, the product of the axes")
    return Axes(plan.pipeline_parallel, gpus // plan.pipeline_parallel // layers, layers)


def is_sharded(plan: Plan) -> bool:
    """True if FSDP cuts the weights among replicas."""
    return axes_of(plan).replicas > 1 and plan.data_parallel in (
        DataParallel.FSDP,
        DataParallel.ZERO2,
    )


@dataclass(frozen=True)
class Mesh:
    """PyTorch's mesh of a plan's GPUs on a kind of device, made once for all techniques."""

    axes: Axes
    device: str

    @cached_property
    def whole(self) -> Any:
        """PyTorch's mesh of the axes that have more than one place."""
        from torch.distributed.device_mesh import init_device_mesh

        sizes = {name: size for name, size in self.axes.sizes.items() if size > 1}
        return init_device_mesh(self.device, tuple(sizes.values()), mesh_dim_names=tuple(sizes))

    def __getitem__(self, name: str) -> Any:
        """The mesh of one axis, seen from this rank."""
        return self.whole[name]

    @cached_property
    def places(self) -> dict[str, int]:
        """Place of this rank on every axis."""
        import torch.distributed as dist

        return self.axes.places(dist.get_rank())

    def ranks_along(self, name: str, places: range) -> list[int]:
        """The ranks at some places of an axis, which stand where this one does on the others."""
        return [self.axes.rank({**self.places, name: place}) for place in places]
