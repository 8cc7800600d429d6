"""Seconds of a step as an answer: with an interval, rates, and why there is none."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from calculator.clock.law import FITTED, seconds
from calculator.clock.links import MACHINE, network_of
from calculator.clock.power import TRIED, shares_tried
from calculator.clock.work import Work
from calculator.plan import ActivationOffload, Offload, Plan
from calculator.units import format_count

# measured over predicted seconds of nine in ten published steps, of sources held out of the fit
# once or always: `python -m validation seconds`
BOUNDS: Final = (0.88, 1.24)
# of the card beside the only processor whose launches were timed: a T4
LAUNCHED: Final = (7, 5)
TIMED_NOTE: Final = "No seconds are given: "


@dataclass(frozen=True, slots=True)
class Seconds:
    """Seconds of one step, with bounds, its tokens a second, and shares of the card's peak.

    `model_utilization` counts products once, and `hardware_utilization` those made again too. Of a
    step that is `bound_by_launches` the card waits for the processor.
    """

    step: float
    low: float
    high: float
    tokens_per_second: float
    model_utilization: float
    hardware_utilization: float
    bound_by_launches: bool = False

    @property
    def words(self) -> str:
        """A sentence, with its witness."""
        launches = " Bound by the processor's launches." if self.bound_by_launches else ""
        return (
            f"A step takes about {_short(self.step)} s ({_short(self.low)} to "
            f"{_short(self.high)}): {format_count(round(self.tokens_per_second))} tokens per "
            f"second, {self.model_utilization:.0%} of the card's peak.{launches} Fitted on "
            "published steps of A100s, H100s, and a T4."
        )

    def as_json(self) -> dict[str, Any]:
        """The fields by name."""
        return {name: getattr(self, name) for name in self.__slots__}


def _short(seconds: float) -> str:
    """Two digits.

    >>> _short(0.0427), _short(138.2)
    ('0.043', '140')
    """
    return f"{float(f'{seconds:.2g}'):.12g}"


def why_untimed(plan: Plan) -> Iterator[str]:
    """A note on why a resolved plan's step has no seconds, if it has none."""
    if plan.all_gpus > MACHINE and not network_of(plan.card):
        yield f"{TIMED_NOTE}no source gives a network between machines of {plan.card.title}."
    elif plan.cpu_offload or plan.offload is not Offload.NONE:
        yield f"{TIMED_NOTE}an update in RAM takes as long as your processor and RAM need."
    elif plan.activation_offload is ActivationOffload.PAGEABLE:
        yield f"{TIMED_NOTE}no source gives the rate of copies to RAM that is not pinned."
    elif plan.paged_optimizer:
        yield f"{TIMED_NOTE}the clock does not count pages that move between GPU and RAM."
    elif not (plan.card.peaks.fp16 and plan.card.peaks.fp32 and plan.card.bandwidth):
        yield f"{TIMED_NOTE}no source gives {plan.card.name}'s peaks and bandwidth."


def assumptions(plan: Plan) -> Iterator[str]:
    """Notes on links that no published step has tried alone, of a resolved plan with seconds."""
    if any(why_untimed(plan)):
        return
    if plan.activation_offload is not ActivationOffload.NONE:
        yield "Seconds assume that copies to RAM get 84% of the rate of PCIe with 16 lanes."
    if plan.all_gpus > MACHINE:
        gigabits = 8 * network_of(plan.card) / 1e9
        yield (
            f"Seconds assume machines of {MACHINE} GPUs, and between them {gigabits:.0f} Gbit/s "
            "for each GPU."
        )


def step_seconds(work: Work, plan: Plan) -> Seconds:
    """The clock's answer for a resolved plan.

    A generation of cards of which no step was timed may reach any share of its peak that the timed
    ones do. Launches were timed on the processor of one T4; beside other cards, a faster one may
    leave the card busy all the time.

    Raises:
        InputError: for a card whose peaks or bandwidth are unknown.
    """
    card = plan.card
    busy = replace(work, kernels=0)
    step, least = seconds(work, card), work if card.capability == LAUNCHED else busy
    worst, best = None, None
    if card.capability not in {tried.capability for tried in TRIED}:
        shares = shares_tried(FITTED.energy)
        worst, best = min(shares), max(shares)
    tokens = plan.batch_size * plan.accumulation * plan.replicas // plan.context_parallel
    tokens *= plan.sequence_length + (plan.target_length or 0)
    peak = 1e12 * (card.peaks.fp16 if work.narrow else card.peaks.fp32)
    return Seconds(
        step,
        BOUNDS[0] * seconds(least, card, share=best),
        BOUNDS[1] * seconds(work, card, share=worst),
        tokens / step,
        (work.flops - work.repeated) / step / peak,
        work.flops / step / peak,
        step > seconds(busy, card),
    )
