"""LoRA by peft itself."""

import gc
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import torch
from torch import nn

from calculator.plan import BaseBits, Plan, Precision
from calculator.program.model import TYPES_OF_PEFT
from calculator.task import ENDINGS
from calculator.techniques.lora import ALL_LINEAR, EMBEDDINGS, HEAD, split
from validation.mesh import is_sharded
from validation.models import Task, half_type, watcher_of
from validation.tasks import HEADS


def add_adapters(task: Task, plan: Plan) -> Task:
    """The model as peft freezes and adapts it; called after gradient checkpointing is enabled.

    peft asks for the gradient of the token embeddings where it finds checkpointing on.
    """
    if not plan.lora:
        return task
    import peft

    if plan.quantization is not BaseBits.NONE:
        _pack(task.model, plan)

    targets: Any = plan.lora_targets or None  # peft's own
    if targets and targets != ALL_LINEAR:
        targets = [*split(targets)]
    config = peft.LoraConfig(
        r=plan.lora,
        target_modules=targets,
        lora_dropout=plan.lora_dropout,
        bias=plan.lora_bias.value,
        task_type=TYPES_OF_PEFT.get(plan.task),
        modules_to_save=_copied(task.model, plan),
    )
    model = peft.get_peft_model(task.model, config)
    return replace(task, model=model, watch=watcher_of(model.get_base_model()))


def _copied(model: Any, plan: Plan) -> list[str] | None:
    """The class's own names of the tables that are trained whole; peft passes over other names.

    A table that encoder and decoder share is read by neither: both have it under peft's own name.
    """
    asked = split(plan.lora_modules or "")
    shared = [EMBEDDINGS] if EMBEDDINGS in asked and hasattr(model.base_model, "shared") else []
    tables = {EMBEDDINGS: model.get_input_embeddings(), HEAD: model.get_output_embeddings()}
    wanted = [tables[name] for name in asked if name not in shared]
    paths = [path for path, module in model.named_modules() if any(module is it for it in wanted)]
    return [*shared, *(path.rpartition(".")[2] for path in paths)] or None


def make_tables(plan: Plan, device: str) -> None:
    """Let bitsandbytes make the tables that it keeps for all models of a process."""
    if plan.quantization is BaseBits.NONE:
        return
    import bitsandbytes

    kind = plan.quantization.partition("-")[0]
    weight = torch.zeros((64, 64), dtype=torch.bfloat16, device=device)
    bitsandbytes.functional.quantize_4bit(weight, compress_statistics=True, quant_type=kind)


def _pack(model: Any, plan: Plan) -> None:
    """Replace linear layers as `from_pretrained` with a BitsAndBytesConfig does; cast as peft.

    Users leave out the head of another task. transformers leaves out none that has a bias: it looks
    for the module of the last weight, whose path is then the bias's (`get_keys_to_not_convert`).
    """
    import bitsandbytes
    import peft
    from transformers.pytorch_utils import Conv1D

    _count_kernels()
    bitsandbytes.functional.name2qmap.pop("dynamic", None)  # a table of this model's own
    kind = plan.quantization.partition("-")[0]
    dtype = torch.float32 if plan.precision is Precision.FP32 else half_type(plan)
    # FSDP gathers tensors of one format only, for which bitsandbytes stores bytes as if they had it
    storage = dtype if is_sharded(plan) else torch.uint8
    for path, module in list(model.named_modules()):
        turned = isinstance(module, Conv1D)
        if (
            (path.split(".")[0] in HEADS and plan.task in ENDINGS)
            or path.split(".")[-1] in model._keep_in_fp32_modules
            or module is model.get_output_embeddings()
            or not (turned or type(module) is nn.Linear)
        ):
            continue
        shape = module.weight.T.shape if turned else module.weight.shape
        made = bitsandbytes.nn.Linear4bit(
            *(shape[1], shape[0], module.bias is not None, dtype),
            *(plan.quantization.is_double, kind, storage),
        )
        made.weight = bitsandbytes.nn.Params4bit(
            torch.zeros(shape, dtype=dtype, device="cpu"),
            requires_grad=False,
            compress_statistics=plan.quantization.is_double,
            quant_type=kind,
            quant_storage=storage,
            module=made,
        )
        made.bias = None
        made.to(module.weight.device)
        made.bias = module.bias
        parent, _, name = path.rpartition(".")
        setattr(model.get_submodule(parent), name, made)
        del made
    del module
    gc.collect()  # the modules that were replaced
    model.is_loaded_in_4bit = model.is_quantized = True
    if plan.precision in (Precision.FP32, Precision.AMP):
        peft.prepare_model_for_kbit_training(
            model, use_gradient_checkpointing=False, auto_clear_cache=False
        )


@cache
def _count_kernels() -> torch.library.Library:
    """Let the counting device see what kernels on CUDA allocate.

    Without a card bitsandbytes has its code for processors alone, which unpacks a weight in many
    steps. The library lives as long as this.
    """
    library = torch.library.Library("bitsandbytes", "IMPL")
    library.impl("gemm_4bit", _whole_product, "CUDA")
    library.impl("dequantize_4bit", _unpacked, "CUDA")
    library.impl("dequantize_blockwise", _wide_scales, "CUDA")
    return library


def _unpacked(
    packed: torch.Tensor,
    absmax: torch.Tensor,
    blocksize: int,
    kind: str,
    shape: Sequence[int],
    dtype: torch.dtype,
) -> torch.Tensor:
    """Allocate as bitsandbytes does for a whole weight on CUDA (`dequantize_4bit`)."""
    return torch.empty(shape, dtype=dtype, device=packed.device)


def _wide_scales(
    packed: torch.Tensor,
    absmax: torch.Tensor,
    code: torch.Tensor,
    blocksize: int,
    dtype: torch.dtype,
) -> torch.Tensor:
    """Allocate as bitsandbytes does for scales in 8 bits on CUDA (`dequantize_blockwise`)."""
    return torch.empty_like(packed, dtype=dtype)


def _whole_product(
    x: torch.Tensor,
    packed: torch.Tensor,
    shape: Sequence[int],
    absmax: torch.Tensor,
    blocksize: int,
    kind: str,
    bias: torch.Tensor | None = None,
    absmax_8bit: torch.Tensor | None = None,
    absmax_code: torch.Tensor | None = None,
    absmax_offset: torch.Tensor | None = None,
) -> torch.Tensor:
    """Allocate as bitsandbytes does for a product of many tokens on CUDA (`gemm_4bit`)."""
    if absmax_8bit is not None and absmax_offset is not None:
        wide = torch.empty_like(absmax_8bit, dtype=torch.float32)
        absmax = wide + absmax_offset  # held to the end, as `wide` is
    weight = torch.empty(shape, dtype=x.dtype, device=x.device)
    out = nn.functional.linear(x, weight, bias)
    del absmax
    return out
