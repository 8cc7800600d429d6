"""A frozen base in 4 bits: QLoRA, with bitsandbytes' nf4 or fp4.

Every linear layer except the output layer is packed. The rest, embeddings, norms and the output
layer, is in 32 bits under `fp32` and `amp`, as peft's `prepare_model_for_kbit_training` casts it,
and in 16 bits under `half` and `mixed`, as without it. Experts are not linear layers, and stay.

Source: qlora, bitsandbytes, peft (utils/other.py)
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from calculator.architecture import Architecture
from calculator.autograd.dtypes import FLOAT32, UINT8, DType
from calculator.layers.basic import Conv1D, Linear
from calculator.layers.heads import OUTPUTS
from calculator.layers.layer import Buffer, Layer
from calculator.layers.packed import BLOCK, OUTER_BLOCK, Packed
from calculator.plan import BaseBits, Plan, Precision
from calculator.techniques.effect import Answer, Effect

# bitsandbytes' own table of 256 values for scales in 8 bits, of which each layer has a copy
SHARED_BYTES: Final = 256 * 4


@dataclass(frozen=True, slots=True)
class Quantization:
    """Linear layers with packed weights, their scales perhaps in 8 bits too (`double`).

    bitsandbytes brings biases into the `format` of products where that has 16 bits. Where the model
    is `sharded`, packed weights are stored in it, and FSDP gathers biases in the format of the
    other weights: each GPU keeps a whole copy of those that are `widened`, made in the first step.

    Source: bitsandbytes (nn/modules.py, Linear4bit.forward), fsdp2 (_fsdp_param.py)
    """

    double: bool
    format: DType
    sharded: bool = False
    widened: bool = False

    def rewrite(self, layer: Layer) -> None:
        """Pack the weight of a linear layer of transformers' own kinds."""
        if type(layer) in (Linear, Conv1D):
            assert isinstance(layer, Linear | Conv1D)
            if layer.name in OUTPUTS:
                return
            storage = self.format if self.sharded else UINT8
            layer.packed = Packed(layer.inputs, layer.outputs, self.double, storage)
            del layer.weight
            if layer.bias is None or self.format is FLOAT32:
                return
            if not self.sharded:
                layer.bias.dtype = self.format
            elif self.widened and not layer.bias.idle:  # ESM-2's contact head never runs
                layer.packed.bias = Buffer(layer.bias.shape, self.format)


def packed_bytes(elements: int, *, double: bool) -> int:
    """Bytes of weights in 4 bits with their scales, as one tensor.

    >>> packed_bytes(4096 * 4096, double=False) / (4096 * 4096)  # 4 bits, and 32 for 64 of them
    0.5625

    Source: qlora (section 3), bitsandbytes (functional.py, quantize_4bit)
    """
    scales = -(-elements // BLOCK)
    return elements // 2 + (scales + 4 * -(-scales // OUTER_BLOCK) if double else 4 * scales)


def _layers(_: Architecture, plan: Plan) -> Iterator[Quantization]:
    products = FLOAT32 if plan.precision is Precision.FP32 else plan.half
    widened = plan.precision is Precision.AMP
    yield Quantization(plan.quantization.is_double, products, plan.is_sharded, widened)


def _notes(answer: Answer) -> Iterator[str]:
    if all(each.packed == 1 for each in answer.tensors()):
        yield (
            "Nothing is packed: transformers packs linear layers of PyTorch's own class alone, and "
            "those of this model are of another."
        )
        return
    bits = answer.plan.weight_bytes * 8
    cast = ", as prepare_model_for_kbit_training casts it" if bits > 16 else ""
    yield (
        "Every linear layer except the output layer is packed into 4 bits; the rest is in "
        f"{bits} bits{cast}. Each product unpacks its whole weight; for 1,536 tokens or fewer, "
        "bitsandbytes may use a kernel that does not."
    )


EFFECT: Final = Effect(
    used=lambda plan: plan.quantization is not BaseBits.NONE, layers=_layers, notes=_notes
)
