"""PyTorch's out-of-memory message: what it says, and what it means beside a plan.

The present text (since 2.1) and the two before it are read: with "reserved in total" (1.5 to 2.0)
and with "cached" (before); those of ROCm and Intel's GPUs are the present one, Metal has its own.

Source: torch (c10/cuda/CUDACachingAllocator.cpp; pytorch/pytorch pull request 13751)
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from calculator.cards.card import ASSUMED_CONTEXT
from calculator.catalog import Gpu
from calculator.errors import InputError
from calculator.planner.need import need_of
from calculator.report import Report
from calculator.units import GiB, KiB, MiB, format_bytes

FIELD: Final = "message"
LONGEST_MESSAGE: Final = 100_000
# a measured peak stands up to so many thousandths above ours (see the page 'Accuracy')
SPREAD: Final = 60
# CUDA gives programs up to so many thousandths less than the memory that the driver reports
LESS_FOR_PROGRAMS: Final = 50
# what a process may have besides tensors where all kernels are loaded, as CUDA did before 11.7
OWN_BESIDES: Final = 1536 * MiB
# sizes in a message are rounded to hundredths
SAME_MEMORY: Final = GiB // 100
# the driver's unit
DRIVER_PIECE: Final = 2 * MiB
# other processes are worth a word from here up
WORTH_A_WORD: Final = 256 * MiB

ROUTING: Final = (
    " Check the routing too: more tokens may have come to this GPU's experts than if it were even."
)

_UNITS: Final = {"bytes": 1, "KiB": KiB, "MiB": MiB, "GiB": GiB}
_SIZE: Final = r"(?<![\d.])(\d{1,9}(?:\.\d{1,6})?) (bytes|KiB|MiB|GiB)"
_BEGINS: Final = "Tried to allocate"
# marks that a quoted or emphasised message has between its words
_BETWEEN: Final = re.compile(r"[\s>*`|]+")
_METAL_SIZE: Final = r"(\d{1,9}(?:\.\d{1,6})?) (bytes|KB|MB|GB)"
_METAL: Final = re.compile(
    rf"MPS allocated: {_METAL_SIZE}, other allocations: {_METAL_SIZE}, max allowed: {_METAL_SIZE}\)"
    rf"\. Tried to allocate {_METAL_SIZE}"
)
# Intel's GPUs: PyTorch does not say what is free
_INTEL: Final = "XPU out of memory"
_OTHER: Final = re.compile(rf"Process \d{{1,12}} has {_SIZE} memory in use")


@dataclass(frozen=True, slots=True)
class Message:
    """The sizes in a message, in bytes.

    Attributes:
        asked: what PyTorch wanted and did not get.
        capacity: the GPU's memory.
        free: what the driver still had.
        allocated: what tensors took.
        unallocated: what PyTorch had reserved and no tensor took.
        others: what other processes had; None where the message does not say.
    """

    asked: int
    capacity: int
    free: int
    allocated: int
    unallocated: int
    others: int | None = None

    @property
    def wanted(self) -> int:
        """Bytes that tensors would have taken if the allocation had succeeded."""
        return self.allocated + self.asked

    @property
    def elsewhere(self) -> int:
        """Bytes in neither PyTorch's tensors and reserve nor the driver's free memory."""
        return max(0, self.capacity - self.free - self.allocated - self.unallocated)

    @property
    def foreign(self) -> int:
        """Bytes of other processes, as far as known."""
        if self.others is not None:
            return self.others
        return self.elsewhere - ASSUMED_CONTEXT if self.elsewhere > OWN_BESIDES else 0

    def is_of(self, memory: int) -> bool:
        """True if it may come from a GPU whose driver reports that many bytes."""
        least = memory * (1000 - LESS_FOR_PROGRAMS) // 1000
        return least <= self.capacity <= memory + SAME_MEMORY


def read_message(text: str) -> Message:
    """The sizes of the first message in a text, such as a whole traceback.

    Raises:
        InputError: naming what is missing.
    """
    if len(text) > LONGEST_MESSAGE:
        rule = f"must have at most {LONGEST_MESSAGE:,} characters: paste the message alone"
        raise InputError(FIELD, f"{len(text):,} characters", rule)
    plain = _BETWEEN.sub(" ", text)
    if found := _METAL.search(plain):
        return _of_metal(found)
    before, begins, rest = plain.partition(_BEGINS)
    if not begins:
        rule = f"must be PyTorch's out-of-memory message, with the words '{_BEGINS}'"
        raise InputError(FIELD, text.strip(), rule)
    message = begins + rest.partition(_BEGINS)[0]
    is_present = re.search(r"total capaci?ty of", message) is not None
    allocated = _find(message, rf"{_SIZE} {'is allocated by PyTorch' if is_present else 'already'}")
    read = _of_intel if is_present and _INTEL in before else _present if is_present else _older
    capacity, free, unallocated = read(message, allocated)
    asked = _find(message, rf"{_BEGINS} {_SIZE}")
    others = _others(message, allocated) if is_present else None
    return Message(asked, capacity, free, allocated, unallocated, others)


def _present(message: str, _allocated: int) -> tuple[int, int, int]:
    return (
        _find(message, rf"total capaci?ty of {_SIZE}"),
        _find(message, rf"of which {_SIZE} is free"),
        _find(message, rf"{_SIZE} is reserved by PyTorch but unallocated"),
    )


def _of_intel(message: str, allocated: int) -> tuple[int, int, int]:
    """The same without what is free."""
    capacity = _find(message, rf"total capaci?ty of {_SIZE}")
    unallocated = _find(message, rf"{_SIZE} is reserved by PyTorch but unallocated")
    return capacity, max(0, capacity - allocated - unallocated), unallocated


def _of_metal(found: re.Match[str]) -> Message:
    """Metal's message writes GB for 2^30 bytes, and names this process alone.

    Source: torch (aten/src/ATen/mps/MPSAllocator.mm, format_size)
    """
    allocated, other, most, asked = (
        _bytes(number, unit.replace("B", "iB") if unit != "bytes" else unit)
        for number, unit in zip(found.groups()[::2], found.groups()[1::2], strict=True)
    )
    return Message(asked, most, max(0, most - allocated - other), allocated, 0, 0)


def _older(message: str, allocated: int) -> tuple[int, int, int]:
    capacity = _find(message, rf"{_SIZE} total capacity")
    free = _find(message, rf"{_SIZE} free")
    if re.search(rf"{_SIZE} cached", message):
        return capacity, free, _find(message, rf"{_SIZE} cached")
    reserved = _find(message, rf"{_SIZE} reserved in total by PyTorch")
    return capacity, free, max(0, reserved - allocated)


def _others(message: str, allocated: int) -> int | None:
    """Memory of other processes; if this one is not identified, one that holds enough."""
    found = [_bytes(*match.groups()) for match in _OTHER.finditer(message)]
    if "this process has" in message:
        return sum(found)
    own = next((size for size in sorted(found) if size >= allocated), None)
    return None if own is None else sum(found) - own


def _find(message: str, pattern: str) -> int:
    found = re.search(pattern, message)
    if found is None:
        words = re.sub(r" +", " ", pattern.replace(_SIZE, "SIZE").replace("capaci?ty", "capacity"))
        rule = f"lacks '{words}', with a size such as 20.00 MiB: paste the whole message"
        raise InputError(FIELD, message, rule)
    return _bytes(*found.groups())


def _bytes(number: str, unit: str) -> int:
    return round(float(number) * _UNITS[unit])


def sizes_of(message: Message) -> dict[str, int]:
    """The sizes of a message by their labels."""
    return {
        "Asked for": message.asked,
        "Taken by tensors": message.allocated,
        "Reserved and unused": message.unallocated,
        "Other processes": message.foreign,
        "Free": message.free,
        "The GPU's memory": message.capacity,
    }


class Cause(StrEnum):
    """A message's cause under a plan."""

    OTHER_CARD = "another GPU"
    OTHER_PROCESS = "another process"
    OTHER_PLAN = "another plan"
    SAME_PLAN = "this plan"
    FRAGMENTATION = "fragmentation"
    FULL = "the GPU was full"
    FREE = "memory was free"
    TOO_LARGE = "too large"
    SHOULD_FIT = "should fit"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that the message says: a heading, why, and what to do."""

    cause: Cause
    title: str
    words: str
    remedy: str


def _in_pieces(message: Message) -> int:
    """Bytes that may be free and still not enough: two roundings, a piece, and what lies apart."""
    return 2 * SAME_MEMORY + DRIVER_PIECE + message.asked // 32


def explain(message: Message, report: Report, gpu: Gpu) -> list[Finding]:
    """Causes of a message under a plan, whose report is `judged`, most important first."""
    return [*_findings(message, report, gpu)]


def _findings(message: Message, report: Report, gpu: Gpu) -> Iterator[Finding]:
    peak = report.gpu.total
    need = need_of(report)
    asked, allocated = format_bytes(message.asked), format_bytes(message.allocated)
    capacity, wanted = format_bytes(message.capacity), format_bytes(message.wanted)
    if not message.is_of(gpu.memory):
        yield Finding(
            Cause.OTHER_CARD,
            "The message is from another GPU",
            f"It had {capacity}; you compare with {format_bytes(gpu.memory)}.",
            "Compare with the GPU of the message.",
        )
    if message.wanted * 1000 > peak * (1000 + SPREAD):
        yield Finding(
            Cause.OTHER_PLAN,
            "The plan was different, or something else used memory",
            f"Tensors took {allocated}, and {asked} more were requested: {wanted} in all. The "
            f"plan's whole step needs {format_bytes(peak)} at its peak.",
            "Compare micro-batch, sequence length, precision, attention and optimizer with your "
            "script, and check whether it holds anything else: a second model, an evaluation, or "
            f"losses kept with their graphs.{ROUTING if report.plan.expert_parallel > 1 else ''}",
        )
    else:
        yield Finding(
            Cause.SAME_PLAN,
            "The message agrees with the plan",
            f"With the requested memory, tensors would have taken {wanted}; the step peaks at "
            f"{format_bytes(peak)}.",
            "",
        )
    if message.foreign > WORTH_A_WORD:
        yield Finding(
            Cause.OTHER_PROCESS,
            "Something else was on the GPU",
            f"About {format_bytes(message.foreign)} belonged to other processes.",
            "Use nvidia-smi to see what runs there, and shut down notebooks that still hold "
            "memory.",
        )
    if message.unallocated >= message.asked:
        yield Finding(
            Cause.FRAGMENTATION,
            "The free memory was fragmented",
            f"PyTorch had {format_bytes(message.unallocated)} reserved but unused: more than the "
            f"{asked} that it needed, but not in one piece.",
            "Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True; before PyTorch 2.1, "
            "max_split_size_mb:128.",
        )
    if message.asked <= message.free < message.asked + _in_pieces(message):
        yield Finding(
            Cause.FULL,
            "The GPU was full",
            f"{format_bytes(message.free)} was free and {asked} was requested, almost as much: "
            "the driver hands out memory in pieces of 2 MiB that may not be contiguous, and the "
            "message rounds.",
            "Free a little more: use a smaller micro-batch or a shorter sequence.",
        )
    elif message.free >= message.asked:
        yield Finding(
            Cause.FREE,
            "The driver had enough left",
            f"{format_bytes(message.free)} was free, and {asked} was requested: some other limit "
            "was reached.",
            "Look for a memory fraction set in PyTorch, a slice of a shared GPU, or too little "
            "RAM.",
        )
    left = message.capacity - message.foreign
    if need.low > left:
        yield Finding(
            Cause.TOO_LARGE,
            "The plan does not fit the memory that the GPU had",
            f"It needs {format_bytes(need.typical)} ({format_bytes(need.low)} to "
            f"{format_bytes(need.high)}), and only {format_bytes(left)} were available.",
            "See what would make it fit.",
        )
    elif need.high <= left:
        yield Finding(
            Cause.SHOULD_FIT,
            "The plan itself fits",
            f"It needs {format_bytes(need.high)} at most, and {format_bytes(left)} were available.",
            "Look for the cause above, or for a difference between the plan and your script.",
        )
    else:
        yield Finding(
            Cause.TOO_LARGE,
            "The plan may not fit the memory that the GPU had",
            f"It needs {format_bytes(need.low)} to {format_bytes(need.high)}, and "
            f"{format_bytes(left)} were available.",
            "See what would make it fit.",
        )
