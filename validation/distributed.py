"""A model on many GPUs: layers shared, cut into stages, copied or in shards, in this order."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any, Final, assert_never

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from calculator.architecture import Architecture
from calculator.errors import InputError
from calculator.layers.ring import place_of
from calculator.parameters import parameter_tensors
from calculator.plan import BaseBits, DataParallel, Plan, Precision
from calculator.techniques.pipeline import part_of
from calculator.techniques.zero import fullest_rank, updated_parts
from validation.mesh import LAYERS, REPLICAS, Mesh, axes_of
from validation.models import Task, half_type, layer_lists
from validation.ranks import Ranks, note_together

# the ends of paths of linear layers that peft puts beside an adapter of its default name
BASE: Final = ".base_layer"
FIRST, SECOND = ".lora_A.default", ".lora_B.default"


def fullest(architecture: Architecture, plan: Plan, stage: int = 0) -> int:
    """The number of the replica to measure; under ZeRO 1, the one that holds most of a stage."""
    ring, replicas = plan.context_parallel, axes_of(plan).replicas
    if replicas == 1 or plan.data_parallel is not DataParallel.ZERO1:
        return place_of(ring) if ring > 1 else 0
    tensors = parameter_tensors(part_of(architecture, plan, stage), plan)
    return fullest_rank(updated_parts(tensors, replace(plan, gpus=axes_of(plan).world)), plan)


def distributed(task: Task, plan: Plan, mesh: Mesh) -> Task:
    """The task on many GPUs: layers are shared, then cut into stages, then copied or in shards."""
    if plan.tensor_parallel > 1:
        split(task.model, plan, mesh[LAYERS])
    if plan.expert_parallel > 1:
        from validation.spread import spread

        inner: Any = task.model.get_base_model() if plan.lora else task.model  # type: ignore[operator]
        spread(inner, plan, mesh, _fsdp_options(plan))
    replicated = partial(_replicated, plan=plan, mesh=mesh)
    if plan.pipeline_parallel > 1:
        from validation.pipeline import pipelined

        task = pipelined(task, plan, mesh, replicated)
    else:
        task = replace(task, model=replicated(task.model))
    note_together()
    return task


def _replicated(model: nn.Module, plan: Plan, mesh: Mesh) -> nn.Module:
    """A model, or a stage of it, as each of its replicas has it."""
    if mesh.axes.replicas == 1:
        return model
    match plan.data_parallel:
        case DataParallel.DDP | DataParallel.DDP_VIEW | DataParallel.ZERO1:
            view = plan.data_parallel is DataParallel.DDP_VIEW
            along: Any = {"device_mesh": mesh[REPLICAS]} if plan.divides_layers else {}
            if mesh.axes.pipeline > 1:
                along = {"process_group": mesh[REPLICAS].get_group()}
            made: Any = DistributedDataParallel(model, gradient_as_bucket_view=view, **along)
            if isinstance(made.process_group, Ranks):
                made.process_group.keeps_flat = True
            # its timers are made for CUDA
            made.logger = SimpleNamespace(set_runtime_stats_and_log=lambda: None)
            return made  # type: ignore[no-any-return]
        case DataParallel.FSDP | DataParallel.ZERO2:
            _shard(model, plan, mesh[REPLICAS])
            return model
        case other:
            assert_never(other)


def _shard(model: nn.Module, plan: Plan, mesh: Any) -> None:
    """FSDP2 by block and root."""
    from torch.distributed.fsdp import fully_shard

    blocks: Sequence[nn.Module] = [block for stack in layer_lists(model) for block in stack]
    for module in (*blocks, model):
        fully_shard(module, mesh=mesh, **_fsdp_options(plan))


def _fsdp_options(plan: Plan) -> dict[str, Any]:
    """Options of FSDP2 for a plan's data parallelism."""
    from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy

    options: dict[str, Any] = {}
    if plan.precision is Precision.MIXED:
        options["mp_policy"] = MixedPrecisionPolicy(half_type(plan), torch.float32)
    if plan.data_parallel is DataParallel.ZERO2:
        options["reshard_after_forward"] = False
    if plan.cpu_offload:
        options["offload_policy"] = CPUOffloadPolicy()
    return options


def split(model: nn.Module, plan: Plan, mesh: Any) -> None:
    """Each layer's products by shares; no GPU reads another's weights.

    Raises:
        InputError: for a class without projections of the names that are shared, and for packed
            weights, whose rows are no longer those of the matrix.
    """
    from torch.distributed.tensor import parallel

    if plan.quantization is not BaseBits.NONE:
        rule = "ColwiseParallel and RowwiseParallel cut no packed weights: must be none"
        raise InputError("quantization", plan.quantization, rule)
    styles = _styles(model, plan)
    names = {name for name, _ in model.named_modules()}
    shares: dict[str, Any] = {}
    for path in names:
        made = next((styles[end] for end in styles if f".{path}".endswith(end)), None)
        if made is not None:
            shares |= dict(_with_adapter(path, made(), names))
    parallel.parallelize_module(model, mesh, shares, src_data_rank=None)
    for module in model.modules():
        if isinstance(getattr(module, "gate_up_proj", None), nn.Parameter):
            _share_experts(module, mesh)


def _share_experts(experts: nn.Module, mesh: Any) -> None:
    """A share of the width of every expert."""
    from transformers.distributed import tensor_parallel as shared

    shared.PackedColwiseParallel().shard_param(experts, "gate_up_proj", mesh)
    shared.RowwiseParallel().shard_param(experts, "down_proj", mesh)
    shared.MoeExpertsParallel().install_forward(experts, mesh)


def _sides(model: nn.Module) -> dict[str, str]:
    """Of each product that transformers would divide, the end of its path, and the side.

    Raises:
        InputError: for a class without a plan, and for one that gathers what it divides.
    """
    config: Any = model.config
    planned: Mapping[str, str] = getattr(config, "base_model_tp_plan", None) or {}
    found = {path.partition("*")[2]: style for path, style in planned.items()}
    if not any("self_attn" in path or "attention" in path for path in found):
        found |= LATENT if config.model_type == "deepseek_v3" else {}
    gathered = [path for path in found if ".self_attn" in path and "gather" in found[path]]
    reason = f"gathers what it divides: {gathered[0]}" if gathered else "has no plan of shares"
    if gathered or not found:
        rule = f"transformers {reason} of {type(model).__name__}"
        raise InputError("tensor_parallel", config.model_type, rule)
    return {path: style for path, style in found.items() if style in ("colwise", "rowwise")}


# torchtitan divides the attention of DeepSeek V3 as transformers does that of V2
LATENT: Final = {
    ".self_attn.q_proj": "colwise",
    ".self_attn.q_b_proj": "colwise",
    ".self_attn.kv_b_proj": "colwise",
    ".self_attn.o_proj": "rowwise",
}


def _styles(model: nn.Module, plan: Plan) -> dict[str, Callable[[], Any]]:
    """The styles of modules by the ends of their paths."""
    from torch.distributed.tensor import Shard, parallel

    parts: Any = {"output_layouts": Shard(1), "use_local_output": False}
    rows = partial(parallel.RowwiseParallel, **(parts if plan.sequence_parallel else {}))
    made: Any = {"colwise": parallel.ColwiseParallel, "rowwise": rows}
    return {
        **{path: made[style] for path, style in _sides(model).items()},
        **(between_products() if plan.sequence_parallel else {}),
    }


def _with_adapter(path: str, style: Any, names: set[str]) -> Iterator[tuple[str, Any]]:
    """The style of a module; an adapter's product beside it is shared where its weight is cut."""
    from torch.distributed.tensor import parallel

    if path + BASE not in names:
        yield path, style
        return
    yield path + BASE, style
    by_rows = isinstance(style, parallel.RowwiseParallel)
    yield path + (FIRST if by_rows else SECOND), style


def between_products() -> dict[str, Callable[[], Any]]:
    """The styles of modules whose tokens are split, by the ends of their paths.

    torchtitan splits a Llama so; here the tables of embeddings and output layer stay whole.
    """
    from torch.distributed.tensor import Replicate, Shard, parallel

    whole: Any = {"input_layouts": Shard(1), "desired_input_layouts": Replicate()}
    given: Any = {
        "input_kwarg_layouts": {"hidden_states": Shard(1)},
        "desired_input_kwarg_layouts": {"hidden_states": Replicate()},
    }
    cut: Any = {"output_layouts": Replicate(), "desired_output_layouts": Shard(1)}
    norms = (".input_layernorm", ".post_attention_layernorm", ".norm")
    return {
        ".embed_tokens": partial(parallel.PrepareModuleOutput, **cut, use_local_output=False),
        **dict.fromkeys(norms, parallel.SequenceParallel),
        ".self_attn": partial(parallel.PrepareModuleInput, **given),
        ".mlp": partial(parallel.PrepareModuleInput, **whole),
        ".lm_head": partial(parallel.PrepareModuleInput, **whole, use_local_output=True),
    }


def quiet(model: nn.Module, last: bool) -> AbstractContextManager[None]:
    """A context in which DDP reduces no gradients, for all micro-steps but the last."""
    if isinstance(model, DistributedDataParallel) and not last:
        return model.no_sync()
    return nullcontext()
