"""The 2021 run in numbers, and its schedule as a figure drawn from them."""

from typing import Final

from calculator.architecture import Architecture
from calculator.estimate import estimate
from calculator.plan import Plan

# Borzunov et al., 2022, sections 3.2 to 3.4.
STEPS: Final = 31_250
WARM_UP: Final = 3_125
DONE: Final = 0.8
RATE: Final = 2.5e-3
MONTHS: Final = "2.5 months"
VOLUNTEERS: Final = 37
PAIRS: Final = 100_000_000
# From the run's published configuration.
BATCH: Final = 4_096

WIDTH: Final = 560
HEIGHT: Final = 230
LEFT, RIGHT, TOP, BOTTOM = 2, 14, 40, 30


def figures(architecture: Architecture) -> dict[str, str]:
    """The run's figures as texts; its parameters are counted."""
    unshared = Plan(sharing_groups=architecture.layers)
    done = round(DONE * STEPS)
    return {
        "unshared": f"{estimate(architecture, unshared).parameters / 1e9:.1f} billion",
        "shared": f"{estimate(architecture).parameters / 1e6:.0f} million",
        "done": f"{done:,}",
        "share": f"{100 * DONE:.0f} %",
        "steps": f"{STEPS:,}",
        "batch": f"{BATCH:,}",
        "sequences": f"{done * BATCH / 1e6:.0f} million",
        "pairs": f"{PAIRS / 1e6:.0f} million",
        "months": MONTHS,
        "volunteers": str(VOLUNTEERS),
        "schedule": draw_schedule(),
    }


def rate(step: float) -> float:
    """The learning rate: a linear warm-up, then a linear descent to zero.

    >>> [rate(step) for step in (0, 3125, 31250)]
    [0.0, 0.0025, 0.0]
    """
    if step <= WARM_UP:
        return RATE * step / WARM_UP
    return RATE * (STEPS - step) / (STEPS - WARM_UP)


def draw_schedule() -> str:
    """The learning rate over the steps; the part that was trained is filled."""
    done = DONE * STEPS
    trained = f"{_at(0)}L{_at(WARM_UP)}L{_at(done)}"
    words = (
        f"Learning rate over {STEPS:,} steps: it rises to {RATE:g} in {WARM_UP:,} steps and then "
        f"falls to zero. The run ended after about {done:,.0f} steps."
    )
    ground = HEIGHT - BOTTOM
    return "".join(
        [
            f'<svg class="plot" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{words}">',
            f'<path class="area" d="M{trained}L{_x(done)} {ground}Z"/>',
            f'<path class="axis" d="M{LEFT} {ground}H{WIDTH - RIGHT}"/>',
            f'<path class="line" stroke-dasharray="5 5" d="M{_at(done)}L{_at(STEPS)}"/>',
            f'<path class="line" d="M{trained}"/>',
            f'<circle class="dot" cx="{_x(done)}" cy="{_y(done)}" r="5"/>',
            f'<text class="label" x="{_x(WARM_UP)}" y="{TOP - 22}">Warm-up to {RATE:g}</text>',
            f'<text x="{_x(WARM_UP)}" y="{TOP - 8}">the learning rate</text>',
            f'<text class="label" x="{_x(done) + 10}" y="{_y(done) - 22}">End of the run</text>',
            f'<text x="{_x(done) + 10}" y="{_y(done) - 8}">after {MONTHS}</text>',
            *(
                f'<text x="{_x(step)}" y="{HEIGHT - 10}" text-anchor="{anchor}">{words}</text>'
                for step, anchor, words in (
                    (0, "start", "0"),
                    (WARM_UP, "middle", f"{WARM_UP:,} steps"),
                    (done, "middle", f"about {done:,.0f}"),
                    (STEPS, "end", f"{STEPS:,}"),
                )
            ),
            "</svg>",
        ]
    )


def _at(step: float) -> str:
    return f"{_x(step)} {_y(step)}"


def _x(step: float) -> float:
    return round(LEFT + step / STEPS * (WIDTH - LEFT - RIGHT), 1)


def _y(step: float) -> float:
    return round(HEIGHT - BOTTOM - rate(step) / RATE * (HEIGHT - TOP - BOTTOM), 1)
