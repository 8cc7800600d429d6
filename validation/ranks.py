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
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Any, Final
from unittest.mock import patch

import torch
import torch.distributed as dist
from torch.futures import Future
from torch.testing._internal.distributed.fake_pg import FakeStore

from calculator.clock.links import MACHINE
from validation.counting_device import resize
from validation.mesh import Axes

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
        _forget_meshes()
        gc.collect()


def _forget_meshes() -> None:
    """Clear what DTensors keep by mesh: that of another rank may be equal, but not its groups."""
    from torch.distributed.tensor import _redistribute, debug

    debug._clear_sharding_prop_cache()
    _redistribute._gen_transform_infos.cache_clear()


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
            (  # by which DTensors estimate what exchanges cost
                "torch.distributed.tensor._collective_utils._mesh_resources.num_devices_per_host",
                lambda _: MACHINE,
            ),
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


def own(tensor: torch.Tensor) -> torch.Tensor:
    """The part of a tensor that this rank holds."""
    return getattr(tensor, "_local_tensor", tensor)
