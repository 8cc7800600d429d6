import json
from typing import Any

import pytest

from training.averaging.matchmaking import LARGEST
from training.monitor.tally import SETTLING_SECONDS, SILENCE_SECONDS, Tally
from training.records.reports import PeerReport, StepReport, Witness
from training.run.live import PeerState, ProgressLine

TARGET = 64
START = 1000.0


@pytest.fixture
def tally() -> Tally:
    return Tally(TARGET)


def restarted(tally: Tally) -> Tally:
    """The books as the monitor's next process reads them."""
    again = Tally(TARGET, last_step=tally.last_step)
    again.restore(json.loads(json.dumps(tally.state())))
    return again


def credited(tally: Tally) -> dict[str, int]:
    return {c.name: c.samples for c in tally.contributors()}


def step_report(step: int, samples: int = 32, loss: float = 4.0, **values: Any) -> StepReport:
    content = {"time": START + step, "mini_steps": 2, "bytes_sent": 100, "bytes_received": 50}
    content |= values
    return StepReport(step=step, samples=samples, loss=loss, **content)


def report(step: int, recent: list[StepReport] | None = None, **values: Any) -> PeerReport:
    content: dict[str, Any] = {
        "name": "alice",
        "state": "training",
        "session": START,
        "time": START + step,
        "samples": 32 * step,
        "samples_per_second": 10.0,
        "steps": step,
        "rejected": 0,
    }
    return PeerReport(step=step, recent=recent or [step_report(step)], **(content | values))


def look(tally: Tally, now: float, **reports: PeerReport) -> list[ProgressLine]:
    """Show the books the reports of volunteers who averaged with each other."""
    for identity, told in reports.items():
        if identity in IDS.values():  # these say themselves whom they saw
            continue
        others = [name for name in reports if name != identity]
        for step in told.recent:
            step.seen = [Witness.model_construct(contributor=name, weight=None) for name in others]
    tally.observe(reports, now)
    return list(tally.finished_lines(now))


def test_a_step_is_the_sum_of_its_volunteers(tally: Tally) -> None:
    ours = report(1, [step_report(1, samples=48, loss=9.0, mini_steps=3)])
    theirs = report(1, [step_report(1, samples=16, loss=1.0, mini_steps=1)], name="bob")
    (line,) = look(tally, START + 2, a=ours, b=theirs)
    assert line.step == 1
    assert line.samples == 64
    assert line.loss == pytest.approx(10.0 / 4)  # sum of losses over sum of micro-batches
    assert (line.training, line.syncing, line.left) == (2, 0, 0)
    assert (line.bytes_sent, line.bytes_received) == (200, 100)


def test_who_has_not_told_of_a_step_is_awaited_and_counted_when_late(tally: Tally) -> None:
    look(tally, START, a=report(1), b=report(1, name="bob"))
    now = START + 3 + SETTLING_SECONDS
    assert look(tally, START + 2, a=report(2), b=report(1, name="bob")) == []
    assert [line.step for line in look(tally, now, a=report(2, time=now))] == [2]
    assert tally.lacks_reports(2)
    assert not tally.lacks_reports(1)
    look(tally, now + 5, a=report(2, time=now + 5), b=report(2, name="bob", time=now + 5))
    assert not tally.lacks_reports(2)
    assert credited(tally) == {"alice": 64, "bob": 64}


def test_clocks_that_disagree_make_no_pace(tally: Tally) -> None:
    look(tally, START, a=report(1))
    steps = [
        step_report(2, samples=60, time=START + 5),
        step_report(3, samples=64, time=START + 4.99),
        step_report(4, samples=56, time=START + 7),
    ]
    lines = look(tally, START + 9, a=report(4, steps))
    assert [line.samples_per_second for line in lines] == [15, 15, 60]  # 60 / 4, (64 + 56) / 2
    assert lines[0].time == lines[1].time < lines[2].time


def test_a_silent_volunteer_has_left_and_is_no_longer_waited_for(tally: Tally) -> None:
    look(tally, START, a=report(1), b=report(1, name="bob"))
    now = START + SILENCE_SECONDS + 3
    alive = report(2, time=now)
    (line,) = look(tally, now, a=alive, b=report(1, name="bob"))
    assert (line.training, line.left) == (1, 1)
    assert {c.name: c.state for c in tally.contributors()} == {"alice": "training", "bob": "left"}


def test_a_volunteer_who_comes_back_keeps_what_it_did(tally: Tally) -> None:
    look(tally, START, a=report(2, [step_report(1), step_report(2)]))
    again = report(3, session=START + 50, time=START + 60, samples=32, steps=1)
    look(tally, START + 60, a=again)
    assert [(one.samples, one.steps) for one in tally.contributors()] == [(64 + 32, 2 + 1)]
    twice = report(3, session=START + 70, time=START + 80, samples=32, steps=1)
    look(tally, START + 80, a=twice)  # the same step in another session
    assert credited(tally) == {"alice": 96}
    (contributor,) = tally.contributors()
    assert contributor.seconds == 20.0  # as the monitor heard it; it was away for 60
    assert contributor.first_seen == "1970-01-01T00:16:40.000Z"


def test_whoever_earned_nothing_is_forgotten_after_an_hour(tally: Tally) -> None:
    nothing: dict[str, Any] = {"samples": 0, "steps": 0, "time": START, "state": "syncing"}
    idle = report(0, **nothing).model_copy(update={"recent": []})
    crowd = {f"{n:x}": idle for n in range(50)}
    claim = report(1, samples=10**6, steps=500).model_copy(update={"recent": []})
    liars = {f"liar {n}": claim for n in range(50)}
    tally.observe(crowd | liars | {"worker": report(1)}, START)
    tally.observe({}, START + 3500)
    assert len(tally.contributors()) == 101
    tally.observe({}, START + 3700)
    assert [one.name for one in tally.contributors()] == ["alice"]


def test_totals_beyond_the_steps_told_of_are_not_counted_but_noted(tally: Tally) -> None:
    look(tally, START, a=report(1))
    (line,) = look(tally, START + 2, a=report(2, [step_report(2)], samples=10**6, steps=500))
    assert line.rejected == 1
    (contributor,) = tally.contributors()
    assert (contributor.samples, contributor.steps) == (64, 2)


def test_totals_that_shrink_are_refused(tally: Tally) -> None:
    look(tally, START, a=report(1), b=report(1), c=report(1))
    lines = look(tally, START + 2, a=report(2, samples=0), b=report(2), c=report(2))
    (line,) = lines or look(tally, START + 3 + SETTLING_SECONDS)
    assert line.rejected == 1
    assert {c.id: c.samples for c in tally.contributors()} == {"a": 32, "b": 64, "c": 64}


def step_with_witnesses(step: int, samples: int, **seen: float | None) -> StepReport:
    entries = [{"contributor": IDS[name], "weight": weight} for name, weight in seen.items()]
    return step_report(step, samples=samples, seen=entries)


NAMES = ("alice", "bob", "carol", "mallory", *(f"one of many {n}" for n in range(LARGEST)))
IDS = {name: f"{number:012x}" for number, name in enumerate(NAMES)}


def by_identity(**steps: StepReport) -> dict[str, PeerReport]:
    return {
        IDS[name]: report(step.step, [step], name=name, samples=step.samples, steps=1)
        for name, step in steps.items()
    }


@pytest.mark.parametrize(
    ("claims", "credit", "rejected"),
    [
        pytest.param(
            {
                "alice": (32, {"bob": 16.0, "mallory": 8.0}),
                "bob": (16, {"alice": 32.0, "mallory": 8.0}),
                "mallory": (128, {"alice": 32.0, "bob": 16.0}),
            },
            {"alice": 32, "bob": 16, "mallory": 8},
            1,
            id="a claim counts as far as the others saw it",
        ),
        pytest.param(
            {
                "alice": (32, {"bob": 16.0, "mallory": 8.0}),
                "bob": (16, {"alice": 32.0, "mallory": 8.0}),
                "carol": (16, {"alice": 32.0, "bob": 16.0}),
                "mallory": (8, {"alice": 0.0, "bob": 0.0, "carol": 16.0}),
            },
            {"alice": 32, "bob": 16, "carol": 16, "mallory": 8},
            0,
            id="a liar takes from nobody what most saw",
        ),
        pytest.param(
            {"alice": (32, {"bob": None}), "bob": (16, {"alice": None})},
            {"alice": 32, "bob": 16},
            0,
            id="who only saw the group confirms membership, not weight",
        ),
        pytest.param(
            {
                "alice": (32, {"bob": 16.0}),
                "bob": (16, {"alice": 32.0}),
                "mallory": (64, {"alice": 32.0, "bob": 16.0}),  # so it says
            },
            {"alice": 32, "bob": 16, "mallory": 0},
            1,
            id="who was not in the averaging does not count",
        ),
    ],
)
def test_a_volunteer_is_credited_with_what_the_others_saw(
    tally: Tally, claims: dict[str, Any], credit: dict[str, int], rejected: int
) -> None:
    steps = {name: step_with_witnesses(1, made, **seen) for name, (made, seen) in claims.items()}
    (line,) = look(tally, START, **by_identity(**steps))
    assert credited(tally) == credit
    assert (line.samples, line.rejected) == (sum(credit.values()), rejected)


def test_a_report_shown_again_is_refused_once(tally: Tally) -> None:
    old = report(1)
    for number, told in enumerate((old, report(2), old, old)):
        look(tally, START + number, a=told)
    assert tally.refused == 1
    assert tally.contributors()[0].samples == 64


def test_a_late_report_is_checked_like_one_in_time(tally: Tally) -> None:
    alice = step_with_witnesses(1, 32, bob=16.0)
    bob = step_with_witnesses(1, 64, alice=32.0)
    look(tally, START, **by_identity(alice=alice))
    look(tally, START + 2, **by_identity(bob=bob))
    assert credited(tally) == {"alice": 32, "bob": 16}
    assert [one.bytes_received for one in tally.contributors()] == [50, 50]


def test_steps_made_while_the_monitor_was_down_are_counted_as_told(tally: Tally) -> None:
    look(tally, START, a=report(1))
    recent = [step_report(step) for step in range(13, 21)]
    look(tally, START + 20, a=report(20, recent))
    assert tally.contributors()[0].samples == 32 * 20
    assert tally.refused == 0


def test_a_restart_loses_no_step_that_waited_for_the_slow(tally: Tally) -> None:
    look(tally, START, a=report(1), b=report(1, name="bob"))
    assert look(tally, START + 2, a=report(2), b=report(1, name="bob")) == []  # bob is slow
    again = restarted(tally)
    ours, theirs = ([step_report(2), step_report(3)] for _ in range(2))
    later = report(3, theirs, name="bob", time=START + 3.5)
    lines = look(again, START + 4, a=report(3, ours), b=later)
    assert [line.step for line in lines] == [2, 3]
    assert [one.samples for one in again.contributors()] == [96, 96]
    assert [one.bytes_sent for one in again.contributors()] == [300, 300], "none counts twice"


def test_a_claim_that_cannot_be_is_taken_back_once_over_a_restart(tally: Tally) -> None:
    look(tally, START, a=report(1), b=report(1, name="bob"))
    claim = step_report(2, 3 * TARGET)
    too_much = report(2, [claim], samples=32 + claim.samples)
    assert look(tally, START + 2, a=too_much, b=report(1, name="bob")) == []  # bob is slow
    again = restarted(tally)
    later = too_much.model_copy(update={"time": START + 3.5})
    look(again, START + 4, a=later, b=report(2, name="bob"))
    assert {one.id: one.samples for one in again.contributors()} == {"a": 32, "b": 64}


def test_a_claim_from_the_future_is_taken_back_once_and_stops_no_books(tally: Tally) -> None:
    look(tally, START, a=report(1), b=report(1, name="bob"), c=report(1, name="carol"))
    far, lines = step_report(10**9, TARGET), []
    for number in (2, 3):
        liar = report(2, [far], name="carol", samples=96, steps=2, time=START + number)
        told = {"a": report(number), "b": report(number, name="bob"), "c": liar}
        lines += look(tally, START + number, **told)
    lines += tally.finished_lines(START + 4 + SETTLING_SECONDS)
    assert [(line.step, line.rejected) for line in lines] == [(2, 1), (3, 0)]
    assert {one.id: one.samples for one in tally.contributors()}["c"] == 32


@pytest.mark.parametrize(("names", "samples"), [(["a", "b"], 0), (["a"], 32)])
def test_only_a_lone_volunteer_earns_alone(tally: Tally, names: list[str], samples: int) -> None:
    tally.observe({name: report(1, name=name) for name in names}, START)
    (line,) = tally.finished_lines(START)
    assert line.samples == samples
    assert {one.samples for one in tally.contributors()} == {samples}


def test_a_helper_is_a_witness_and_earns_nothing(tally: Tally) -> None:
    steps = by_identity(
        alice=step_with_witnesses(1, 48),
        bob=step_with_witnesses(1, 40),
        carol=step_with_witnesses(1, 0, alice=48.0, bob=16.0),
    )
    helper = steps[IDS["carol"]]
    helper.state, helper.steps = PeerState.HELPING.value, 0
    tally.observe(steps, START)
    (line,) = tally.finished_lines(START)
    assert line.samples == 48 + 16
    assert line.training == 2
    assert credited(tally) == {"alice": 48, "bob": 16, "carol": 0}


def trained(reached: int, now: float, **liar: Any) -> dict[str, PeerReport]:
    """Reports of two who made a step together; `liar` is what a third one reports meanwhile."""
    reports = pairs(reached, ("alice", "bob"), time=now)
    if liar:
        values: dict[str, Any] = {"step": reached, "name": "mallory", "time": now}
        reports[IDS["mallory"]] = report(**(values | liar))
    return reports


def pairs(step: int, *met: tuple[str, str], **values: Any) -> dict[str, PeerReport]:
    """Reports of a step by volunteers that saw each other in pairs."""
    both_ways = [*met, *(pair[::-1] for pair in met)]
    return {
        IDS[name]: report(
            step, [step_with_witnesses(step, 32, **{other: 32.0})], name=name, **values
        )
        for name, other in both_ways
    }


def watch(tally: Tally, reached: int, **liar: Any) -> list[int]:
    """The steps written once the slow have had their time, 20 seconds to a step."""
    now = START + 20 * reached
    lines = look(tally, now, **trained(reached, now, **liar))
    lines += tally.finished_lines(now + SETTLING_SECONDS + 1)
    return [line.step for line in lines]


@pytest.mark.parametrize("ahead", [1, 4, 8])
def test_a_step_that_one_claims_ahead_of_the_others_is_not_written(
    tally: Tally, ahead: int
) -> None:
    assert [watch(tally, step) for step in (1, 2, 3)] == [[1], [2], [3]]
    claim = {"step": 4 + ahead, "recent": [step_report(4 + ahead, 2 * TARGET)], "samples": 128}
    written = [watch(tally, step, **claim) for step in range(4, 15)]
    assert written == [[step] for step in range(4, 15)]
    assert credited(tally) == {"alice": 32 * 14, "bob": 32 * 14, "mallory": 0}


def test_a_claim_counts_once_somebody_confirms_it_late(tally: Tally) -> None:
    assert [watch(tally, step) for step in (1, 2, 3)] == [[1], [2], [3]]
    now = START + 80
    both = trained(4, now)
    assert look(tally, now, **{IDS["alice"]: both[IDS["alice"]]}) == []
    (line,) = tally.finished_lines(now + SETTLING_SECONDS + 1)
    assert line.samples == 0
    assert credited(tally) == {"alice": 96, "bob": 96}
    look(tally, now + 12, **{IDS["bob"]: both[IDS["bob"]]})
    assert credited(tally) == {"alice": 128, "bob": 128}
    assert [one.steps for one in tally.contributors()] == [4, 4]


def test_who_is_left_alone_by_the_others_is_credited(tally: Tally) -> None:
    assert watch(tally, 1) == [1]
    now = START + 20 + SILENCE_SECONDS - 5
    alone = report(2, [step_report(2)], time=now)
    assert look(tally, now, **{IDS["alice"]: alone}) == []
    (line,) = look(tally, now + 6)  # bob is taken for gone by now
    assert line.samples == 32


def test_claims_for_steps_of_long_ago_earn_nothing(tally: Tally) -> None:
    for step in range(1, 61):
        assert watch(tally, step) == [step]
    for number, first in enumerate((1, 9, 17)):
        recent = [step_report(step, 2 * TARGET) for step in range(first, first + 8)]
        claim = {"recent": recent, "samples": 16 * TARGET, "steps": 8}
        watch(tally, 61 + number, **claim, session=START + 1000 + number)
    assert credited(tally)["mallory"] == 0


def test_one_who_tells_of_later_steps_does_not_make_others_unseen(tally: Tally) -> None:
    for step in range(1, 20):
        claim = {"step": step + 6, "recent": [step_report(step + 6)], "samples": 7 * 32 * step}
        watch(tally, step, **claim)
    assert tally.unseen == 0
    assert credited(tally)["mallory"] <= 7 * 32  # the newest claims, not written yet


def test_a_newcomer_made_no_steps_before_it_came(tally: Tally) -> None:
    assert watch(tally, 1) == [1]
    watch(tally, 50)  # the monitor was away
    assert (tally.unseen, credited(tally)) == (48, {"alice": 32 * 50, "bob": 32 * 50})
    watch(tally, 51, recent=[], samples=48 * TARGET, steps=48)
    assert credited(tally)["mallory"] == 0


def test_one_who_is_far_ahead_does_not_end_a_run(tally: Tally) -> None:
    recent = [step_report(10**6, 2 * TARGET)]
    far: dict[str, Any] = {"step": 10**6, "recent": recent, "samples": 10**9}
    first = report(name="mallory", time=START, **far)
    assert look(tally, START, **{IDS["mallory"]: first}) == []
    assert [watch(tally, step, **far) for step in range(1, 6)] == [[1], [2], [3], [4], [5]]
    assert tally.furthest_step() == 5
    assert credited(tally)["alice"] == 32 * 5
    assert credited(tally)["mallory"] <= 2 * TARGET


@pytest.mark.parametrize("is_late", [False, True])
def test_groups_that_trained_apart_are_said_on_the_page(tally: Tally, is_late: bool) -> None:
    """Also where one half could not reach the monitor, and tells of it later."""
    ours, theirs = ("alice", "bob"), ("carol", "mallory")
    look(tally, START + 2, **pairs(2, ours) if is_late else pairs(2, ours, theirs))
    if is_late:
        assert tally.describe_partition() == ""
        look(tally, START + 15, **pairs(2, theirs))
    assert "in step 2, volunteers trained in groups" in tally.describe_partition()


def test_more_volunteers_than_a_group_holds_are_not_said_to_train_apart(tally: Tally) -> None:
    crowd = NAMES[: LARGEST + 2]
    tally.observe(pairs(1, *zip(crowd[::2], crowd[1::2], strict=True)), START + 1)
    assert [line.step for line in tally.finished_lines(START + 1)] == [1]
    assert tally.describe_partition() == ""


def test_volunteers_that_saw_each_other_by_way_of_others_are_one_group(tally: Tally) -> None:
    told = pairs(1, ("alice", "bob"), ("carol", "mallory"))
    told[IDS["bob"]].recent[0].seen = step_with_witnesses(1, 32, carol=32.0).seen
    look(tally, START + 1, **told)
    assert tally.last_step == 1
    assert tally.describe_partition() == ""
