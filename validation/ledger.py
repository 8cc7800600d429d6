"""What is alive on the device, operation by operation.

A dispatch mode sees every operation below autograd: each new storage is entered when the operation
returns it and struck out when its last reference goes. What a kernel allocates and frees inside
itself (a workspace, flash attention's fp32 gradient of the queries) is not seen.
"""

import sys
import weakref
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter

from validation.modules import Modules
from validation.storage import Event, Moment, Part, Peak, Storage, block_bytes


class Ledger(TorchDispatchMode):
    """Counts live storages of one device by part, and the highest total of each moment."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # Nothing is compiled here, the guard against it costs time, and it would put a frame
        # between the engine and the operation (`_called_by_engine`).
        return False

    def __init__(self, device: str, modules: Modules) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.device = device
        self.modules = modules
        self.live: dict[int, Storage] = {}
        self.events: list[Event] | None = None
        self.alive_at_peak: dict[Moment, list[tuple[Storage, Part]]] = {}
        self._where: dict[int, str] = {}
        self._weight_keys: set[int] = set()
        self._totals: dict[str, dict[Part, int]] = {}
        self._exact = 0
        self.restart()

    def restart(self) -> None:
        """Forget the peaks; what is alive stays."""
        self.index = 0
        self.moment = Moment.FORWARD
        self.peaks: dict[Moment, Peak] = {}
        self.host_peak = self.total("cpu")
        self._micro_step = 0
        self._last_total = self.total()

    def total(self, device: str | None = None) -> int:
        """Bytes alive on the device."""
        return sum(self._parts(device or self.device).values())

    def parts(self, device: str | None = None) -> dict[Part, int]:
        """Bytes alive on the device by part."""
        return dict(self._parts(device or self.device))

    def _parts(self, device: str) -> dict[Part, int]:
        return self._totals.setdefault(device, dict.fromkeys(Part, 0))

    def alive(self) -> list[tuple[Storage, Part]]:
        """Everything on the device, with what it is for now."""
        return [(item, item.part) for item in self.live.values() if item.device == self.device]

    # -- what things are ---------------------------------------------------------------------

    def enter(self, tensors: Iterable[torch.Tensor], part: Part, name: str = "") -> None:
        """Put tensors that exist already into the ledger, or change what they are for."""
        for tensor in tensors:
            storage = self._add(tensor, name or part.value, part)
            self._reclassify(storage, part)
            if part is Part.WEIGHTS:
                self._weight_keys.add(_key(tensor))

    def adopt_leftovers(self) -> None:
        """After a whole step: what is still alive are tables that stay, like the weights."""
        for storage in list(self.live.values()):
            if storage.part in (Part.TEMPORARIES, Part.ACTIVATIONS):
                self._reclassify(storage, Part.WEIGHTS)

    def keep(self) -> None:
        """End of forward: what is alive now is kept for backward, not temporary."""
        kept = [item for item in self.live.values() if item.part is Part.TEMPORARIES]
        kept = [item for item in kept if item.born >= self._micro_step]
        for moment, peak in self.peaks.items():
            if peak.index >= self._micro_step:
                self.peaks[moment] = _with_kept(peak, kept, self.device)
        for storage in kept:
            self._reclassify(storage, Part.ACTIVATIONS)

    def start_micro_step(self) -> None:
        """A forward pass begins."""
        self._micro_step = self.index
        self._where.clear()
        self.start(Moment.FORWARD)

    def start(self, moment: Moment) -> None:
        """A moment begins; what is alive now belongs to it too."""
        self.moment = moment
        self._note_peak("(start)", "")

    def _reclassify(self, storage: Storage, part: Part) -> None:
        parts = self._parts(storage.device)
        parts[storage.part] -= storage.bytes
        parts[part] += storage.bytes
        storage.part = part

    # -- what happens ------------------------------------------------------------------------

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        """Run one operation and enter what it made."""
        if self._adds_in_place(func, args):
            return args[0]
        if func is torch.ops.prim.device.default and type(args[0]) is FakeTensor:
            return args[0].fake_device  # three of four dispatches only ask this
        if func is torch.ops.aten._safe_softmax.default:
            with self:
                return _safe_softmax(*args)
        scratch = self._scratch(func, args)
        result = func(*args, **(kwargs or {}))
        if func.namespace != "aten" or func is torch.ops.aten._local_scalar_dense.default:
            return result
        self.index += 1
        module, node = self._place()
        made = []
        for tensor in tree_iter(result):
            if isinstance(tensor, torch.Tensor) and _key(tensor) not in self.live:
                storage = self._add(tensor, str(func), self._part_of(func, args), module)
                storage.node = node
                made.append(storage)
        if made:
            self._note_peak(str(func), module)
        del scratch
        if self.events is not None:
            self._log(str(func), module, node, made)
        return result

    def _scratch(self, func: Any, args: Sequence[Any]) -> list[torch.Tensor]:
        """What a kernel allocates and frees inside itself, where its source says so.

        Flash attention's backward adds up the queries' gradient in fp32.
        Source: torch (aten/src/ATen/native/transformers/cuda/flash_attn/flash_api.cpp, mha_bwd).
        """
        if func is not torch.ops.aten._scaled_dot_product_flash_attention_backward.default:
            return []
        batch, heads, length, size = args[1].shape
        rows, width = -(-length // 128) * 128, -(-size // 32) * 32
        shapes = ((batch, heads, rows), (batch, rows, heads, width))
        made = [torch.empty(shape, device=args[1].device) for shape in shapes]
        for tensor in made:
            self._add(tensor, str(func), Part.TEMPORARIES)
        return made

    def _adds_in_place(self, func: Any, args: Sequence[Any]) -> bool:
        """Whether autograd's engine, without a dispatch mode, would add into the first tensor.

        Where two gradients meet, the engine adds the second into the first, unless the first is a
        view; under a dispatch mode it always makes new bytes, which a plain run does not.
        Source: torch (autograd/input_buffer.cpp, can_accumulate_inplace; checked with the
        profiler's memory events, which need no dispatch mode).
        """
        if func is not torch.ops.aten.add.Tensor or self.moment not in (
            Moment.LOSS,
            Moment.BACKWARD,
        ):
            return False
        if torch._C._current_autograd_node() is None or not _called_by_engine():
            return False
        first, second = args[:2]
        return (
            isinstance(second, torch.Tensor)
            and first.shape == second.shape
            and not first._is_view()
        )

    def _part_of(self, func: Any, args: Sequence[Any]) -> Part:
        """16-bit copies of weights are made by a cast whose input is a weight."""
        is_cast = func is torch.ops.aten._to_copy.default and self.moment is not Moment.UPDATE
        copies = is_cast and _key(args[0]) in self._weight_keys
        return Part.COPIES if copies else Part.TEMPORARIES

    def _place(self) -> tuple[str, str]:
        """The module of this operation, and in backward the node of autograd's graph."""
        node = torch._C._current_autograd_node()
        sequence = torch._C._autograd._get_sequence_nr()
        if node is None or self.modules.path:
            self._where[sequence - 1] = self.modules.path
            return self.modules.path, ""
        return self._where.get(node._sequence_nr(), ""), node.name()

    def _add(self, tensor: torch.Tensor, operation: str, part: Part, module: str = "") -> Storage:
        untyped = tensor.untyped_storage()
        key = untyped._cdata
        if key in self.live:
            return self.live[key]
        size, device = untyped.nbytes(), tensor.device.type
        given = block_bytes(size) if device == self.device else size
        dtype = str(tensor.dtype).removeprefix("torch.")
        shape = tuple(tensor.shape)
        storage = Storage(size, given, device, operation, module, shape, dtype, part, self.index)
        storage.reference = weakref.ref(untyped, lambda _: self._strike(key))
        self.live[key] = storage
        self._parts(storage.device)[part] += storage.bytes
        if storage.device == self.device:
            self._exact += storage.size
        return storage

    def _strike(self, key: int) -> None:
        storage = self.live.pop(key)
        self._weight_keys.discard(key)
        self._parts(storage.device)[storage.part] -= storage.bytes
        if storage.device == self.device:
            self._exact -= storage.size

    def _note_peak(self, operation: str, module: str) -> None:
        total = self.total()
        peak = self.peaks.get(self.moment)
        if peak is None or total > peak.total:
            parts = self.parts()
            self.peaks[self.moment] = Peak(total, self._exact, parts, operation, module, self.index)
            if self.events is not None:
                self.alive_at_peak[self.moment] = self.alive()
        if self.device != "cpu":
            self.host_peak = max(self.host_peak, self.total("cpu"))

    def _log(self, operation: str, module: str, node: str, made: list[Storage]) -> None:
        assert self.events is not None
        total = self.total()
        new = tuple((item.shape, item.dtype, item.bytes) for item in made)
        change = total - self._last_total
        self._last_total = total
        self.events.append(
            Event(self.index, self.moment, operation, module, node, total, change, new)
        )


def _safe_softmax(scores: torch.Tensor, dim: int, dtype: Any = None) -> torch.Tensor:
    """The operations inside of the math kernel's softmax, which a dispatch mode does not enter.

    Source: torch (aten/src/ATen/native/SoftMax.cpp, _safe_softmax).
    """
    result = torch.ops.aten._softmax.default(scores, dim, False)
    hidden = scores.eq(float("-inf"))
    rows = hidden.all(dim=dim, keepdim=True)
    return torch.where(rows, torch.zeros((), dtype=result.dtype, device=result.device), result)


def _called_by_engine() -> bool:
    """Whether no Python code stands between autograd's engine and this operation."""
    caller = sys._getframe(3)  # this function, the ledger's method, its dispatch, then the caller
    return bool(caller.f_code.co_name == "_engine_run_backward")


def _key(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)


def _with_kept(peak: Peak, kept: list[Storage], device: str) -> Peak:
    """The peak's parts, now that it is known what of its temporaries is kept for backward."""
    alive = [item for item in kept if item.born <= peak.index and item.device == device]
    moved = sum(item.bytes for item in alive)
    parts = dict(peak.parts)
    parts[Part.TEMPORARIES] -= moved
    parts[Part.ACTIVATIONS] += moved
    return Peak(peak.total, peak.exact, parts, peak.operation, peak.module, peak.index)
