"""Experts divided among GPUs by transformers' own expert parallelism.

`DistributedConfig` with as many ranks in `ep_size` as in `tp_size`: all read one micro-batch. The
class's rules for tensor parallelism are overruled, so that nothing else is divided.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final
from unittest.mock import patch

import torch
import torch.distributed as dist
from transformers.distributed.configuration_utils import DistributedConfig

from calculator.errors import InputError
from calculator.plan import Plan
from calculator.techniques.expert_parallel import rows_received
from validation.configuration import Configuration
from validation.mesh import Mesh, is_sharded
from validation.ranks import Ranks

SHARDS: Final = "transformers.distributed.mixin.apply_fully_sharded_data_parallelism"
DISPATCHED: Final = "ep_dispatch_experts"  # the rule of a layer's experts
COUNTS: Final = "transformers.distributed.expert_parallel.all_to_all_single"


def spread(model: Any, plan: Plan, mesh: Mesh, options: dict[str, Any]) -> None:
    """Each layer's experts in whole shares; every other weight is whole on each rank.

    Where replicas have shards, experts are a unit of FSDP of their own, as transformers makes them.
    """
    from torch.distributed.fsdp import fully_shard

    gpus, replicas = plan.expert_parallel, mesh.axes.replicas if is_sharded(plan) else 1
    asked = DistributedConfig(
        tp_size=gpus,
        ep_size=gpus,
        tp_plan=dict.fromkeys(model.tp_plan, "replicate"),
        fsdp_size=mesh.axes.replicas,
    )
    # what the counting device adds to PyTorch would be taken for the processes' accelerator
    with patch("torch._C._get_accelerator", lambda *_: torch.device(mesh.device)):
        asked, _, meshes = type(model).prepare_distribute_model(asked)
    with patch(SHARDS, lambda model, *_: model):
        type(model).maybe_distribute_model(model, asked, meshes)
    _, rules, _ = model._resolve_parallel_plans(asked)
    found = [item for path, item in model.named_modules() if rules.get(path) == DISPATCHED]
    if not found:
        rule = "adapters or wrappers hide experts, which are then divided among nobody"
        raise InputError("expert_parallel", gpus, rule)
    for module in found if replicas > 1 else ():
        whole = {"reshard_after_forward": True}
        fully_shard(module, mesh=meshes.get_mesh("efsdp"), **options | whole)


def _default_group() -> dist.ProcessGroup:
    return dist.distributed_c10d._get_default_group()


@contextmanager
def exchanged_evenly(configuration: Configuration) -> Iterator[None]:
    """Each rank sends, and gets, as many pairs of a token and an expert as every other.

    Alone it hears nothing of the other ranks' counts, and on the counting GPU they have no values.
    """
    with ExitStack() as stack:
        if dist.is_initialized() and isinstance(_default_group(), Ranks):
            for target, replacement in _replacements(configuration):
                stack.enter_context(patch(target, replacement))
        yield


def received(configuration: Configuration) -> int:
    """The rows that come to a rank alone."""
    return rows_received(configuration.architecture, configuration.asked)


def _replacements(configuration: Configuration) -> list[tuple[str, Callable[..., Any]]]:
    gpus, come = configuration.asked.expert_parallel, received(configuration)
    if gpus == 1:
        return []
    sent = rows_received(configuration.architecture, configuration.asked)
    own: Callable[[torch.Tensor], Any] = torch.Tensor.tolist

    def counts(others: torch.Tensor, mine: torch.Tensor, group: Any) -> None:
        dist.all_to_all_single(others, mine, group=group)
        if others.device.type == "cpu":
            others.copy_(torch.tensor(_even(come, others.numel())).view_as(others))

    def sizes(tensor: torch.Tensor) -> Any:
        is_asked = tensor.is_cuda and tensor.shape == (2, gpus)
        return [_even(sent, gpus), _even(come, gpus)] if is_asked else own(tensor)

    return [(COUNTS, counts), ("torch.Tensor.tolist", sizes)]


def _even(whole: int, parts: int) -> list[int]:
    return [whole // parts + (place < whole % parts) for place in range(parts)]
