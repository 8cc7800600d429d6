"""The demonstration of the page 'How it works': three volunteers, two ways of working."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from calculator.errors import InputError
from calculator.swarm.pace import Activity, PaceSettings, Pacing, Timeline, simulate

DEFAULT_SPEEDS: Final = (8.0, 4.0, 1.0)  # sequences per second
FASTEST: Final = 20.0
SETTINGS: Final = PaceSettings()
NAMES: Final = ("A", "B", "C")

# All texts about a state; until Python has started, the page's script fills in the same ones.
TEXTS: Final = {
    "summary": (
        "In {minutes} minutes, equal shares complete {old_steps} with {old_sequences} sequences; "
        "at their own pace, volunteers complete {own_steps} with {own_sequences}."
    ),
    "speed": "{speed} per second",
    "left": "left",
    "waited": "{percent} %",
    "no_step": "no step",
    "one_step": "1 step",
    "steps": "{count} steps",
}


def answer(params: Mapping[str, object]) -> dict[str, Any]:
    """The figures and texts for one state of the demonstration.

    Args:
        params: `speeds`, each volunteer's sequences per second; 0 for one that has left.

    Raises:
        InputError: unless there are three speeds from 0 to 20, one of them above 0.
    """
    speeds = _speeds(params.get("speeds"))
    timelines = [simulate(speeds, pacing, SETTINGS) for pacing in Pacing]
    return {
        "speeds": speeds,
        "timelines": {timeline.pacing.value: _drawn(timeline) for timeline in timelines},
        "figures": figures(speeds, timelines),
    }


def _speeds(given: object) -> list[float]:
    if given in (None, ""):
        return list(DEFAULT_SPEEDS)
    rule = f"must be {len(NAMES)} numbers from 0 to {FASTEST:g}"
    if not isinstance(given, list) or len(given) != len(NAMES):
        raise InputError("speeds", given, rule)
    try:
        speeds = [float(speed) for speed in given]
    except (ValueError, TypeError, OverflowError):  # not a number, or a huge integer
        raise InputError("speeds", given, rule) from None
    if not all(0 <= speed <= FASTEST for speed in speeds):
        raise InputError("speeds", given, rule)
    return speeds


def _drawn(timeline: Timeline) -> dict[str, Any]:
    """The place of each segment, as a percentage of the simulated time."""
    to_percent = 100 / timeline.window_seconds
    return {
        "lanes": [
            [
                {
                    "activity": segment.activity.value,
                    "left": segment.start * to_percent,
                    "width": (segment.end - segment.start) * to_percent,
                }
                for segment in lane
            ]
            for lane in timeline.lanes
        ],
        "steps": [end * to_percent for end in timeline.steps],
    }


def figures(speeds: Sequence[float], timelines: Sequence[Timeline]) -> dict[str, str]:
    """The texts shown on the page, by name."""
    texts = {"summary": summary(timelines)}
    for volunteer, speed in enumerate(speeds):
        moving = TEXTS["speed"].format(speed=f"{speed:g}")
        texts[f"speed.{volunteer}"] = moving if speed else TEXTS["left"]
    for timeline in timelines:
        name = timeline.pacing.value
        texts[f"{name}.steps"] = _steps(timeline)
        texts[f"{name}.sequences"] = f"{timeline.sequences:,}"
        for volunteer, lane in enumerate(timeline.lanes):
            percent = f"{100 * timeline.waited(volunteer):.0f}"
            texts[f"{name}.waited.{volunteer}"] = TEXTS["waited"].format(percent=percent)
            step = next((s for s in lane if s.activity is Activity.COMPUTE), None)
            texts[f"{name}.share.{volunteer}"] = f"{step.sequences if step else 0}"
    return texts


def summary(timelines: Sequence[Timeline]) -> str:
    """One sentence for anyone who can't see the picture."""
    old, own = timelines
    return TEXTS["summary"].format(
        minutes=f"{old.window_seconds / 60:g}",
        old_steps=_steps(old),
        old_sequences=f"{old.sequences:,}",
        own_steps=_steps(own),
        own_sequences=f"{own.sequences:,}",
    )


def _steps(timeline: Timeline) -> str:
    count = len(timeline.steps)
    return TEXTS[{0: "no_step", 1: "one_step"}.get(count, "steps")].format(count=count)
