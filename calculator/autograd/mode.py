"""All effects of a plan on the operations of a step; sizes stay names."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from enum import Enum, auto
from typing import Any, Final

from calculator.autograd.dtypes import BFLOAT16, FLOAT32, DType
from calculator.autograd.sizes import ONE, Size, size
from calculator.choice import Choice
from calculator.errors import InputError


class Attention(Choice):
    """The attention kernel; `sdpa` is PyTorch's choice on a GPU."""

    EAGER = "eager"
    SDPA = "sdpa"
    FLASH = "flash"
    EFFICIENT = "efficient"
    MATH = "math"


class Checkpointing(Choice):
    """Activations that the forward pass discards and the backward pass recomputes."""

    NONE = "none"
    SELECTIVE = "selective"
    OPERATIONS = "operations"
    FULL = "full"

    @property
    def is_of_layers(self) -> bool:
        """True if whole layers are computed again, but perhaps for some of their operations."""
        return self in (Checkpointing.OPERATIONS, Checkpointing.FULL)


class Costly(Enum):
    """Operations that take long: a matrix product with a weight, or attention in one kernel."""

    PRODUCT = auto()
    ATTENTION = auto()


# what fused kernels want of a head's width, in 16 and in 32 bits
NARROW_MULTIPLE: Final = 8
WIDE_MULTIPLE: Final = 4

# the first compute capability with bfloat16 and flash attention
AMPERE: Final = (8, 0)

# tokens that linear attention computes together, and how many chunks of them are put on the tape
CHUNK: Final = 64
EXPLICIT_CHUNKS: Final = 4

BATCH = size("batch")
SEQUENCE = size("sequence")
TARGET = size("target")


@dataclass(frozen=True, slots=True)
class Mode:
    """Settings that determine how a step runs.

    `weights` is the format of the weights, `autocast` that of matrix products under autocast.
    `gradients_exist` is set in every micro-step but the first. Where `gradients_leave`, each goes
    into a bucket that lives anyway. Weights are gathered from `shards` of that format, where they
    are in shards; where the mode `reshards`, they go again after the forward pass. With
    `shards_in_ram` each weight of a shard is copied from RAM. `batch` is the number 1 for one
    sequence, for which shapes broadcast and matmul copies no heads. `aligned` has
    the lengths that are multiples of what the efficient kernel wants of a mask's rows;
    `padded_heads` are no multiple of 8, to which flash pads them, and `odd_heads` none of 4. Where
    gradients are freed in the backward pass, `updates` is the number of temporaries in the update
    of a weight. A sequence is `windowed` that is at least as long as the window of layers that have
    one, which then need a mask. Linear attention has so many `chunks`, at most those put on the
    tape, and the last may not be whole. Where `moves_inputs` is set, a checkpointed layer keeps its
    input in RAM. The loss may be scaled before the backward pass. Each sequence is divided among
    the GPUs of a `context`; keys and values of the others come all at once, or it `rotates` them.
    Where embeddings are `cached`, all mini-batches are embedded before the loss, and each again
    after it. PyTorch picks kernels by the card's compute `capability`.
    """

    weights: DType = FLOAT32
    autocast: DType | None = None
    attention: Attention = Attention.SDPA
    checkpointing: Checkpointing = Checkpointing.NONE
    reversible: bool = False
    dropout: bool = False
    gradients_exist: bool = False
    gradients_leave: bool = False
    shards: DType | None = None
    reshards: bool = True
    shards_in_ram: bool = False
    batch: Size = BATCH
    aligned: frozenset[Size] = frozenset((SEQUENCE, TARGET))
    padded_heads: bool = False
    odd_heads: bool = False
    windowed: bool = False
    updates: int | None = None
    chunks: int = 0
    whole_chunks: bool = True
    chunked_loss: bool = False
    moves_inputs: bool = False
    scales_loss: bool = False
    context: int = 1
    rotates: bool = False
    cached: bool = False
    capability: tuple[int, int] = AMPERE

    def but(self, **changes: object) -> "Mode":
        """The same mode with some settings changed, none of which counts as asked for."""
        return replace(self, **changes)  # type: ignore[arg-type]

    @property
    def one_sequence(self) -> bool:
        """True if the micro-batch is a single sequence."""
        return self.batch is ONE

    @property
    def narrows_shards(self) -> bool:
        """True if weights are gathered in a narrower format than their shards have."""
        return self.shards not in (None, self.weights)

    @property
    def arithmetic(self) -> DType:
        """The format of matrix products."""
        return self.autocast or self.weights

    @property
    def heads_fit(self) -> bool:
        """True if the efficient kernel supports heads of this width.

        Source: torch (aten/src/ATen/native/transformers/cuda/sdp_utils.cpp, minimum_gemm_alignment)
        """
        if self.arithmetic is FLOAT32:
            return self.capability < AMPERE or not self.odd_heads
        before = self.arithmetic is BFLOAT16 and self.capability < AMPERE
        return not (before or self.padded_heads)

    def kernel(self, masked: bool, grouped: bool = False, wide: bool = False) -> Attention:
        """The kernel of the plan, or the one that PyTorch picks: flash, else the efficient one.

        Flash takes neither masks nor `wide` heads; the efficient one wants a head of keys for each
        of queries, so `grouped` ones are left to the reference. Counted as flash is cuDNN's
        attention, which PyTorch prefers on 9.0 and 10.0: it keeps the same, and its workspace is
        the library's.

        Source: torch (aten/src/ATen/native/transformers/cuda/sdp_utils.cpp, select_sdp_backend)
        """
        if self.attention is not Attention.SDPA:
            return self.attention
        narrow = self.arithmetic is not FLOAT32
        if narrow and self.capability >= AMPERE and not (masked or wide):
            return Attention.FLASH
        return Attention.MATH if grouped or not self.heads_fit else Attention.EFFICIENT


# settings that change nothing unless something asks for them while a step is recorded; of each, its
# value where no plan has it, the plan's option, and a value of that option
GUARDED: Final[Mapping[str, tuple[object, str, str]]] = {
    "chunked_loss": (False, "chunked_loss", "torch"),
    "moves_inputs": (False, "activation_offload", "pinned"),
    "context": (1, "context_parallel", "2"),
}
_SETTINGS: Final = frozenset(item.name for item in fields(Mode))


def watched(mode: Mode) -> tuple[Mode, set[str]]:
    """The same mode, and the settings that have been asked of it, which grow."""
    asked: set[str] = set()

    class Watched(Mode):
        """A mode that notes its settings when they are asked for."""

        __slots__ = ()

        def __getattribute__(self, name: str) -> object:
            if name in _SETTINGS:
                asked.add(name)
            return object.__getattribute__(self, name)

        def but(self, **changes: object) -> "Watched":
            return Watched(**{**_settings(self), **changes})

    return Watched(**_settings(mode)), asked


def check_carried_out(mode: Mode, asked: Iterable[str]) -> None:
    """Refuse a step that did not use a setting: it would be counted as a step without it.

    Raises:
        InputError: naming the option.
    """
    for name in GUARDED.keys() - asked:
        unset, option, value = GUARDED[name]
        if object.__getattribute__(mode, name) != unset:
            rule = "no part of this model's step carries it out: leave it out"
            raise InputError(option, value, rule)


def _settings(mode: Mode) -> dict[str, Any]:
    return {name: object.__getattribute__(mode, name) for name in _SETTINGS}
