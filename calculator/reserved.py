"""Bytes that PyTorch's allocator reserves: a program from an empty card to its third step.

The program loads a model as transformers does, adapts it as peft does, and trains three steps. The
first has no optimizer states yet; its update makes them. Every step begins with the free blocks
that the one before left.

What other streams use is not modeled: blocks that FSDP's gathers and reductions hold a little
longer, and NCCL's own buffers, which no allocator counts.

Source: torch, transformers (modeling_utils.py, caching_allocator_warmup)
"""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import chain, groupby
from marshal import dumps
from operator import attrgetter
from typing import Final

from calculator.allocator import BLOCK, Block, CachingAllocator, OutOfMemoryError, round_block
from calculator.architecture import Architecture
from calculator.autograd.scratch import like_kernels
from calculator.bounds import range_of
from calculator.cards import CARDS, Card
from calculator.estimate import fullest_part, static_of
from calculator.loaded import weights_of
from calculator.optimizers.rule import rule_of
from calculator.overhead import Overhead, estimate_overhead, handle_bytes, simulated_overhead
from calculator.parameters import parameter_tensors
from calculator.peaks.events import Event, Recording, in_order, recording_of
from calculator.peaks.outputs import with_outputs
from calculator.peaks.prepare import prepare
from calculator.peaks.step import Prepared, Step, inputs_of
from calculator.plan import DataParallel, Offload, Plan, Update
from calculator.report import Report
from calculator.resolution import resolve
from calculator.techniques.data_parallel import bucket_bytes
from calculator.tensors import Statics

STEPS: Final = 3
# so many micro-steps after the first one stand for all
LATER: Final = 2
# dimensions of what stands for an output while the loop holds it (`Ledger.hold`), and of tokens
HELD: Final = {"held"}
TOKENS: Final = {"batch", "sequence"}
# more than any model has; the requests of a million layers would not fit a machine's memory
MOST_LAYERS: Final = 1000


@dataclass(frozen=True, slots=True)
class Reserved:
    """Highest bytes of blocks in use and of segments during three steps.

    They are what `max_memory_allocated` and `max_memory_reserved` report.
    """

    allocated: int
    reserved: int


# the last programs' ends by their requests: cards of neighboring generations ask for the same
MOST_HELD: Final = 8
_held: dict[tuple[tuple[bytes, ...], int | None, bool], Reserved] = {}
# the same before the first update, until which optimizers make no difference
MOST_BEGUN: Final = 16
_begun: dict[tuple[tuple[bytes, ...], bool], tuple[CachingAllocator, list[Block]]] = {}


@dataclass(frozen=True, slots=True)
class Workspaces:
    """Bytes of libraries' workspaces, by the pass whose thread asks for them first."""

    forward: tuple[int, ...] = ()
    backward: tuple[int, ...] = ()


NO_WORKSPACES: Final = Workspaces()


def reserved(
    architecture: Architecture,
    plan: Plan,
    workspaces: Workspaces = NO_WORKSPACES,
    limit: int | None = None,
    expandable: bool = False,
) -> Reserved:
    """The most that the allocator holds.

    Args:
        architecture: the model.
        plan: a plan for it.
        workspaces: those of cuBLAS and cuBLASLt.
        limit: bytes that the card has for PyTorch; None for as many as it takes.
        expandable: true with `expandable_segments:True`.

    Raises:
        InputError: if the model does not support the plan.
        OutOfMemoryError: if the limit leaves no room.
    """
    resolved = resolve(architecture, plan)
    program = Program(fullest_part(architecture, resolved), resolved, workspaces)
    key = program.requests(), limit, expandable
    if key not in _held:
        allocator, alive = _begun_by(program, limit, expandable)
        program.go_on(allocator, alive)
        if len(_held) == MOST_HELD:
            _held.pop(next(iter(_held)))
        _held[key] = Reserved(allocator.peak_allocated, allocator.peak_reserved)
    return _held[key]


def _begun_by(
    program: "Program", limit: int | None, expandable: bool
) -> tuple[CachingAllocator, Iterable[Block]]:
    """The allocator before a program's first update, and the blocks that die after it.

    Programs that differ in no request until then share it, and so do limits that it stays within.
    """
    key = program.first_requests, expandable
    known, alive = _begun.get(key, (None, []))
    if known is None or (limit is not None and known.peak_reserved > limit):
        known = CachingAllocator(limit, expandable)
        alive = program.begin(known)
        if limit is not None:
            return known, alive
        if len(_begun) == MOST_BEGUN:
            del _begun[next(iter(_begun))]
        _begun[key] = known, alive
    allocator, alive = known.copied(alive)
    allocator.limit = limit
    return allocator, alive


def simulated(architecture: Architecture, report: Report) -> Report:
    """A report's overhead with the allocator's own figures in the place of typical ones.

    On a card with too little room for all segments the allocator gives free ones back; where that
    is not enough either, the figures are those of a card with room.
    """
    return replace(report, overhead=overhead_of(architecture, report.plan, report.gpu.total))


@lru_cache(maxsize=256)
def overhead_of(architecture: Architecture, plan: Plan, peak: int) -> Overhead:
    """The same of a resolved plan, whose step's tensors hold so many bytes at the peak.

    Of more than `MOST_LAYERS` layers the allocator is not simulated.
    """
    card = plan.card
    if architecture.layers + architecture.decoder_layers > MOST_LAYERS:
        return estimate_overhead(peak, card)
    found = _with_room(architecture, plan.on(_stand_in(card)))
    limit = card.memory - card.context
    if found.allocated <= limit < found.reserved:
        with suppress(OutOfMemoryError):
            found = reserved(architecture, plan, _workspaces(card), limit=limit)
    return simulated_overhead(peak, found.allocated, found.reserved, card, range_of(plan))


@lru_cache(maxsize=1024)
def _with_room(architecture: Architecture, plan: Plan) -> Reserved:
    """Bytes that the allocator holds where it never has to give segments back."""
    return reserved(architecture, plan, _workspaces(plan.card))


@lru_cache(maxsize=256)
def _stand_in(card: Card) -> Card:
    """The first card that runs the same kernels, so that cards of a kind share a simulation."""
    return next((each for each in CARDS.values() if _kind(each) == _kind(card)), card)


def _kind(card: Card) -> tuple[object, ...]:
    """A card's kernels and workspaces, on which a simulation depends."""
    return card.capability and like_kernels(card.capability), handle_bytes(card)


def _workspaces(card: Card) -> Workspaces:
    return Workspaces((handle_bytes(card),), (handle_bytes(card),))


@dataclass(frozen=True, slots=True)
class Micro:
    """The events of a micro-step's passes, whatever its sizes come to.

    Attributes:
        forward: births and deaths of the forward pass.
        backward: those of the backward pass.
        kept: tensors that the loop holds.
        left: the place in the sizes of each tensor that both passes leave, without those.
        born: those of them that the backward pass gave birth to.
        requests: the same as bytes.
    """

    forward: Sequence[Event]
    backward: Sequence[Event]
    kept: frozenset[int]
    left: Mapping[int, int]
    born: frozenset[int]
    requests: bytes


@dataclass(frozen=True, slots=True)
class Recorded:
    """A micro-step with the bytes of its sizes.

    `graph` are the tensors that die with autograd's graph, after the backward pass.
    """

    micro: Micro
    sizes: Sequence[int]
    graph: set[int]


class Program:
    """All requests of a program to the allocator; `plan` is resolved."""

    def __init__(self, architecture: Architecture, plan: Plan, workspaces: Workspaces) -> None:
        self.architecture, self.plan, self.workspaces = architecture, plan, workspaces
        self.prepared = with_outputs(prepare(architecture, plan), plan)
        self.static: Statics = static_of(architecture, plan)[0]
        weights = list(weights_of(architecture, plan))
        sizes = divided(self.static.weights, [one.size for one in weights])
        self.weights = list(zip(weights, sizes, strict=False))
        self.adapters = sizes[len(weights) :]
        self.buckets = bucket_bytes(self.prepared, plan)
        tensors = (one for one in parameter_tensors(architecture, plan) if one.trained)
        self.updated = [
            one.elements
            for copies, group in groupby(tensors, key=attrgetter("copies"))
            for one in [*group] * copies
        ]
        self.masters = self._masters()
        self.states = self._states(sum(map(round_block, self.masters)))
        self.temporaries = self._temporaries()
        self.passes = self._passes()

    def requests(self) -> tuple[bytes, ...]:
        """All that `run` asks for: programs with the same requests end alike."""
        return *self.first_requests, dumps((self.states, self.temporaries), 2)

    @cached_property
    def first_requests(self) -> tuple[bytes, ...]:
        """All that it asks for before the first update."""
        weights = [(one.loaded, one.is_packed, one.is_trained, size) for one, size in self.weights]
        passes = [(one.sizes, sorted(one.graph)) for one in self.passes]
        workspaces = self.workspaces.forward, self.workspaces.backward
        leave = self.prepared.step.mode.gradients_leave
        lasting = self.buckets, self.adapters, self.masters, leave
        numbers = dumps((weights, passes, workspaces, lasting), 2)
        return numbers, *(one.micro.requests for one in self.passes)

    def run(self, allocator: CachingAllocator) -> None:
        """Load the model and train."""
        self.go_on(allocator, self.begin(allocator))

    def begin(self, allocator: CachingAllocator) -> list[Block]:
        """Load the model and train until the first update; the blocks that die after it."""
        self._load(allocator)
        keep(allocator, [self.buckets])
        keep(allocator, self.masters)
        return self._step(allocator, is_first=True)

    def go_on(self, allocator: CachingAllocator, alive: Iterable[Block]) -> None:
        """The first update, which makes the states, and the other steps."""
        keep(allocator, self.states)
        self._update(allocator, alive)
        for _ in range(1, STEPS):
            before = allocator.reserved
            allocator.watch()
            self._update(allocator, self._step(allocator, is_first=False))
            if allocator.is_steady or allocator.reserved == before:
                break  # the next would find room for everything

    def _update(self, allocator: CachingAllocator, alive: Iterable[Block]) -> None:
        """The optimizer's update, after which what lives no longer than a step is gone."""
        release(allocator, keep(allocator, self.temporaries))
        release(allocator, alive)

    def _step(self, allocator: CachingAllocator, is_first: bool) -> list[Block]:
        """Blocks that live after all micro-steps: the last inputs, and gradients."""
        inputs: list[Block] = []
        gradients: list[Block] = []
        for recorded in self.passes:
            release(allocator, inputs)
            inputs, made = self._pass(allocator, recorded, is_first)
            is_first = False
            if gradients:  # which exist by now
                release(allocator, made)
            else:
                gradients = made
        if self.prepared.step.mode.gradients_leave:  # which are views of buckets now
            release(allocator, gradients)
            gradients = []
        return inputs + gradients

    def _load(self, allocator: CachingAllocator) -> None:
        """The weights, adapters last; those that are packed go through a segment made at once.

        Weights that are not packed are widened when all are there.
        """
        if any(one.is_packed for one, _ in self.weights):
            whole = sum(one.size if one.is_packed else one.loaded for one, _ in self.weights)
            release(allocator, keep(allocator, [whole]))
        waiting: list[tuple[Block, int]] = []
        for one, size in self.weights:
            if one.is_trained:
                continue
            if not one.loaded or not size:
                keep(allocator, [size])
                continue
            loaded = allocator.allocate(one.loaded)
            if one.is_packed:
                keep(allocator, [size])
                allocator.free(loaded)
            else:
                waiting.append((loaded, size))
        for loaded, size in waiting:
            keep(allocator, [size])
            allocator.free(loaded)
        keep(allocator, [size for one, size in self.weights if one.is_trained])
        keep(allocator, self.adapters)

    def _masters(self) -> list[int]:
        on_gpu = self.plan.has_master_weights and self.plan.offload is Offload.NONE
        return [4 * each for each in self.updated] if on_gpu else []

    def _states(self, masters: int) -> list[int]:
        """States tensor by tensor, as their total is known."""
        count = rule_of(self.plan).states
        sizes = [
            each * self.plan.optimizer_bits // 8 for each in self.updated for _ in range(count)
        ]
        return divided(self.static.optimizer - masters, sizes)

    def _temporaries(self) -> list[int]:
        """The update's: a list as large as all weights, or several; else one for all."""
        total = self.static.update
        sizes = [each * self.plan.trained_bytes for each in self.updated]
        often = total // (sum(map(round_block, sizes)) or 1)
        return divided(total, sizes * often if self.plan.update is Update.FOREACH else [])

    def _passes(self) -> list[Recorded]:
        """The micro-steps of a step: the first makes the gradients, later ones add to them."""
        recorded = self._recorded(self.prepared)
        if not self.prepared.step.mode.gradients_exist:
            return [recorded]
        first = self.plan.but(accumulation=1)
        if first.data_parallel is DataParallel.DDP_VIEW:  # only the last one's go to buckets
            first = first.but(data_parallel=DataParallel.DDP)
        alone = prepare(self.architecture, first)
        return [self._recorded(alone), *[recorded] * min(self.plan.accumulation - 1, LATER)]

    def _recorded(self, prepared: Prepared) -> Recorded:
        recording = recording_of(prepared.step)
        sizes = recording.bytes(self.prepared.numbers)
        held = frozenset(number for number in numbered(recording, HELD) if sizes[number])
        micro = micro_of(prepared.step, prepared.left_out, held)
        return Recorded(micro, sizes, {*micro.left} - self._gradients(recording, micro, sizes))

    def _gradients(self, recording: Recording, micro: Micro, sizes: Sequence[int]) -> set[int]:
        """The weights' gradients among the tensors that live: those of a weight's size.

        Shards are padded; theirs are what the backward pass leaves of anything but tokens.
        """
        if self.plan.is_sharded:
            of_tokens = numbered(recording, TOKENS)
            return {number for number in micro.born if micro.left[number] not in of_tokens}
        tensors = (one for one in parameter_tensors(self.architecture, self.plan) if one.trained)
        like = {one.gradient_elements * (one.width or self.plan.weight_bytes) for one in tensors}
        return {number for number, place in micro.left.items() if sizes[place] in like}

    def _pass(
        self, allocator: CachingAllocator, recorded: Recorded, is_first: bool
    ) -> tuple[list[Block], list[Block]]:
        """Blocks that live after both passes: what the loop holds, and gradients."""
        blocks: dict[int, Block] = {}
        if is_first:
            keep(allocator, self.workspaces.forward)
        allocator.replay(recorded.micro.forward, recorded.sizes, blocks)
        if is_first:
            keep(allocator, self.workspaces.backward)
        allocator.replay(recorded.micro.backward, recorded.sizes, blocks)
        kept = [blocks.pop(number) for number in recorded.micro.kept if number in blocks]
        release(allocator, [blocks.pop(number) for number in recorded.graph if number in blocks])
        return kept, [*blocks.values()]


@lru_cache(maxsize=8)
def micro_of(step: Step, left_out: tuple[int, ...], held: frozenset[int]) -> Micro:
    """A step's events, of which outputs of the sizes `held` live on while the loop holds them."""
    ordered = in_order(recording_of(step), left_out)
    events, before = ordered.events, ordered.before
    kept = {*range(1, len(inputs_of(step)) + 1)}  # they are born before all else
    forward, backward = (
        without_deaths(each, held, kept) for each in (events[:before], events[before:])
    )
    left: dict[int, int] = {}
    for number, place in chain(forward, backward):
        if place:
            left[number] = place
        else:
            left.pop(-number, None)
    left = {number: place for number, place in left.items() if number not in kept}
    born = frozenset(number for number, place in backward if place)
    requests = dumps((forward, backward, sorted(kept)), 2)  # later versions note references
    return Micro(forward, backward, frozenset(kept), left, born & {*left}, requests)


def numbered(recording: Recording, names: AbstractSet[str]) -> set[int]:
    """Numbers of the sizes that have a dimension of one of these names."""
    sizes = enumerate(recording.sizes, 1)
    return {
        number
        for number, (size, _) in sizes
        if any(dimension.name in names for dimension in size.dimensions)
    }


def without_deaths(events: Sequence[Event], held: frozenset[int], kept: set[int]) -> list[Event]:
    """Events in which outputs that the loop holds live on, whose numbers are added to `kept`.

    The tape has a death of such an output, and at once a birth of one of the sizes `held`.
    """
    found: list[Event] = []
    stand_ins: set[int] = set()
    for event in events:
        number, size = event
        if size in held:
            kept.add(-found.pop()[0])
            stand_ins.add(-number)
        elif number not in stand_ins:
            found.append(event)
    return found


def keep(allocator: CachingAllocator, sizes: Iterable[int]) -> list[Block]:
    """Blocks of so many bytes, without those of none."""
    return [allocator.allocate(size) for size in sizes if size > 0]


def release(allocator: CachingAllocator, blocks: Iterable[Block]) -> None:
    """Give blocks back."""
    for block in blocks:
        allocator.free(block)


def divided(total: int, sizes: Sequence[int]) -> list[int]:
    """Sizes whose blocks are `total` bytes: smaller ones in proportion, or one more for the rest.

    >>> divided(3072, [512, 1024])
    [512, 1024, 1536]
    """
    whole = sum(map(round_block, sizes))
    if whole > total:
        return divided(total, [size * total // whole // BLOCK * BLOCK for size in sizes])
    return [*sizes, total - whole]
