"""Work of a training step on one GPU: FLOPs of its products, bytes that it writes, its kernels."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from typing import Final

from calculator.autograd.ledger import Kind, Product
from calculator.autograd.sizes import Dimension, Numbers, Size
from calculator.clock.links import NONE, Traffic, traffic
from calculator.peaks.chunks import Births, Bytes, Trace
from calculator.peaks.step import Prepared, Step
from calculator.peaks.trace import record
from calculator.plan import Plan
from calculator.techniques.activation_offload import moved_inputs
from calculator.techniques.collectives import BROADCAST, Collective, Group
from calculator.tensors import Statics

NARROW: Final = 2  # bytes of a number that tensor cores multiply
NOT_MADE: Final = frozenset({"held", "previous_outputs"})  # sizes that stand for a loop's names


@dataclass(frozen=True, slots=True)
class Work:
    """Work of a step, of all its micro-batches.

    Attributes:
        narrow: FLOPs of products of 16-bit matrices.
        wide: FLOPs of products of 32-bit matrices.
        narrow_attention: FLOPs in attention's kernels, of 16-bit numbers.
        wide_attention: the same, of 32-bit numbers.
        packed_wide: FLOPs of products of weights in 4 bits, where all else is in 32 bits.
        repeated: FLOPs of all these that the backward pass makes again.
        written: bytes of the tensors that the operations make.
        kernels: tensors that they make; about as many kernels are launched.
        updated: bytes of gradients and states that the optimizer reads and writes.
        copied: bytes to pinned RAM and back, for which the products wait, as in one stream.
        waited: bytes to other GPUs for which the products wait.
        overlapped: bytes to other GPUs that go while the products run.
        overlap: share of the step in which these may go.
        bubble: time that a stage waits in a pipeline, over the time that it computes.
    """

    narrow: int
    wide: int
    narrow_attention: int
    wide_attention: int
    packed_wide: int
    repeated: int
    written: int
    kernels: int
    updated: int = 0
    copied: int = 0
    waited: Traffic = NONE
    overlapped: Traffic = NONE
    overlap: float = 1.0
    bubble: float = 0.0

    @property
    def flops(self) -> int:
        """FLOPs of all products."""
        wide = self.wide + self.wide_attention + self.packed_wide
        return self.narrow + self.narrow_attention + wide


def work_of(
    prepared: Prepared, static: Statics, plan: Plan, exchanged: Sequence[Collective] = ()
) -> Work:
    """The work of a resolved plan's step, and what its GPUs exchange.

    FSDP's gathers and sums run beside the products of the whole step, DDP's sums beside the
    backward pass of the last micro-batch, two thirds of its time: a product forward has two
    backward. All else is waited for.
    """
    tally = _tally(prepared.step, prepared.left_out)
    micro_batches = 1 if prepared.step.turns else plan.rounds
    return replace(
        computed(tally, prepared.numbers, micro_batches),
        updated=2 * static.optimizer + static.gradients,
        copied=2 * micro_batches * sum(moved_inputs(prepared, plan)),
        waited=traffic((each for each in exchanged if not _is_overlapped(each)), plan),
        overlapped=traffic(filter(_is_overlapped, exchanged), plan),
        overlap=1.0 if plan.is_sharded else 2 / 3 / plan.accumulation,
        bubble=(plan.pipeline_parallel - 1) / (plan.pipeline_stages * plan.accumulation),
    )


def computed(tally: "Tally", numbers: Numbers, times: int = 1) -> Work:
    """The work of what was tallied, done so many times."""
    found: Counter[tuple[bool, Kind]] = Counter()
    repeated = 0
    for (is_narrow, kind, is_repeated), sizes in tally.products.items():
        flops = times * _sum(sizes, numbers)
        found[is_narrow, kind] += flops
        repeated += flops * is_repeated
    return Work(
        found[True, Kind.PLAIN] + found[True, Kind.PACKED],
        found[False, Kind.PLAIN],
        found[True, Kind.ATTENTION],
        found[False, Kind.ATTENTION],
        found[False, Kind.PACKED],
        repeated,
        times * _sum(tally.written, numbers),
        times * tally.kernels,
    )


def _is_overlapped(each: Collective) -> bool:
    return each.group is Group.REPLICAS and each.name != BROADCAST


Sum = Mapping[tuple[Dimension, ...], int]
# births and products, and how often the step has them
Made = tuple[Births, Sequence[Product], int]


@dataclass(frozen=True, slots=True)
class Tally:
    """Sums of sizes over recorded events: products by format, kind and whether they are repeated.

    `written` are bytes of the tensors that are made, and `kernels` how many they are.
    """

    products: Mapping[tuple[bool, Kind, bool], Sum]
    written: Sum
    kernels: int


@lru_cache(maxsize=256)
def _tally(step: Step, left_out: tuple[int, ...]) -> Tally:
    trace = record(step)
    return tally_of(_copies(trace, left_out), trace.sizes)


def tally_of(several: Iterable[Made], sizes: Sequence[Bytes]) -> Tally:
    """The sums over what is made; births have numbers of sizes, from 1."""
    births: Counter[int] = Counter()
    products: dict[tuple[bool, Kind, bool], Counter[tuple[Dimension, ...]]] = {}
    for born, multiplied, often in several:
        for size, count in born:
            births[size] += often * count
        for flops, dtype, kind, again in multiplied:
            key = dtype.width <= NARROW, kind, again
            products.setdefault(key, Counter())[flops.dimensions] += often * flops.factor
    written: Counter[tuple[Dimension, ...]] = Counter()
    kernels = 0
    for number, often in births.items():
        made = sizes[number - 1]
        if _is_made(made.size):
            kernels += often
            written[made.size.dimensions] += often * made.size.factor * made.dtype.width
    return Tally(products, written, kernels)


def _copies(trace: Trace, left_out: Sequence[int]) -> Iterator[Made]:
    """Births and products of each chunk of a trace, and its number of copies in the whole model."""
    often = [1] * len(trace.chunks)
    for number, chunk in enumerate(trace.chunks):
        if chunk.repeats is not None:
            count, run = chunk.repeats
            for place in range(number + 1 - count, number + 1):
                often[place] += left_out[run]
    for chunk, times in zip(trace.chunks, often, strict=True):
        yield chunk.births, chunk.products, times


def _is_made(size: Size) -> bool:
    """True unless it stands for bytes that the training loop holds, which no kernel makes."""
    return all(dimension.name not in NOT_MADE for dimension in size.dimensions)


def _sum(sizes: Sum, numbers: Numbers) -> int:
    named = {dimension for dimensions in sizes for dimension in dimensions}
    value = {dimension: dimension.number(numbers) for dimension in named}.__getitem__
    return sum(factor * prod(map(value, dimensions)) for dimensions, factor in sizes.items())
