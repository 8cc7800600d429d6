"""The learning rate over a run's steps.

Importing this module is cheap: it does not load torch.
"""

from training.run.recipes import ScheduleSettings


def learning_rate_factor(schedule: ScheduleSettings, step: int) -> float:
    """Share of the peak learning rate at global step `step`, counted from 0.

    Rises linearly to 1 over the warm-up, of which the first step already learns, then falls
    linearly to 0 at the end of the schedule.
    """
    if step < schedule.warmup_steps:
        return (step + 1) / schedule.warmup_steps
    decay_steps = max(schedule.total_steps - schedule.warmup_steps, 1)
    return max(schedule.total_steps - step, 0) / decay_steps


def corners(schedule: ScheduleSettings, peak: float) -> list[tuple[int, float]]:
    """The steps, counted from 1, between which the learning rate is a straight line, and its value.

    >>> corners(ScheduleSettings(total_steps=100, warmup_steps=10), 1.0)
    [(1, 0.1), (10, 1.0), (11, 1.0), (101, 0.0)]
    """
    warm_up, end = schedule.warmup_steps, schedule.total_steps + 1
    steps = sorted({1, max(warm_up, 1), min(warm_up + 1, end), end})
    return [(step, peak * learning_rate_factor(schedule, step - 1)) for step in steps]
