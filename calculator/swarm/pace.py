"""Uneven devices: volunteers of different speeds, simulated second by second, in two ways.

With equal shares, each volunteer computes the same number of sequences in every step, and the
fastest wait for the slowest. At their own pace, volunteers compute micro-batches until all of them
together have enough.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from heapq import heapify, heappop, heappush
from typing import Final, assert_never

from calculator.errors import InputError

MOST_VOLUNTEERS: Final = 16
FASTEST: Final = 10_000.0


class Pacing(StrEnum):
    """Division of a step's sequences among volunteers."""

    EQUAL_SHARES = "equal-shares"
    OWN_PACE = "own-pace"


class Activity(StrEnum):
    """An activity of a volunteer."""

    COMPUTE = "compute"
    WAIT = "wait"
    EXCHANGE = "exchange"


@dataclass(frozen=True, slots=True)
class PaceSettings:
    """Settings of one step, and the time to simulate.

    Attributes:
        target_batch_size: sequences per step, from all volunteers together.
        micro_batch_size: sequences that a volunteer computes at once.
        exchange_seconds: time to average the gradients, when no one computes.
        window_seconds: time to simulate.
    """

    target_batch_size: int = 240
    micro_batch_size: int = 2
    exchange_seconds: float = 6.0
    window_seconds: float = 180.0

    def __post_init__(self) -> None:
        for field, value in (
            ("target_batch_size", self.target_batch_size),
            ("micro_batch_size", self.micro_batch_size),
            ("exchange_seconds", self.exchange_seconds),
            ("window_seconds", self.window_seconds),
        ):
            if not (math.isfinite(value) and value > 0):
                raise InputError(field, value, "must be a finite number above 0")


@dataclass(frozen=True, slots=True)
class Segment:
    """One volunteer's activity from `start` to `end`, in seconds, and the sequences it computes."""

    activity: Activity
    start: float
    end: float
    sequences: int = 0


@dataclass(frozen=True, slots=True)
class Timeline:
    """All volunteers' activities in the simulated time.

    Attributes:
        lanes: the segments of each volunteer, in order, without gaps.
        steps: the times at which steps ended.
        sequences: the total of all finished steps.
        window_seconds: the simulated time.
    """

    pacing: Pacing
    lanes: tuple[tuple[Segment, ...], ...]
    steps: tuple[float, ...]
    sequences: int
    window_seconds: float

    def waited(self, volunteer: int) -> float:
        """The fraction of the simulated time that a volunteer waits, from 0 to 1."""
        waits = [s for s in self.lanes[volunteer] if s.activity is Activity.WAIT]
        return math.fsum(s.end - s.start for s in waits) / self.window_seconds


@dataclass(frozen=True, slots=True)
class _Step:
    """Each volunteer's computing time from the start of the step, and its sequences."""

    seconds: tuple[float, ...]
    sequences: tuple[int, ...]


def simulate(
    speeds: Sequence[float], pacing: Pacing, settings: PaceSettings | None = None
) -> Timeline:
    r"""Simulate the volunteers' work; a speed of 0 is a volunteer that has left.

    $$t_{equal} = \max_i \frac{m \lceil B / (n m) \rceil}{s_i} + e \qquad
    t_{own} \le \frac{B + (n - 1) m}{\sum_i s_i} + \max_i \frac{m}{s_i} + e$$

    with B sequences per step, n volunteers that compute s_i sequences per second, m sequences per
    micro-batch, and an exchange of e seconds. At their own pace, volunteers finish the
    micro-batches that are in progress when the step has enough sequences, so no work is lost. A
    micro-batch counts only when it is finished, so each of the other volunteers may have one in
    progress.

    >>> settings = PaceSettings(12, 1, 1.0, 9.0)  # B = 12, m = 1, e = 1
    >>> simulate([4, 1, 1], Pacing.EQUAL_SHARES, settings).steps  # 4 sequences at 1 per second, + 1
    (5.0,)
    >>> simulate([4, 1, 1], Pacing.OWN_PACE, settings).steps  # 8 + 2 + 2 sequences in 2 s, + 1
    (3.0, 6.0, 9.0)

    Source: diskin

    Raises:
        InputError: if no speed is above 0, one is below 0, or there are more than 16.
    """
    _check(speeds)
    settings = settings or PaceSettings()
    step = _step(speeds, pacing, settings)
    lanes: list[list[Segment]] = [[] for _ in speeds]
    steps: list[float] = []
    start, window = 0.0, settings.window_seconds
    while start < window:
        ready = start + max(step.seconds)
        end = ready + settings.exchange_seconds
        for lane, seconds, sequences in zip(lanes, step.seconds, step.sequences, strict=True):
            done = start + (seconds if sequences else 0.0)
            lane += _cut(
                (Segment(Activity.COMPUTE, start, done, sequences), window),
                (Segment(Activity.WAIT, done, ready), window),
                (Segment(Activity.EXCHANGE, ready, end), window),
            )
        if end <= window:
            steps.append(end)
        start = end
    return Timeline(
        pacing,
        tuple(map(tuple, lanes)),
        tuple(steps),
        len(steps) * sum(step.sequences),
        window,
    )


def _cut(*segments: tuple[Segment, float]) -> list[Segment]:
    """The segments that begin within the simulated time, cut off at its end."""
    return [
        Segment(segment.activity, segment.start, min(segment.end, window), segment.sequences)
        for segment, window in segments
        if segment.start < min(segment.end, window)
    ]


def _step(speeds: Sequence[float], pacing: Pacing, settings: PaceSettings) -> _Step:
    """One step; all steps are alike."""
    match pacing:
        case Pacing.EQUAL_SHARES:
            return _equal_shares(speeds, settings)
        case Pacing.OWN_PACE:
            return _own_pace(speeds, settings)
        case _:
            assert_never(pacing)


def _equal_shares(speeds: Sequence[float], settings: PaceSettings) -> _Step:
    micro = settings.micro_batch_size
    share = micro * math.ceil(settings.target_batch_size / (len(speeds) * micro))
    seconds = tuple(share / speed if speed else math.inf for speed in speeds)
    return _Step(seconds, tuple(share if speed else 0 for speed in speeds))


def _own_pace(speeds: Sequence[float], settings: PaceSettings) -> _Step:
    """The step ends with the last micro-batch that began before the target was reached."""
    micro = settings.micro_batch_size
    running = [(micro / speed, volunteer) for volunteer, speed in enumerate(speeds) if speed]
    heapify(running)  # the micro-batches being computed, by the time when they end
    counts, done, computed, full = [0] * len(speeds), [0.0] * len(speeds), 0, 0.0
    while running:
        end, volunteer = heappop(running)
        counts[volunteer] += 1
        done[volunteer] = end
        computed += micro
        if computed < settings.target_batch_size:
            heappush(running, ((counts[volunteer] + 1) * micro / speeds[volunteer], volunteer))
        elif not full:
            full = end
            # no new micro-batch begins; those in progress are finished and count
            running = [(t, v) for t, v in running if done[v] < full * (1 - 1e-9)]
            heapify(running)
    return _Step(tuple(done), tuple(micro * count for count in counts))


def _check(speeds: Sequence[float]) -> None:
    if not 1 <= len(speeds) <= MOST_VOLUNTEERS:
        raise InputError("speeds", len(speeds), f"must be 1 to {MOST_VOLUNTEERS} numbers")
    for speed in speeds:
        if not 0 <= speed <= FASTEST:
            rule = f"must be from 0 to {FASTEST:,.0f} sequences per second"
            raise InputError("speeds", speed, rule)
    if not any(speeds):
        raise InputError("speeds", 0, "must be above 0 for at least one volunteer")
