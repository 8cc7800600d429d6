"""Changes that make a step fit a GPU.

The search exists twice: as a function, and in steps, which pause after each estimate. The page
takes the steps, so that a newer question need not wait for the end of an older search.
"""

from bisect import insort
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import inf

from calculator.architecture import Architecture
from calculator.catalog import Gpu
from calculator.errors import InputError
from calculator.estimate import Totals, is_too_large, lawful_totals, totals
from calculator.plan import Plan
from calculator.planner.change import DIVISION, LENGTH, Change, Cost
from calculator.planner.changes import SHORTER, changes_for
from calculator.planner.need import Need, judged, least_need, need_at, need_of
from calculator.planner.pace import describe_time, more_time, pace_of
from calculator.resolution import resolve

MOST_CHANGES = 3


@dataclass(frozen=True, slots=True)
class Proposal:
    """Changes after which the step fits.

    Attributes:
        changes: one, or several that fit only together.
        plan: the plan after them.
        peak: what the step's tensors then take of the GPU.
        need: the same with the overhead.
        saved: bytes of the typical need less than before.
        ram: bytes of RAM that the step then takes.
        time: what a token takes more than before, as a share; None where the clock cannot say.
    """

    changes: tuple[Change, ...]
    plan: Plan
    peak: int
    need: Need
    saved: int
    ram: int
    time: float | None = None

    @property
    def cost(self) -> Cost:
        """The highest cost among the changes."""
        return max(change.cost for change in self.changes)

    @property
    def helps(self) -> bool:
        """True if it saves at least a hundredth of what the step takes."""
        return 100 * self.saved >= self.need.typical + self.saved

    @property
    def instructions(self) -> list[str]:
        """Each change as an instruction."""
        return [change.words_for(self.plan) for change in self.changes]

    @property
    def words(self) -> str:
        """The changes as one instruction."""
        first, *others = self.instructions
        lowered = [words[0].lower() + words[1:] for words in others]
        return ", ".join([first, *lowered[:-1]]) + "".join(f" and {last}" for last in lowered[-1:])

    @property
    def price(self) -> str:
        """The time, and what each change costs, largest first, without the negligible.

        Two changes that cost the same are named once. Where the clock has no answer, the time of
        some changes is known in words.
        """
        ordered = sorted(self.changes, key=lambda change: -change.cost)
        costly = [change for change in ordered if change.cost is not Cost.NOTHING] or ordered[:1]
        if self.time is None:
            words = [sentence for change in costly for sentence in (change.price, change.guess)]
        else:
            words = [describe_time(self.time), *(change.price for change in costly)]
        return " ".join(dict.fromkeys(filter(None, words)))


Try = tuple[tuple[Change, ...], Plan]
Allowed = Callable[[Plan], bool]
Propose = Callable[[tuple[Change, ...], Plan], Proposal | None]


def proposals(
    architecture: Architecture,
    plan: Plan,
    memory: int,
    most: int = MOST_CHANGES,
) -> list[Proposal]:
    """Changes that make a step fit, single ones first, then pairs of which neither does alone.

    Three at once are tried where no pair is enough, then as many as it takes. Shorter sequences
    come last: with three more for a model whose own length is far longer than usual, then with as
    many as it takes. Within each number of changes those that cost nothing stand first, then those
    that leave the training as it is, and among them the ones that take the least time by the clock.
    Where a change can be made to a lesser degree, the least that is enough is proposed too.

    Args:
        architecture: the model.
        plan: the plan that does not fit, or may not.
        memory: the GPU's memory in bytes.
        most: changes at once.

    Raises:
        InputError: if the model does not support the plan.
    """
    *_, found = proposals_in_steps(architecture, plan, memory, most)
    return found


def proposals_in_steps(
    architecture: Architecture,
    plan: Plan,
    memory: int,
    most: int = MOST_CHANGES,
    enough: int | None = None,
    allowed: Allowed | None = None,
) -> Iterator[list[Proposal]]:
    """After each estimate, what `proposals` has found so far; the same list until there is more.

    The search may end when the first proposals are found that are `enough`: then those behind them
    are not all there. Only plans are tried that are `allowed`.

    Raises:
        InputError: if the model does not support the plan.
    """
    totals(architecture, plan)  # what cannot be is refused before any search
    propose = _proposing(architecture, plan, memory)
    found: list[Proposal] = []
    for together in range(1, most + 1):
        if together == MOST_CHANGES and found:
            break
        # changes that are enough alone are in no pair
        alone = {one.changes for one in found}
        among = [change for change in changes_for(architecture) if (change,) not in alone]
        tries = _allowed(_changed(architecture, plan, among, together), allowed)
        found = yield from _fitting(tries, propose, found, enough)
    for without in ((LENGTH, DIVISION), (DIVISION,)) if most == MOST_CHANGES else ():
        if not found:
            many = yield from _many(architecture, plan, memory, without, allowed)
            found = yield from _fitting(many, propose, found, enough)
        if not found and LENGTH in without:
            tries = _allowed(_shortened(architecture, plan), allowed)
            found = yield from _fitting(tries, propose, found, enough)
    yield found


def _allowed(tries: Iterator[Try], allowed: Allowed | None) -> Iterator[Try]:
    """The tries whose plan is allowed, or all."""
    return tries if allowed is None else (one for one in tries if allowed(one[1]))


def _proposing(architecture: Architecture, plan: Plan, memory: int) -> Propose:
    """Proposals beside the plan before them."""
    pace = pace_of(architecture, plan)

    def propose(changes: tuple[Change, ...], changed: Plan) -> Proposal | None:
        proposal = _proposal(architecture, changes, changed, memory)
        if proposal is None:
            return None
        after = pace_of(architecture, changed) if pace else None
        saved = need_of(judged(architecture, plan)).typical - proposal.need.typical
        return replace(proposal, saved=saved, time=more_time(pace, after))

    return propose


def _fitting(
    tries: Iterable[Try], propose: Propose, known: list[Proposal], enough: int | None
) -> Generator[list[Proposal], None, list[Proposal]]:
    """The known proposals, and behind them the tries that fit, in the order of `_order`."""
    left = None if enough is None else enough - len(known)
    tried: list[Proposal] = []
    found = known
    for changes, changed in sorted(tries, key=lambda one: _price(one[0])):
        if left is not None and (left <= 0 or _are_cheaper(tried[:left], left, _rank(changes))):
            break
        if tried and any(change.is_slow for change in changes):
            continue
        if proposal := propose(changes, changed):
            for one in (proposal, *_lesser(proposal, propose)):
                if one.helps:
                    insort(tried, one, key=_order)
            found = known + tried
        yield found
    return found


def _are_cheaper(first: Sequence[Proposal], many: int, rank: Cost) -> bool:
    """True if there are so many proposals, and all rank before others of that rank."""
    return len(first) == many and _rank(first[-1].changes) < rank


def _lesser(proposal: Proposal, propose: Propose) -> Iterator[Proposal]:
    """The same with one of the changes made only as far as is needed, where that is less."""
    for place, change in enumerate(proposal.changes):
        least = None
        for lesser in change.lesser:
            changed = lesser.apply(proposal.plan)
            changes = (*proposal.changes[:place], lesser, *proposal.changes[place + 1 :])
            if changed is None or (fitting := propose(changes, changed)) is None:
                break
            least = fitting
        if least is not None:
            yield least


def least_changes(
    architecture: Architecture, plan: Plan, gpus: Sequence[Gpu], most: int = 2
) -> dict[str, Proposal | None]:
    """For each GPU that does not hold a step, its first proposal without adapters, or None.

    The whole model stays what is trained.

    Raises:
        InputError: if the model does not support the plan.
    """
    left = [gpu for gpu in gpus if not fits_on(architecture, plan, gpu)]
    found: dict[str, Proposal | None] = dict.fromkeys(gpu.name for gpu in left)
    among = [one for one in changes_for(architecture) if one.cost is not Cost.ADAPTERS]
    for together in range(1, most + 1):
        tries = list(_changed(architecture, plan, among, together))
        for gpu in left:
            found[gpu.name] = _least_change(architecture, plan, tries, gpu)
        left = [gpu for gpu in left if found[gpu.name] is None]
    return found


def fits_on(architecture: Architecture, plan: Plan, gpu: Gpu) -> bool:
    """True if a GPU is certain to hold a step.

    Raises:
        InputError: if the model does not support the plan.
    """
    on_gpu = plan.on(gpu)
    peak = totals(architecture, on_gpu).gpu
    return need_at(architecture, on_gpu, peak, gpu.memory).fits(gpu.memory)


def _least_change(
    architecture: Architecture, plan: Plan, tries: Sequence[Try], gpu: Gpu
) -> Proposal | None:
    """The first proposal among some tries for a GPU that does not hold a step."""
    propose = _proposing(architecture, plan.on(gpu), gpu.memory)
    on_gpu = ((changes, changed.on(gpu)) for changes, changed in tries)
    *_, found = [[], *_fitting(on_gpu, propose, [], 1)]
    return found[0] if found else None


def _totals_within(
    architecture: Architecture, plan: Plan, fits: Callable[[int], bool]
) -> Totals | None:
    """The totals of a plan that may fit."""
    large = is_too_large(architecture, plan, fits)
    return None if large else lawful_totals(architecture, plan, fits)


def _order(proposal: Proposal) -> tuple[float, ...]:
    """The rank, then the time to a percent, then the costs, and at last what is saved.

    Time that is saved is no reason to give up precision.
    """
    rank, time = _rank(proposal.changes), proposal.time
    if time is None:
        time = sum(change.cost.usual_time for change in proposal.changes)
    percent = time if time == inf else round(100 * time)
    if rank is Cost.EFFICIENCY:
        percent = max(0, percent)
    return (rank, percent, *_price(proposal.changes), -proposal.saved)


def _rank(changes: Sequence[Change]) -> Cost:
    return max(change.cost for change in changes).rank


def _price(changes: Sequence[Change]) -> tuple[int, int]:
    """The highest cost among changes, and the sum of their costs."""
    costs = [change.cost for change in changes]
    return max(costs), sum(costs)


def _changed(
    architecture: Architecture, plan: Plan, among: Sequence[Change], together: int
) -> Iterator[Try]:
    """Every combination of so many changes that each change something, and the plan after it."""
    own = resolve(architecture, plan).sequence_length
    known = plan.but(sequence_length=own)
    left_open = "sequence_length" not in plan.changed()
    for changes, changed in _combined(known, among, together):
        if left_open and changed.sequence_length == own:
            yield changes, changed.but(sequence_length=plan.sequence_length)
        else:
            yield changes, changed


def _many(
    architecture: Architecture,
    plan: Plan,
    memory: int,
    without: Sequence[str],
    allowed: Allowed | None,
) -> Generator[list[Proposal], None, list[Try]]:
    """Changes that fit together and no longer without any of them, with adapters and without.

    Changes about one of `without` are not tried. The search pauses after each estimate.
    """
    own = resolve(architecture, plan).sequence_length
    known = plan.but(sequence_length=own)
    tries: list[Try] = []
    for limit in (Cost.ADAPTERS, Cost.OTHER_MODEL):
        among = [
            one
            for one in changes_for(architecture)
            if one.cost < limit and one.about not in without
        ]
        found = yield from _smallest(architecture, known, among, allowed)
        for one in sorted(found, key=lambda one: -one.cost):
            fewer = tuple(other for other in found if other is not one)
            changed = _after(known, fewer)
            if changed and one.cost < Cost.ADAPTERS:
                yield []
                found = fewer if _proposal(architecture, (), changed, memory) else found
        changed = _after(known, found)
        if changed and changed.sequence_length == own:
            changed = changed.but(sequence_length=plan.sequence_length)
        if found and changed and (found, changed) not in tries:
            tries.append((found, changed))
    return tries


def _smallest(
    architecture: Architecture, plan: Plan, among: Sequence[Change], allowed: Allowed | None
) -> Generator[list[Proposal], None, tuple[Change, ...]]:
    """The changes that make a step smallest, found one by one, the most costly first.

    Each saves a hundredth or more when it is found.
    """
    found: tuple[Change, ...] = ()
    least = totals(architecture, plan).gpu
    # Twice, since some save something only after another.
    for change in sorted(among, key=lambda one: -one.cost) * 2:
        beside = [one for one in found if change.goes_with(one)]
        tried = tuple(one for one in among if one is change or one in beside)
        changed = None if change in found or change.is_slow else _after(plan, tried)
        if changed is None or not (allowed is None or allowed(changed)):
            continue
        yield []
        with suppress(InputError):  # a combination that cannot be
            peak = totals(architecture, changed).gpu
            if 100 * peak <= 99 * least:
                found, least = tried, peak
    return found


def _after(plan: Plan, changes: Sequence[Change]) -> Plan | None:
    """The plan after changes in their order; None where one of them changes nothing."""
    changed: Plan | None = plan
    for change in changes:
        changed = change.apply(changed) if changed else None
    return changed


def _shortened(architecture: Architecture, plan: Plan) -> Iterator[Try]:
    """The usual length with three other changes: many models allow far longer sequences.

    None of them divides the model among GPUs in another way: `several` searches for plans that
    need shards and so many changes.
    """
    own = resolve(architecture, plan).sequence_length
    shorter = SHORTER.apply(plan.but(sequence_length=own))
    if shorter:
        others = [
            one
            for one in changes_for(architecture)
            if SHORTER.goes_with(one) and one.about != DIVISION
        ]
        for changes, changed in _combined(shorter, others, MOST_CHANGES):
            yield (SHORTER, *changes), changed


def _combined(plan: Plan, among: Sequence[Change], together: int) -> Iterator[Try]:
    """The same, for a plan whose lengths are known."""
    if not together:
        yield (), plan
        return
    for place, change in enumerate(among):
        changed = change.apply(plan)
        if changed is not None:
            beside = among[place + 1 :] if together > 1 else ()
            rest = [one for one in beside if change.goes_with(one)]
            for others, last in _combined(changed, rest, together - 1):
                yield (change, *others), last


def _proposal(
    architecture: Architecture,
    changes: tuple[Change, ...],
    changed: Plan,
    memory: int,
) -> Proposal | None:
    """The proposal that these changes make, if the step then fits."""

    def may_fit(peak: int) -> bool:
        return least_need(changed, peak).fits(memory)

    needed = _totals_within(architecture, changed, may_fit)
    if needed is None:
        return None
    need = need_at(architecture, changed, needed.gpu, memory)
    if not need.fits(memory):
        return None
    return Proposal(changes, changed, needed.gpu, need, 0, needed.ram)
