"""Births and deaths of bytes on the GPU, with sizes as values, and the purpose of the bytes."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from operator import itemgetter
from typing import Final

from calculator.autograd.dtypes import DType
from calculator.autograd.sizes import Size, size
from calculator.parts import Part, Phase

Mark = tuple[str, int, bool]  # stack, position of the layer, in the backward pass
Move = tuple[int, Part, Part, int]
# a change of a part's bytes: after how many events, the part, and a signed id
PartEvent = tuple[int, Part, int]


class Kind(Enum):
    """The code that makes a product of matrices: a plain one, attention's, or one that unpacks."""

    PLAIN = "plain"
    ATTENTION = "attention"
    PACKED = "packed"


# FLOPs, the format of the factors, the code that makes it, and whether it was made before
Product = tuple[Size, DType, Kind, bool]

# as names of the module: an enumeration finds its members by a slower way
TEMPORARIES: Final = Part.TEMPORARIES
ACTIVATIONS: Final = Part.ACTIVATIONS

# collectives by the names of their methods
ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER = "all_reduce", "all_gather", "reduce_scatter"
ALL_TO_ALL = "all_to_all"
# those of the shards of a unit's weights and gradients
UNIT_ALL_GATHER, UNIT_REDUCE_SCATTER = "unit_all_gather", "unit_reduce_scatter"
# those of the GPUs among which a sequence is divided
CONTEXT_ALL_GATHER, CONTEXT_ALL_TO_ALL = "context_all_gather", "context_all_to_all"
# what else is noted of a tensor: a weight's gradient is complete, it goes to RAM, and comes back in
# the backward pass, or the training loop gets it as an output of the model
ARRIVED, MOVED, HANDED = "arrived", "moved", "handed"
# a shard of a weight comes from RAM to be gathered, and that of a unit's gradients goes there
FETCHED, STORED = "fetched", "stored"

# at the end of a stack's name as the gradients of all micro-batches are reduced, layer by layer
REDUCTION: Final = "+"
# and as a schedule gathers the weights of a stage ahead of its passes, and as these are copied out
AHEAD: Final = "<"
COPIED: Final = ">"

# 1 where the training loop holds the model's outputs to the end of the step, and else 0
HELD: Final = size("held")
# bytes of the outputs of the forward pass before, where the loop holds them until the next is done
PREVIOUS: Final = size("previous_outputs")


class Ledger:
    """Births (+id) and deaths (-id) of storages in order; an id stands for (elements, format).

    `parts` has the part that each event belongs to, and `moves` when living bytes change theirs:
    after how many events, from which part to which, and the id. `notes` are of tensors: after how
    many events, what happens to it (one of those above, or the name of a collective), its elements
    and format. `products` are those of matrices, each after so many events. Where the training loop
    may hold an output, its death is followed by the birth of as many bytes, times `HELD`.
    """

    def __init__(self) -> None:
        self.sizes: dict[tuple[Size, DType], int] = {}
        self.events: list[int] = []
        self.births: list[int] = []
        self.parts: list[Part] = []
        self.moves: list[Move] = []
        self.phases: list[tuple[int, Phase]] = []
        self.marks: list[tuple[int, Mark]] = []
        self.notes: list[tuple[int, str, Size, DType]] = []
        self.products: list[tuple[int, Product]] = []
        self._repeats = False
        self._handed: list[Storage] = []
        self._held: list[tuple[int, int]] = []  # ids that stand for outputs, and their births

    def size_id(self, elements: Size, dtype: DType) -> int:
        """The id, from 1 up, of a storage of that many elements in that format."""
        sizes = self.sizes
        return sizes.setdefault((elements, dtype), len(sizes) + 1)

    def note(self, signed_id: int, part: Part, birth: int) -> None:
        """A birth or a death, of bytes born at event `birth`."""
        self.births.append(birth)
        self.events.append(signed_id)
        self.parts.append(part)

    def move(self, size_id: int, source: Part, target: Part) -> None:
        """Bytes that change their purpose from now on."""
        self.moves.append((len(self.events), source, target, size_id))

    def begin(self, phase: Phase) -> None:
        """The next phase of the step starts here."""
        self.phases.append((len(self.events), phase))

    def remark(self, what: str, elements: Size, dtype: DType) -> None:
        """Note what happens to a tensor; to a whole one that several GPUs make, by a collective."""
        self.notes.append((len(self.events), what, elements, dtype))

    def compute(
        self, flops: Size, dtype: DType, kind: Kind = Kind.PLAIN, again: bool = False
    ) -> None:
        """Products of matrices of so many FLOPs, of factors in a format."""
        product = flops, dtype, kind, again or self._repeats
        self.products.append((len(self.events), product))

    @contextmanager
    def repeating(self) -> Iterator[None]:
        """Products inside were made before: the backward pass makes them again."""
        self._repeats = True
        try:
            yield
        finally:
            self._repeats = False

    def hand_out(self, storage: "Storage") -> None:
        """The training loop gets these bytes as an output of the model."""
        elements, dtype = list(self.sizes)[storage.size_id - 1]
        self.remark(HANDED, elements, dtype)
        storage.held_id = self.size_id(elements * HELD, dtype)
        self._handed.append(storage)

    def hold(self, held_id: int) -> None:
        """Autograd is done with an output; the loop may still hold it."""
        self._held.append((held_id, len(self.events)))
        self.note(held_id, ACTIVATIONS, len(self.events))

    def let_go(self) -> None:
        """The backward pass is over: what the loop holds until then and longer is counted apart."""
        for held_id, birth in self._held:
            self.note(-held_id, ACTIVATIONS, birth)
        for storage in self._handed:  # such as the loss, which dies after this
            storage.held_id = 0
        self._held.clear()
        self._handed.clear()

    def mark(self, stack: str, position: int, backward: bool) -> None:
        """A layer of a stack starts here, in the forward or the backward pass."""
        self.marks.append((len(self.events), (stack, position, backward)))


def part_events(
    events: Sequence[int], parts: Sequence[Part], moves: Sequence[Move]
) -> list[PartEvent]:
    """Changes of all parts in order: births and deaths, and both sides of each move."""
    changes = [
        (after, part, signed_id)
        for after, (part, signed_id) in enumerate(zip(parts, events, strict=True), 1)
    ]
    for now, source, target, size_id in moves:
        changes += ((now, source, -size_id), (now, target, size_id))
    changes.sort(key=itemgetter(0))  # an event stays before the moves that follow it
    return changes


class Storage:
    """Bytes on the GPU, counted by the tensors and graph nodes that hold them."""

    __slots__ = ("birth", "fixed", "held_id", "holders", "ledger", "part", "savers", "size_id")

    def __init__(self, ledger: Ledger, size_id: int, part: Part, fixed: bool = False) -> None:
        self.fixed = fixed
        self.ledger = ledger
        self.size_id = size_id
        self.part = part
        self.holders = 0
        self.savers = 0
        self.held_id = 0
        self.birth = len(ledger.events)
        if size_id:
            ledger.note(size_id, part, self.birth)

    def release(self) -> None:
        """One holder less; the last one frees the bytes."""
        self.holders -= 1
        if not self.holders and self.size_id:
            self.end()

    def end(self) -> None:
        """Nobody holds the bytes, but perhaps the training loop."""
        self.ledger.note(-self.size_id, self.part, self.birth)
        if self.held_id:
            self.ledger.hold(self.held_id)

    def save(self) -> None:
        """A graph node keeps it for the backward pass."""
        self.holders += 1
        self.savers += 1
        if self.savers == 1 and self.part is TEMPORARIES and not self.fixed:
            self.become(ACTIVATIONS)

    def unsave(self) -> None:
        """A graph node is done with it."""
        self.savers -= 1
        if not self.savers and self.part is ACTIVATIONS and not self.fixed:
            self.become(TEMPORARIES)
        self.release()

    def become(self, part: Part) -> None:
        """These bytes change their purpose from now on."""
        if self.size_id and self.part is not part:
            self.ledger.move(self.size_id, self.part, part)
        self.part = part
