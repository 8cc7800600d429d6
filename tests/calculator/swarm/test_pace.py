"""Timelines against hand-worked steps and what must hold of any."""

import math
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from calculator.errors import InputError
from calculator.swarm.pace import Activity, PaceSettings, Pacing, Timeline, simulate
from tests.calculator.plans import examples

SPEEDS = st.lists(
    st.one_of(st.just(0.0), st.floats(0.5, 20), st.integers(1, 20).map(float)),
    min_size=1,
    max_size=6,
).filter(any)
SETTINGS = PaceSettings()


def steps_of(timeline: Timeline) -> list[float]:
    return [end - start for start, end in pairwise([0.0, *timeline.steps])]


@given(SPEEDS, st.sampled_from(Pacing))
@examples(60)
def test_lanes_have_no_gaps_and_end_with_the_watched_time(
    speeds: list[float], pacing: Pacing
) -> None:
    for lane in simulate(speeds, pacing).lanes:
        assert lane[0].start == 0.0
        assert lane[-1].end == SETTINGS.window_seconds
        for before, after in pairwise(lane):
            assert before.end == after.start
        assert all(segment.start < segment.end for segment in lane)


@given(SPEEDS)
@example([10.0, 16.75, 19.5])  # the first begins its last micro-batch a moment before the end
@examples(60)
def test_a_step_at_the_own_pace_lasts_as_the_formula_says(speeds: list[float]) -> None:
    exchange = SETTINGS.exchange_seconds
    running = [speed for speed in speeds if speed]
    least = SETTINGS.target_batch_size / sum(running)
    begun = (len(running) - 1) * SETTINGS.micro_batch_size / sum(running)
    most = least + begun + max(SETTINGS.micro_batch_size / speed for speed in running)
    for seconds in steps_of(simulate(speeds, Pacing.OWN_PACE)):
        assert least - 1e-6 <= seconds - exchange <= most + 1e-6


@given(SPEEDS)
@examples(60)
def test_each_computes_in_proportion_to_its_speed_but_for_a_micro_batch(
    speeds: list[float],
) -> None:
    timeline = simulate(speeds, Pacing.OWN_PACE)
    if not timeline.steps:
        return
    per_step = timeline.sequences / len(timeline.steps)
    slack = SETTINGS.micro_batch_size * len(speeds)
    assert SETTINGS.target_batch_size <= per_step < SETTINGS.target_batch_size + slack
    full = SETTINGS.target_batch_size / sum(speeds)
    for speed, lane in zip(speeds, timeline.lanes, strict=True):
        done = next((s.sequences for s in lane if s.activity is Activity.COMPUTE), 0)
        assert abs(done - full * speed) <= slack


@given(SPEEDS)
@examples(60)
def test_with_equal_shares_the_slowest_sets_the_time(speeds: list[float]) -> None:
    timeline = simulate(speeds, Pacing.EQUAL_SHARES)
    micro = SETTINGS.micro_batch_size
    share = micro * math.ceil(SETTINGS.target_batch_size / (len(speeds) * micro))
    if 0.0 in speeds:
        assert timeline.steps == ()
        assert timeline.sequences == 0
    for seconds in steps_of(timeline):
        assert seconds == pytest.approx(share / min(speeds) + SETTINGS.exchange_seconds)


def test_what_is_begun_is_finished_and_who_has_gone_stops_the_old_way_alone() -> None:
    # A has 10 after 2.5 s; B's first two sequences are there after 4 s
    timeline = simulate([4, 0.5], Pacing.OWN_PACE, PaceSettings(10, 2, 1.0, 5.0))
    assert timeline.steps == (5.0,)
    assert [lane[0].sequences for lane in timeline.lanes] == [10, 2]
    assert timeline.waited(0) == pytest.approx(1.5 / 5)
    old, own = (simulate([8, 4, 0], pacing) for pacing in Pacing)
    assert old.steps == ()
    # 240 sequences at 12 a second, and 6 s of exchange
    assert own.steps[0] == pytest.approx(26.0)
    assert own.lanes[2][0].activity is Activity.WAIT


@pytest.mark.parametrize("speeds", [[], [0.0, 0.0], [-1.0], [math.nan], [math.inf], [1.0] * 17])
def test_impossible_speeds_are_refused(speeds: list[float]) -> None:
    with pytest.raises(InputError, match="speeds"):
        simulate(speeds, Pacing.OWN_PACE)
