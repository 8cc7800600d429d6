"""Changes that make a step fit a GPU.

The search exists twice: as a function, and in steps, which pause after each estimate. The page
takes the steps, so that a newer question need not wait for the end of an older search.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace

from calculator.architecture import Architecture
from calculator.catalog.gpus import Gpu
from calculator.errors import InputError
from calculator.estimate import Totals, totals, totals_within
from calculator.plan import Plan
from calculator.planner.changes import CHANGES, HALF_THE_LENGTH, SHORTER, Change, Cost
from calculator.planner.need import Need, need_of_peak, need_on
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
    """

    changes: tuple[Change, ...]
    plan: Plan
    peak: int
    need: Need
    saved: int
    ram: int

    @property
    def cost(self) -> Cost:
        """The highest cost among the changes."""
        return max(change.cost for change in self.changes)

    @property
    def words(self) -> str:
        """The changes as one instruction."""
        first, *others = (change.words for change in self.changes)
        lowered = [words[0].lower() + words[1:] for words in others]
        return ", ".join([first, *lowered[:-1]]) + "".join(f" and {last}" for last in lowered[-1:])

    @property
    def price(self) -> str:
        """Costs of the changes, highest first; negligible ones are left out.

        Two changes that cost the same are named once.
        """
        ordered = sorted(self.changes, key=lambda change: -change.cost)
        costly = [change.price for change in ordered if change.cost is not Cost.NOTHING]
        return " ".join(dict.fromkeys(costly or [ordered[0].price]))


def proposals(
    architecture: Architecture,
    plan: Plan,
    memory: int,
    generation: str = "",
    most: int = MOST_CHANGES,
) -> list[Proposal]:
    """Changes that make a step fit, single ones first, then pairs of which neither does alone.

    Three at once are tried where no pair is enough, and then shorter sequences with three more, for
    a model whose own length is far longer than usual. Within each number of changes the cheaper
    stand first, and among those of equal cost the ones that save more.

    Args:
        architecture: the model.
        plan: the plan that does not fit, or may not.
        memory: the GPU's memory in bytes.
        generation: the GPU's generation, for the libraries' workspaces.
        most: changes at once.

    Raises:
        InputError: if the model does not support the plan.
    """
    *_, found = proposals_in_steps(architecture, plan, memory, generation, most)
    return found


def proposals_in_steps(
    architecture: Architecture,
    plan: Plan,
    memory: int,
    generation: str = "",
    most: int = MOST_CHANGES,
) -> Iterator[list[Proposal]]:
    """After each estimate, what `proposals` has found so far.

    Raises:
        InputError: if the model does not support the plan.
    """
    before = need_of_peak(totals(architecture, plan).gpu, generation).typical

    def propose(changes: tuple[Change, ...], changed: Plan) -> Proposal | None:
        proposal = _proposal(architecture, changes, changed, memory, generation)
        return proposal and replace(proposal, saved=before - proposal.need.typical)

    found: list[Proposal] = []
    for together in range(1, most + 1):
        if together == MOST_CHANGES and found:
            break
        found = yield from _fitting(_changed(architecture, plan, together), propose, found)
    if most == MOST_CHANGES and not found:
        found = yield from _fitting(_shortened(architecture, plan), propose, found)
    yield found


def _fitting(
    tries: Iterator[tuple[tuple[Change, ...], Plan]],
    propose: Callable[[tuple[Change, ...], Plan], Proposal | None],
    known: list[Proposal],
) -> Generator[list[Proposal], None, list[Proposal]]:
    """The known proposals, and those tries that fit and have none of the known in them."""
    enough = [set(proposal.changes) for proposal in known]
    tried: list[Proposal] = []
    for changes, changed in tries:
        if any(fewer <= set(changes) for fewer in enough):
            continue
        if proposal := propose(changes, changed):
            tried.append(proposal)
        yield known + sorted(tried, key=_order)
    return known + sorted(tried, key=_order)


def least_changes(
    architecture: Architecture, plan: Plan, gpus: Sequence[Gpu], most: int = 2
) -> dict[str, Proposal | None]:
    """For each GPU that does not hold a step, the first of its `proposals`; None where none fits.

    The whole model stays what is trained: adapters are not proposed. All GPUs share one search: a
    step's peak is the same on each.

    Raises:
        InputError: if the model does not support the plan.
    """
    peak = totals(architecture, plan).gpu
    left = [gpu for gpu in gpus if not need_on(peak, gpu).fits(gpu.memory)]
    found: dict[str, Proposal | None] = dict.fromkeys(gpu.name for gpu in left)
    for together in range(1, most + 1):
        largest = max((gpu.memory for gpu in left), default=0)
        tried = [
            (changes, changed, needed)
            for changes, changed in _changed(architecture, plan, together)
            if all(change.cost is not Cost.ADAPTERS for change in changes)
            if (needed := _totals_within(architecture, changed, largest.__ge__)) is not None
        ]
        for gpu in left:
            before = need_on(peak, gpu).typical
            fitting = []
            for changes, changed, needed in tried:
                need = need_on(needed.gpu, gpu)
                if need.fits(gpu.memory):
                    saved = before - need.typical
                    fitting.append(Proposal(changes, changed, needed.gpu, need, saved, needed.ram))
            found[gpu.name] = min(fitting, key=_order, default=None)
        left = [gpu for gpu in left if found[gpu.name] is None]
    return found


def _totals_within(
    architecture: Architecture, plan: Plan, fits: Callable[[int], bool]
) -> Totals | None:
    """The totals of a plan that may fit."""
    try:
        return totals_within(architecture, plan, fits)
    except InputError:
        return None  # a combination that this model or its optimizer does not have


def _order(proposal: Proposal) -> tuple[int, int, int]:
    return proposal.cost, sum(change.cost for change in proposal.changes), -proposal.saved


def _changed(
    architecture: Architecture, plan: Plan, together: int
) -> Iterator[tuple[tuple[Change, ...], Plan]]:
    """Every combination of so many changes that each change something, and the plan after it."""
    own = resolve(architecture, plan).sequence_length
    known = plan.but(sequence_length=own)
    left_open = "sequence_length" not in plan.changed()
    for changes, changed in _combined(known, CHANGES, together):
        if left_open and changed.sequence_length == own:
            yield changes, changed.but(sequence_length=plan.sequence_length)
        else:
            yield changes, changed


def _shortened(architecture: Architecture, plan: Plan) -> Iterator[tuple[tuple[Change, ...], Plan]]:
    """The usual length with three other changes: the own length of many models is far longer."""
    own = resolve(architecture, plan).sequence_length
    shorter = SHORTER.apply(plan.but(sequence_length=own))
    if shorter:
        others = [change for change in CHANGES if change not in (SHORTER, HALF_THE_LENGTH)]
        for changes, changed in _combined(shorter, others, MOST_CHANGES):
            yield (SHORTER, *changes), changed


def _combined(
    plan: Plan, among: Sequence[Change], together: int
) -> Iterator[tuple[tuple[Change, ...], Plan]]:
    """The same, for a plan whose lengths are known."""
    if not together:
        yield (), plan
        return
    for place, change in enumerate(among):
        changed = change.apply(plan)
        if changed is not None:
            for others, last in _combined(changed, among[place + 1 :], together - 1):
                yield (change, *others), last


def _proposal(
    architecture: Architecture,
    changes: tuple[Change, ...],
    changed: Plan,
    memory: int,
    generation: str,
) -> Proposal | None:
    """The proposal that these changes make, if the step then fits."""

    def fits(peak: int) -> bool:
        return need_of_peak(peak, generation).fits(memory)

    needed = _totals_within(architecture, changed, fits)
    if needed is None or not fits(needed.gpu):
        return None
    need = need_of_peak(needed.gpu, generation)
    return Proposal(changes, changed, needed.gpu, need, 0, needed.ram)
