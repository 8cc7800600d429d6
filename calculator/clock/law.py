"""The law: seconds that a card takes for the work of a step."""

from dataclasses import dataclass
from typing import Final

from calculator.cards import Card
from calculator.clock.links import copy_seconds
from calculator.clock.power import share_of_peak
from calculator.clock.work import Work
from calculator.errors import InputError


@dataclass(frozen=True, slots=True)
class Efficiencies:
    """Constants of the law, all fitted by `python -m validation seconds`.

    Attributes:
        energy: of a FLOP of 16-bit products in 7 nm, in joules; see `power`.
        wide: share of the 32-bit peak.
        attention: FLOPs of attention's kernels over those of products that take as long.
        traffic: bytes that an operation reads and writes, over those of the tensor it makes.
        launch: seconds that the processor takes for each tensor an operation makes.
    """

    energy: float
    wide: float
    attention: float
    traffic: float
    launch: float


# on 199 published steps of A100s, H100s and a T4; printed by `python -m validation seconds`
FITTED: Final = Efficiencies(
    energy=1.723e-12,
    wide=0.567,
    attention=1.211,
    traffic=2.861,
    launch=5.03e-5,
)


def seconds(
    work: Work, card: Card, efficiencies: Efficiencies = FITTED, share: float | None = None
) -> float:
    r"""Seconds of a step.

    $$\max\left(\frac{F_n}{e_n p_n} + \frac{F_w}{e_w p_w} + \frac{t B + U}{b}, \, l k\right)$$

    with F the FLOPs of products of 16-bit (n) and 32-bit (w) numbers, those of attention's kernels
    weighted, p the card's peaks and e the shares of them that products reach, for 16 bits the given
    one or that of `share_of_peak`; B the bytes written, t the traffic for each, U the bytes of the
    update and b the bandwidth of the card's memory; l the processor's seconds for each of k
    tensors, which pass while the card computes.

    Copies to RAM and exchanges that are not hidden behind products come on top.

    Raises:
        InputError: for a card whose peaks or bandwidth are unknown.
    """
    waiting = work.waited.seconds(card) + copy_seconds(work.copied, card)
    busy = computing_seconds(work, card, efficiencies, share) + waiting
    exposed = max(0.0, work.overlapped.seconds(card) - work.overlap * busy)
    return (1 + work.bubble) * max(busy + exposed, efficiencies.launch * work.kernels)


def computing_seconds(
    work: Work, card: Card, efficiencies: Efficiencies = FITTED, share: float | None = None
) -> float:
    """Seconds of a step's products, memory traffic and update alone, which add up."""
    narrow, single = card.peaks.fp16 * 1e12, card.peaks.fp32 * 1e12
    if not (narrow and single and card.bandwidth):
        raise InputError("gpu", card.name, "has no published peaks and bandwidth to time a step by")
    if share is None:
        share = share_of_peak(card, efficiencies.energy)
    narrow_flops = work.narrow + efficiencies.attention * work.narrow_attention
    wide_flops = work.wide + work.packed_wide + efficiencies.attention * work.wide_attention
    computing = narrow_flops / (share * narrow) + wide_flops / (efficiencies.wide * single)
    moving = (efficiencies.traffic * work.written + work.updated) / card.bandwidth
    return computing + moving
