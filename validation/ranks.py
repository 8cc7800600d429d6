"""One rank of many: real DDP, FSDP2 and pipelines on a process group without anybody else.

A collective returns at once and moves nothing; its sizes are noted. So a world may be of any size,
and what one rank allocates is what it would allocate beside all the others. On the counting GPU
there is one stream: a card's allocator frees a block when the last tensor on it goes, whatever
stream it was used on, because neither DDP nor FSDP2 calls `record_stream`.

Not checked: buffers that NCCL allocates for itself, and blocks that the allocator must keep for
another stream (both are reserved memory, not allocated).
"""

import gc
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any, Final, assert_never
from unittest.mock import patch

import torch
import torch.distributed as dist
from torch import nn
from torch.futures import Future
from torch.nn.parallel import DistributedDataParallel
from torch.testing._internal.distributed.fake_pg import FakeStore

from calculator.architecture import Architecture
from calculator.errors import InputError
from calculator.layers.ring import place_of
from calculator.parameters import parameter_tensors
from calculator.plan import DataParallel, Plan, Precision
from calculator.techniques.tensor_parallel import COLUMNS, ROWS
from calculator.techniques.zero import fullest_rank, parts_of
from validation.counting_device import resize
from validation.mesh import LAYERS, REPLICAS, Axes, Mesh, axes_of
from validation.models import Task, half_type, layer_lists

BACKEND: Final = "alone"


class Ranks(dist.ProcessGroup):
    """The group of one rank's own; `moved` has the bytes of each collective since `forget`.

    `flat` are the tensors that were reduced, where the group `keeps_flat` ones: DDP's buckets.
    """

    def __init__(self, rank: int, size: int) -> None:
        super().__init__(rank, size)  # type: ignore[call-arg]  # the stub lacks this one
        self.keeps_flat = False
        self.prefix = ""
        self.moved: dict[str, list[int]] = defaultdict(list)
        self.flat: list[torch.Tensor] = []

    def forget(self) -> None:
        """Begin new lists."""
        self.moved.clear()
        self.flat.clear()

    def allreduce(self, tensors: Any, _options: Any = None, *_more: Any) -> Any:
        """Leave the tensors as they are."""
        self.moved["all_reduce"].append(sum(item.nbytes for item in tensors))
        if self.keeps_flat:
            self.flat += tensors
        return _done(tensors)

    def broadcast(self, tensors: Any, _options: Any = None, *_more: Any) -> Any:
        """Leave the tensors as they are."""
        self.moved["broadcast"].append(sum(item.nbytes for item in tensors))
        return _done(tensors)

    def scatter(self, outputs: Any, _inputs: Any, _options: Any = None, *_more: Any) -> Any:
        """Leave the tensors as they are."""
        self.moved["scatter"].append(sum(item.nbytes for item in outputs))
        return _done(outputs)

    def all_gather_single(
        self, whole: torch.Tensor, part: torch.Tensor, _options: Any = None
    ) -> Any:
        """Leave the whole as it is; the part is held until somebody waits for the whole."""
        self.moved[self.prefix + "all_gather"].append(whole.nbytes)
        return _done([whole, part])

    def alltoall_base(self, received: torch.Tensor, sent: torch.Tensor, *_more: Any) -> Any:
        """Leave the received as it is; what is sent is held until somebody waits for it."""
        self.moved[self.prefix + "all_to_all"].append(sent.nbytes)
        return _done([received, sent])

    alltoall_single = alltoall_base

    def reduce_scatter_single(
        self, part: torch.Tensor, whole: torch.Tensor, _options: Any = None
    ) -> Any:
        """Leave the part as it is."""
        self.moved["reduce_scatter"].append(whole.nbytes)
        return _done([part])

    def all_gather_single_coalesced(
        self, wholes: Any, parts: Any, _options: Any = None, *_more: Any
    ) -> Any:
        """Leave the wholes as they are."""
        for whole, part in zip(wholes, parts, strict=True):
            self.all_gather_single(whole, part)
        return _done(wholes)

    def reduce_scatter_single_coalesced(
        self, parts: Any, wholes: Any, _options: Any = None, *_more: Any
    ) -> Any:
        """Leave the parts as they are."""
        for part, whole in zip(parts, wholes, strict=True):
            self.reduce_scatter_single(part, whole)
        return _done(parts)

    def send(self, tensors: Any, _peer: int, _tag: int = 0) -> Any:
        """Leave the tensors as they are."""
        self.moved["send"].append(sum(item.nbytes for item in tensors))
        return _done(tensors)

    def recv(self, tensors: Any, _peer: int, _tag: int = 0) -> Any:
        """Leave the tensors as they are; to a vote on a pipeline's shapes all say yes."""
        for each in tensors:
            if each.dtype is torch.int32:
                each.fill_(1)
        return _done(tensors)

    def getBackendName(self) -> str:  # noqa: N802
        """The name by which it is registered."""
        return BACKEND

    @property
    def group_name(self) -> Any:
        """The name that PyTorch gave it."""
        return dist.distributed_c10d._world.pg_names[self]


def note_together() -> None:
    """Let groups of some ranks note their collectives where the group of all does."""
    whole = dist.distributed_c10d._get_default_group()
    for group in dist.distributed_c10d._world.pg_map:
        if isinstance(group, Ranks) and isinstance(whole, Ranks):
            group.moved, group.flat = whole.moved, whole.flat


def _done(result: Any) -> Any:
    future: Future[Any] = Future()
    future.set_result(result)
    bindings: Any = torch._C._distributed_c10d
    return bindings._create_work_from_future(future)


class _Stream:
    """A stream of a device that has but one; all that DDP and FSDP2 ask of it."""

    def __init__(self, **_options: Any) -> None: ...

    def wait_stream(self, _other: object) -> None: ...

    def wait_event(self, _event: object) -> None: ...

    def record_event(self, _event: object = None) -> "_Event":
        return _Event()


class _Event:
    """A point in the only stream."""

    def __init__(self, **_options: Any) -> None: ...

    def record(self, *_stream: object) -> "_Event":
        return self

    def synchronize(self) -> None: ...


@contextmanager
def ranks(axes: Axes, device: str, rank: int = 0) -> Iterator[Ranks | None]:
    """The group of all GPUs, seen from one rank; None for one GPU."""
    if axes.world == 1:
        yield None
        return
    if BACKEND not in dist.Backend.backend_list:
        make: Callable[..., Ranks] = lambda _store, rank, size, _timeout: Ranks(rank, size)  # noqa: E731
        dist.Backend.register_backend(BACKEND, make, devices=["cpu", "cuda"])
    dist.init_process_group(BACKEND, store=FakeStore(), rank=rank, world_size=axes.world)
    try:
        with ExitStack() as stack:
            for target, replacement in _replacements(device):
                stack.enter_context(patch(target, replacement, create=True))
            group = dist.distributed_c10d._get_default_group()
            assert isinstance(group, Ranks)
            yield group
    finally:
        dist.destroy_process_group()
        gc.collect()


def _replacements(device: str) -> list[tuple[str, Any]]:
    """Replacements for the comparison of the ranks' shapes, and for the counting GPU's streams."""
    only = _Stream()
    same: Callable[..., None] = lambda *_: None  # noqa: E731
    found: list[tuple[str, Any]] = [
        ("torch.nn.parallel.distributed._verify_param_shape_across_processes", same)
    ]
    if device == "cuda":
        found += [
            ("torch.cuda.Stream", _Stream),
            ("torch.cuda.Event", _Event),
            ("torch.cuda.stream", lambda _: nullcontext()),
            ("torch.cuda.current_stream", lambda *_: only),
            ("torch.accelerator.current_stream", lambda *_: only),
            ("torch.cuda.current_device", lambda: 0),
            ("torch._C._get_accelerator", lambda *_: torch.device("cuda")),
            ("torch.UntypedStorage.resize_", resize),
            (
                "transformers.distributed.utils._bind_local_device",
                lambda kind, _: torch.device(kind),
            ),
            # it has no pinned RAM: all of it is taken for pinned
            ("torch.Tensor.pin_memory", lambda tensor: tensor),
            ("torch.Tensor.is_pinned", lambda _: True),
            # the counting GPU has no random state
            ("torch.distributed.tensor._random.is_rng_supported_mesh", lambda _: False),
        ]
    return found


def fullest(architecture: Architecture, plan: Plan) -> int:
    """The replica to measure: the first, or where they differ the one that holds the most."""
    if plan.context_parallel > 1:
        return place_of(plan.context_parallel)
    replicas = axes_of(plan).replicas
    if replicas == 1 or plan.data_parallel is not DataParallel.ZERO1:
        return 0
    tensors = parameter_tensors(architecture, plan)
    updated = [item for item in tensors if item.trained or not plan.lora]
    return fullest_rank(parts_of(updated, replicas))


def distributed(task: Task, plan: Plan, mesh: Mesh) -> Task:
    """The task on many GPUs: layers are shared, then cut into stages, then copied or in shards."""
    if plan.tensor_parallel > 1:
        split(task.model, plan, mesh[LAYERS])
    if plan.expert_parallel > 1:
        from validation.spread import spread

        spread(task.model, plan, mesh.device)
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
    from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy, fully_shard

    policy = MixedPrecisionPolicy()
    if plan.precision is Precision.MIXED:
        policy = MixedPrecisionPolicy(half_type(plan), torch.float32)
    blocks: Sequence[nn.Module] = [block for stack in layer_lists(model) for block in stack]
    options: dict[str, Any] = {"mesh": mesh, "mp_policy": policy}
    if plan.data_parallel is DataParallel.ZERO2:
        options["reshard_after_forward"] = False
    if plan.cpu_offload:
        options["offload_policy"] = CPUOffloadPolicy()
    for module in (*blocks, model):
        fully_shard(module, **options)


def split(model: nn.Module, plan: Plan, mesh: Any) -> None:
    """Each layer's products by shares; no GPU reads another's weights.

    Raises:
        InputError: for a class without projections of the names that are shared.
    """
    from torch.distributed.tensor import Shard, parallel

    parts: Any = {"output_layouts": Shard(1), "use_local_output": False}
    styles: dict[str, Callable[[], parallel.ParallelStyle]] = {
        **dict.fromkeys(COLUMNS, parallel.ColwiseParallel),
        **dict.fromkeys(
            ROWS, partial(parallel.RowwiseParallel, **parts if plan.sequence_parallel else {})
        ),
        **(between_products() if plan.sequence_parallel else {}),
    }
    paths = [path for path, _ in model.named_modules() if path.rpartition(".")[2] in styles]
    if not paths:
        rule = f"{type(model).__name__} has no projections of the names that are shared"
        raise InputError("tensor_parallel", plan.tensor_parallel, rule)
    shares = {path: styles[path.rpartition(".")[2]]() for path in paths}
    parallel.parallelize_module(model, mesh, shares, src_data_rank=None)


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
    norms = ("input_layernorm", "post_attention_layernorm", "norm")
    return {
        "embed_tokens": partial(parallel.PrepareModuleOutput, **cut, use_local_output=False),
        **dict.fromkeys(norms, parallel.SequenceParallel),
        "self_attn": partial(parallel.PrepareModuleInput, **given),
        "mlp": partial(parallel.PrepareModuleInput, **whole),
        "lm_head": partial(parallel.PrepareModuleInput, **whole, use_local_output=True),
    }


def quiet(model: nn.Module, last: bool) -> AbstractContextManager[None]:
    """A context in which DDP reduces no gradients, for all micro-steps but the last."""
    if isinstance(model, DistributedDataParallel) and not last:
        return model.no_sync()
    return nullcontext()


def own(tensor: torch.Tensor) -> torch.Tensor:
    """The part of a tensor that this rank holds."""
    return getattr(tensor, "_local_tensor", tensor)
