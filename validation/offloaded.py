"""Inputs of checkpointed layers in RAM, by PyTorch's own `offload_wrapper` and `save_on_cpu`."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import torch
from torch import nn
from torch.autograd.graph import save_on_cpu
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import offload_wrapper

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
    """Put each layer into PyTorch's wrapper; called after gradient checkpointing is enabled."""
    if plan.activation_offload is ActivationOffload.NONE:
        return
    for layers in layer_lists(model):
        for place, layer in enumerate(layers):
            layers[place] = offload_wrapper(layer)


@contextmanager
def followed(plan: Plan, moved: Moved) -> Iterator[None]:
    """The wrapper's RAM is pinned or not, as the plan says, and what goes there is counted."""
    moved.forget()
    if plan.activation_offload is ActivationOffload.NONE:
        yield
        return
    pinned = plan.activation_offload is ActivationOffload.PINNED

    class Counted(save_on_cpu):
        """PyTorch's own hooks, whose tensors are counted."""

        def __init__(self, pin_memory: bool = False) -> None:
            del pin_memory
            super().__init__(pin_memory=pinned)
            pack, unpack = self.pack_hook, self.unpack_hook

            def packed(tensor: torch.Tensor) -> Any:
                found = pack(tensor)
                moved.to_ram += found[1].nbytes
                return found

            def unpacked(found: Any) -> torch.Tensor:
                moved.to_gpu += found[1].nbytes
                return unpack(found)

            self.pack_hook, self.unpack_hook = packed, unpacked

    module = "torch.distributed.algorithms._checkpoint.checkpoint_wrapper"
    with patch(f"{module}.save_on_cpu", Counted):
        yield
