"""The time axis of a step: seconds at which each of its operations starts."""

from collections.abc import Sequence
from itertools import accumulate

from calculator.cards import Card
from calculator.clock.law import FITTED, computing_seconds, seconds
from calculator.clock.power import share_of_peak
from calculator.clock.work import Work


def starts_of(
    works: Sequence[Work], order: Sequence[int], step: Work, micro_batches: int, card: Card
) -> list[float]:
    r"""Seconds from the start of a micro-batch to that of each operation and of the update.

    $$s \max\left(\sum_{j < i} c_j, \, \sum_{j < i} l_j\right)$$

    with c the time that the card computes an operation and l the processor's for its launches, as
    the law has them. The factor s makes the step last as long as the law says: exchanges between
    GPUs, copies to RAM and a pipeline's bubble are spread evenly over it. The end of the update is
    last.

    Args:
        works: of different operations.
        order: numbers of the operations of a micro-batch, as they run.
        step: the work of the whole step.
        micro_batches: that a step has, each of these operations.
        card: where it runs.

    Raises:
        InputError: for a card whose peaks or bandwidth are unknown.
    """
    share = share_of_peak(card, FITTED.energy)
    busy = [computing_seconds(work, card, share=share) for work in works]
    computing = list(accumulate((busy[number] for number in order), initial=0.0))
    launched = accumulate((FITTED.launch * works[number].kernels for number in order), initial=0.0)
    starts = [max(pair) for pair in zip(computing, launched, strict=True)]
    end = max(computing[-1] + step.updated / card.bandwidth, starts[-1])
    slower = seconds(step, card) / ((micro_batches - 1) * starts[-1] + end)
    return [slower * each for each in (*starts, end)]
