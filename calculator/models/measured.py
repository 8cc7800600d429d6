"""Techniques that a model type was measured with."""

from typing import Final

from calculator.choice import Choice


class Technique(Choice):
    """Techniques that are counted only for types whose steps were measured with them.

    `FSDP_LORA` is adapters under FSDP.
    """

    CHUNKED_LOSS = "chunked_loss"
    ACTIVATION_OFFLOAD = "activation_offload"
    GRADIENT_SCALER = "gradient_scaler"
    QUANTIZATION = "quantization"
    FSDP = "fsdp"
    FSDP_LORA = "fsdp_lora"
    TENSOR_PARALLEL = "tensor_parallel"
    CONTEXT_PARALLEL = "context_parallel"
    EXPERT_PARALLEL = "expert_parallel"
    PIPELINE = "pipeline"
    LORA_BIAS = "lora_bias"
    LORA_MODULES = "lora_modules"


# what most types since Llama were measured with on one GPU
SAVING: Final = frozenset(
    {
        Technique.CHUNKED_LOSS,
        Technique.ACTIVATION_OFFLOAD,
        Technique.GRADIENT_SCALER,
        Technique.QUANTIZATION,
    }
)
SHARDED: Final = frozenset({Technique.FSDP, Technique.FSDP_LORA})
