"""Bytes over the bus: checkpointed layers' inputs by PyTorch's own wrapper, and FSDP's shards."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import torch
from torch import nn
from torch.autograd.graph import save_on_cpu
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import offload_wrapper
from torch.distributed.tensor import DTensor

from calculator.plan import ActivationOffload, Plan
from validation.models import layer_lists


@dataclass
class Moved:
    """Bytes that tensors took over the bus since the last step began."""

    to_ram: int = 0
    to_gpu: int = 0

    def forget(self) -> None:
        """Count from zero again."""
        self.to_ram = self.to_gpu = 0


def offload_inputs(model: nn.Module, plan: Plan) -> None:
    """Put checkpointed layers into PyTorch's wrapper; called after checkpointing is enabled."""
    if plan.activation_offload is ActivationOffload.NONE:
        return
    for layers in layer_lists(model):
        for place, layer in enumerate(layers):
            if layer.gradient_checkpointing:
                layers[place] = offload_wrapper(layer)


@contextmanager
def followed(plan: Plan, moved: Moved) -> Iterator[None]:
    """Bytes that go to RAM are counted; the wrapper's RAM is pinned or not, as the plan says."""
    moved.forget()
    with ExitStack() as stack:
        if plan.activation_offload is not ActivationOffload.NONE:
            module = "torch.distributed.algorithms._checkpoint.checkpoint_wrapper"
            stack.enter_context(patch(f"{module}.save_on_cpu", _counted_hooks(plan, moved)))
        if plan.cpu_offload:
            stack.enter_context(patch("torch.Tensor.to", _counted_copies(moved)))
        yield


def _counted_copies(moved: Moved) -> Callable[..., torch.Tensor]:
    """PyTorch's own `Tensor.to`, by which FSDP moves shards; its copies are counted."""
    plain = torch.Tensor.to

    def to(tensor: torch.Tensor, *words: Any, **options: Any) -> torch.Tensor:
        options.pop("non_blocking", None)  # it would ask CUDA for pinned RAM
        made = plain(tensor, *words, **options)
        if made.device != tensor.device:
            if made.device.type == "cpu":
                moved.to_ram += made.nbytes
            else:
                moved.to_gpu += made.nbytes
        return made

    return to


def _counted_hooks(plan: Plan, moved: Moved) -> type[save_on_cpu]:
    """PyTorch's own hooks, whose tensors are counted."""
    pinned = plan.activation_offload is ActivationOffload.PINNED

    class Counted(save_on_cpu):
        def __init__(self, pin_memory: bool = False) -> None:
            del pin_memory
            super().__init__(pin_memory=pinned)
            pack, unpack = self.pack_hook, self.unpack_hook

            def packed(tensor: torch.Tensor) -> Any:
                found = pack(tensor)
                moved.to_ram += own_bytes(found[1])
                return found

            def unpacked(found: Any) -> torch.Tensor:
                if not plan.cpu_offload:  # else `Tensor.to`, which brings it back, is counted
                    moved.to_gpu += own_bytes(found[1])
                return unpack(found)

            self.pack_hook, self.unpack_hook = packed, unpacked

    return Counted


def own_bytes(tensor: torch.Tensor) -> int:
    """Bytes of a tensor, of a distributed one those of this rank."""
    own = tensor.to_local() if isinstance(tensor, DTensor) else tensor
    return own.nbytes
