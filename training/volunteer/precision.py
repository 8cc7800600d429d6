"""In which precision a device computes: what it has units for."""

from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the pages that ask about it do without
    import torch

WITH_BFLOAT16 = (8, 0)  # compute capability; older GPUs (T4, V100, P100) only emulate it


class Precision(StrEnum):
    """The type that matrices are multiplied in; weights and their gradients are in float32."""

    FLOAT32 = "float32"
    BFLOAT16 = "bfloat16"
    FLOAT16 = "float16"  # with a scale, since small gradients vanish in it


def choose_precision(device: "torch.device") -> Precision:
    """Choose by what the device can do: float16 where a GPU has no units for bfloat16."""
    if device.type != "cuda":
        return Precision.FLOAT32
    import torch

    capable = torch.cuda.get_device_capability(device) >= WITH_BFLOAT16
    return Precision.BFLOAT16 if capable else Precision.FLOAT16
