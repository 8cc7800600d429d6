"""Seconds of a step as an answer: with an interval, rates, and why there is none."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from calculator.clock.law import FITTED, seconds
from calculator.clock.power import TRIED, shares_tried
from calculator.clock.work import Work
from calculator.plan import ActivationOffload, Offload, Plan
from calculator.units import format_count

DIVIDED: Final = ("tensor_parallel", "pipeline_parallel", "context_parallel", "expert_parallel")
# GPUs in one machine, which hide their exchanges behind products
MACHINE: Final = 8
# measured over predicted seconds of nine in ten published steps, each source held out of the fit
# once: `python -m validation seconds`
BOUNDS: Final = (0.87, 1.27)
TIMED_NOTE: Final = "No seconds are given: "


@dataclass(frozen=True, slots=True)
class Seconds:
    """Seconds of one step, with bounds, its tokens a second, and shares of the card's peak.

    `model_utilization` counts products once, and `hardware_utilization` those made again too.
    """

    step: float
    low: float
    high: float
    tokens_per_second: float
    model_utilization: float
    hardware_utilization: float

    @property
    def words(self) -> str:
        """A sentence, with its witness."""
        return (
            f"A step takes about {_short(self.step)} s ({_short(self.low)} to "
            f"{_short(self.high)}): {format_count(round(self.tokens_per_second))} tokens per "
            f"second, {self.model_utilization:.0%} of the card's peak. Fitted on published steps "
            "of A100s, H100s, and a T4."
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
    for field in DIVIDED:
        if getattr(plan, field) > 1:
            yield f"{TIMED_NOTE}the clock was not tried with {field}."
            return
    if plan.gpus > MACHINE:
        yield f"{TIMED_NOTE}the clock was tried on GPUs of one machine only."
    elif plan.cpu_offload or plan.offload is not Offload.NONE:
        yield f"{TIMED_NOTE}the clock does not count an update in RAM."
    elif plan.activation_offload is not ActivationOffload.NONE or plan.paged_optimizer:
        yield f"{TIMED_NOTE}the clock does not count copies between GPU and RAM."
    elif not (plan.card.peaks.fp16 and plan.card.peaks.fp32 and plan.card.bandwidth):
        yield f"{TIMED_NOTE}no source gives {plan.card.name}'s peaks and bandwidth."


def step_seconds(work: Work, plan: Plan) -> Seconds:
    """The clock's answer for a resolved plan.

    A generation of cards of which no step was timed may reach any share of its peak that the timed
    ones do.

    Raises:
        InputError: for a card whose peaks or bandwidth are unknown.
    """
    card = plan.card
    step = seconds(work, card)
    low, high = step, step
    if card.capability not in {tried.capability for tried in TRIED}:
        shares = shares_tried(FITTED.energy)
        high, low = (seconds(work, card, share=share) for share in (min(shares), max(shares)))
    tokens = plan.batch_size * plan.accumulation * plan.replicas
    tokens *= plan.sequence_length + (plan.target_length or 0)
    peak = 1e12 * (card.peaks.fp16 if work.narrow else card.peaks.fp32)
    return Seconds(
        step,
        BOUNDS[0] * low,
        BOUNDS[1] * high,
        tokens / step,
        (work.flops - work.repeated) / step / peak,
        work.flops / step / peak,
    )
