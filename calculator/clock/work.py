"""Work of a training step on one GPU: FLOPs of its products, bytes that it writes, its kernels."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from calculator.architecture import Architecture
from calculator.autograd.dtypes import DType
from calculator.autograd.ledger import Kind
from calculator.autograd.sizes import Size, number_of
from calculator.errors import InputError
from calculator.estimate import static_of
from calculator.peaks.events import Recording, recording_of
from calculator.peaks.prepare import prepare
from calculator.plan import Plan
from calculator.resolution import resolve

NARROW: Final = 2  # bytes of a number that tensor cores multiply
DIVIDED: Final = ("tensor_parallel", "pipeline_parallel", "context_parallel", "expert_parallel")


@dataclass(frozen=True, slots=True)
class Work:
    """Work of a step, of all its micro-batches.

    Attributes:
        narrow: FLOPs of products of 16-bit matrices.
        wide: FLOPs of products of 32-bit matrices.
        narrow_attention: FLOPs in attention's kernels, of 16-bit numbers.
        wide_attention: the same, of 32-bit numbers.
        packed_wide: FLOPs of products of weights in 4 bits, where all else is in 32 bits.
        written: bytes of the tensors that the operations make.
        kernels: tensors that they make; about as many kernels are launched.
        updated: bytes of gradients and states that the optimizer reads and writes.
    """

    narrow: int
    wide: int
    narrow_attention: int
    wide_attention: int
    packed_wide: int
    written: int
    kernels: int
    updated: int


def work_of(architecture: Architecture, plan: Plan) -> Work:
    """The work of a plan's step.

    Raises:
        InputError: if the model does not support the plan, or the clock does not count it.
    """
    resolved = resolve(architecture, plan)
    _check(resolved)
    prepared = prepare(architecture, resolved)
    recording = recording_of(prepared.step)
    copies = _Copies(recording, prepared.left_out)
    found: Counter[tuple[bool, Kind]] = Counter()
    for (flops, dtype, kind), often in copies.products().items():
        found[dtype.width <= NARROW, kind] += often * number_of(flops, prepared.numbers)
    bytes_by_size = recording.bytes(prepared.numbers)
    births = copies.births()
    static, *_ = static_of(architecture, resolved)
    micro_batches = resolved.accumulation
    return Work(
        micro_batches * (found[True, Kind.PLAIN] + found[True, Kind.PACKED]),
        micro_batches * found[False, Kind.PLAIN],
        micro_batches * found[True, Kind.ATTENTION],
        micro_batches * found[False, Kind.ATTENTION],
        micro_batches * found[False, Kind.PACKED],
        micro_batches * sum(often * bytes_by_size[size] for size, often in births.items()),
        micro_batches * births.total(),
        2 * static.optimizer + static.gradients,
    )


def _check(plan: Plan) -> None:
    """Refuse what the law leaves out.

    Raises:
        InputError: for a plan with such an option.
    """
    for field in DIVIDED:
        if getattr(plan, field) > 1:
            raise InputError(field, getattr(plan, field), "must be 1: the clock leaves it out")
    if plan.cpu_offload or plan.offload.value != "none":
        raise InputError("offload", "on", "must be none: the clock does not count the bus")
    if plan.activation_offload.value != "none":
        raise InputError(
            "activation_offload",
            plan.activation_offload,
            "must be none: the clock does not count the bus",
        )


class _Copies:
    """Events of a recording, each as often as the whole model has it."""

    def __init__(self, recording: Recording, left_out: Sequence[int]) -> None:
        self.recording = recording
        self.repeated = [
            (span.start, span.end, left_out[span.run])
            for span in recording.spans
            if span.is_repeated and left_out[span.run]
        ]

    def _often(self, places: Sequence[int]) -> Iterator[int]:
        """For places in order, how often each is there."""
        spans = iter(self.repeated)
        span = next(spans, None)
        for at in places:
            while span and at >= span[1]:
                span = next(spans, None)
            yield 1 + span[2] if span and at >= span[0] else 1

    def births(self) -> Counter[int]:
        """The number of tensors made of each size."""
        events = self.recording.events
        found: Counter[int] = Counter()
        for size, often in zip(events, self._often(range(len(events))), strict=True):
            if size > 0:
                found[size] += often
        return found

    def products(self) -> Counter[tuple[Size, DType, Kind]]:
        """Products of matrices: FLOPs, format, and the code that makes them."""
        products = self.recording.products
        found: Counter[tuple[Size, DType, Kind]] = Counter()
        places = [at for at, *_ in products]
        for (_, flops, dtype, kind), often in zip(products, self._often(places), strict=True):
            found[flops, dtype, kind] += often
        return found
