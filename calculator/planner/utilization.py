"""Utilization of a run's GPUs: the reader's, or else the clock's for the model and the card."""

from functools import lru_cache
from typing import Final

from calculator.cards import CARDS
from calculator.catalog import find_model
from calculator.plan import Checkpointing, Plan
from calculator.planner.compute import Recomputation, Work
from calculator.planner.largest import largest_batch
from calculator.planner.pace import pace_of
from calculator.planner.run import Kind, Run
from calculator.resolution import resolve

# where neither the reader nor the clock has an answer: an assumption of ours
ASSUMED: Final = 0.3
# in percent, digits after the point
DIGITS: Final = 1


def utilization_of(model: str, run: Run, kind: Kind, work: Work) -> float:
    """The share of its peak rate that a GPU of that kind reaches, of the model's own FLOPs.

    Args:
        model: a name of the catalog; empty for a model that the clock does not know.
        run: its `utilization` goes before the clock's.
        kind: volunteers who have the GPU.
        work: FLOPs of one token.
    """
    if run.utilization is not None:
        return run.utilization / 100
    found = None
    if model and kind.card in CARDS:
        found = _clocked(
            model,
            kind.card,
            run.sequence_length,
            run.sharing_groups,
            run.recomputation,
            work.model / kind.peak_flops,
        )
    return ASSUMED if found is None else round(found, DIGITS + 2)


@lru_cache(maxsize=64)
def _clocked(
    model: str,
    card: str,
    length: int | None,
    groups: int | None,
    recomputation: Recomputation,
    seconds_at_peak: float,
) -> float | None:
    """The clock's answer for the largest micro-batch that fits the card, or a single sequence.

    The planner counts other FLOPs for a token than the clock, which times operations: the share is
    that of the planner, so that both say the same tokens a second. A decoder beside an encoder
    meets half of the tokens, so there the share is the clock's own.
    """
    architecture = find_model(model)
    again = recomputation is Recomputation.FULL
    plan = (
        Plan()
        .but(sequence_length=length, sharing_groups=groups)
        .but(checkpointing=Checkpointing.FULL if again else Checkpointing.NONE)
        .on(CARDS[card])
    )
    batch = largest_batch(architecture, plan, plan.card.memory) or 1
    pace = pace_of(architecture, plan.but(batch_size=batch))
    if pace is None:
        return None
    if resolve(architecture, plan).target_length:
        return pace.model_utilization
    return min(1.0, pace.tokens_per_second * seconds_at_peak)
