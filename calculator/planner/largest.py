"""The largest step that fits: the most sequences at once, and the longest.

Each search exists twice: as a function, and in steps, which pause after each estimate. The page
takes the steps, so that a newer question need not wait for the end of an older search.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from math import gcd, lcm
from typing import Final, TypeVar

from calculator.architecture import Architecture
from calculator.configuration import LONGEST_SEQUENCE
from calculator.errors import InputError
from calculator.estimate import totals
from calculator.plan import LARGEST_BATCH, Plan
from calculator.planner.need import least_need, need_at
from calculator.resolution import refusal, resolve
from calculator.techniques.context_parallel import chunks_of

# while nothing too large is known, the next try is so many times as large
GROWTH: Final = 8
# tries that leave more than half of what was open, one after the other, before halving it
MOST_SLOW: Final = 2

Search = Generator[None, None, int | None]
Found = TypeVar("Found")


def largest_batch(architecture: Architecture, plan: Plan, memory: int) -> int | None:
    """The most sequences in a micro-batch that fit; None where not even one does.

    Raises:
        InputError: if the model does not support the plan.
    """
    return end_of(largest_batch_in_steps(architecture, plan, memory))


def largest_batch_in_steps(architecture: Architecture, plan: Plan, memory: int) -> Search:
    """Pauses after each estimate; the end's value is that of `largest_batch`."""
    length = resolve(architecture, plan).sequence_length
    step = _step(plan.expert_parallel, length)
    tried = _Tried(architecture, plan, "batch_size", memory, step)
    return (yield from tried.largest(plan.batch_size, LARGEST_BATCH))


def longest_sequence(architecture: Architecture, plan: Plan, memory: int) -> int | None:
    """The longest sequence that fits at the plan's batch; None where not even the shortest does.

    It is no longer than the model's own longest where that is fixed, and than the chosen attention
    takes. A model that takes one length only has this one or none.

    Raises:
        InputError: if the model does not support the plan.
    """
    return end_of(longest_sequence_in_steps(architecture, plan, memory))


def longest_sequence_in_steps(architecture: Architecture, plan: Plan, memory: int) -> Search:
    """Pauses after each estimate; the end's value is that of `longest_sequence`."""
    own = resolve(architecture, plan).sequence_length
    most = architecture.positions or LONGEST_SEQUENCE
    if has_one_length(architecture):
        need = _Tried(architecture, plan, "sequence_length", memory).need(own)
        yield
        return own if need is not None and need <= memory else None
    tried = _Tried(architecture, plan, "sequence_length", memory, _length_step(plan))
    return (yield from tried.largest(min(own, most), most))


def _length_step(plan: Plan) -> int:
    """The GPUs that divide a sequence, or the tokens of a micro-batch, take multiples of it."""
    split = plan.tensor_parallel if plan.sequence_parallel else 1
    return lcm(chunks_of(plan), split, _step(plan.expert_parallel, plan.batch_size))


def _step(gpus: int, times: int) -> int:
    """The least number that makes a multiple of some GPUs, so many times.

    >>> _step(8, 6)
    4
    """
    return gpus // gcd(gpus, times)


def has_one_length(architecture: Architecture) -> bool:
    """True if the model takes sequences of only one length."""
    return refusal(architecture, Plan(sequence_length=1)) is not None


def end_of(search: Generator[None, None, Found]) -> Found:
    """The value at the end of a search."""
    while True:
        try:
            next(search)
        except StopIteration as end:
            found: Found = end.value
            return found


@dataclass(slots=True)
class _Bracket:
    """The largest value that is known to fit and the smallest that is not to, with their needs.

    A value without a need is refused. `first` is the least that is not. `slow` counts the tries in
    a row that left more than half of what was open.
    """

    memory: int
    most: int
    bad: int
    first: int
    good: int = 0
    low: int = 0
    high: int | None = None
    slow: int = 0

    def add(self, value: int, need: int | None) -> None:
        """Learn what a value needs."""
        before = self.bad - self.good
        if need is not None and need <= self.memory:
            self.good, self.low = value, need
        else:
            self.bad, self.high = value, need
        self.slow = self.slow + 1 if 2 * (self.bad - self.good) > before else 0

    def next(self) -> int:
        """The value to try next."""
        if not self.good:
            return self.first
        if self.bad > self.most:
            return min(GROWTH * self.good, self.most)
        if self.high is None or self.slow >= MOST_SLOW:
            return (self.good + self.bad) // 2
        share = (self.memory - self.low) * (self.bad - self.good) // (self.high - self.low)
        return min(max(self.good + share, self.good + 1), self.bad - 1)


@dataclass(slots=True)
class _Tried:
    """The most bytes that a plan needs with other values of one option, in multiples of a step."""

    architecture: Architecture
    plan: Plan
    option: str
    memory: int
    step: int = 1
    peaks: dict[int, int | None] = field(default_factory=dict)

    def largest(self, own: int, most: int) -> Search:
        """The largest value up to `most` that fits, from the plan's own value on.

        The need without a simulation of the allocator is no higher, so what it allows is the end of
        the search, and its distance there from the need tells where to go on. A simulated need may
        be higher for a smaller step, so the search comes from above.
        """
        own, last = own // self.step, most // self.step
        first = yield from self._first(own)
        end = yield from _largest(self.least, own, _Bracket(self.memory, last, last + 1, first))
        if end is None:
            return None
        bracket = _Bracket(self.memory, end, end + 1, first)
        need, least = self.need(end), self.least(end)
        bracket.add(end, need)
        if bracket.bad == end and need is not None and least is not None:
            yield
            smaller = _Bracket(self.memory - need + least, end, end + 1, first)
            at = (yield from _largest(self.least, end, smaller)) or first
            bracket.add(at, self.need(at))
            while not bracket.good and at > first:
                yield
                at = max(at // 2, first)
                bracket.add(at, self.need(at))
        found = yield from _narrowed(bracket, self.need)
        return found and self.step * found

    def _first(self, own: int) -> Generator[None, None, int]:
        """The least power of two that is not refused, such as 4 tokens with the loss in chunks."""
        first = 1
        while first < own and self._peak(first) is None:
            yield
            first *= 2
        return min(first, own)

    def least(self, count: int) -> int | None:
        """The need without a simulation; None for a value that is refused."""
        peak = self._peak(count)
        return None if peak is None else least_need(self._with(count), peak).high

    def need(self, count: int) -> int | None:
        """The need, or what is already too much; None for a value that is refused."""
        peak = self._peak(count)
        if peak is None:
            return None
        return need_at(self.architecture, self._with(count), peak, self.memory).high

    def _with(self, count: int) -> Plan:
        return resolve(self.architecture, self.plan.but(**{self.option: self.step * count}))

    def _peak(self, count: int) -> int | None:
        if count not in self.peaks:
            try:
                self.peaks[count] = totals(self.architecture, self._with(count)).gpu
            except InputError:
                self.peaks[count] = None
        return self.peaks[count]


def _largest(need_at: Callable[[int], int | None], own: int, bracket: _Bracket) -> Search:
    """The largest value of a bracket whose step fits, from the plan's own value on."""
    bracket.add(own, need_at(own))
    return (yield from _narrowed(bracket, need_at))


def _narrowed(bracket: _Bracket, need_at: Callable[[int], int | None]) -> Search:
    """The largest value that fits, of those that a bracket leaves open.

    A larger step never needs less, and its need grows along lines that are nearly straight. So the
    next try is where the line from what fits to what does not meets the memory.
    """
    while bracket.bad - bracket.good > 1:
        yield
        value = bracket.next()
        bracket.add(value, need_at(value))
    return bracket.good or None
