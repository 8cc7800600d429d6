import json
from dataclasses import replace
from typing import Any

import pytest

from training.live import PeerState, ProgressLine
from training.metrics import PeerReport, StepReport
from training.tally import SETTLING_SECONDS, SILENCE_SECONDS, Tally

TARGET = 64
START = 1000.0


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
    tally.observe(reports, now)
    return list(tally.finished_lines(now))


def test_a_step_is_the_sum_of_its_volunteers() -> None:
    tally = Tally(TARGET)
    ours = report(1, [step_report(1, samples=48, loss=9.0, mini_steps=3)])
    theirs = report(1, [step_report(1, samples=16, loss=1.0, mini_steps=1)], name="bob")
    (line,) = look(tally, START + 2, a=ours, b=theirs)
    assert line.step == 1
    assert line.samples == 64
    assert line.loss == pytest.approx(10.0 / 4)  # sum of losses over sum of micro-batches
    assert (line.training, line.syncing, line.left) == (2, 0, 0)
    assert (line.bytes_sent, line.bytes_received) == (200, 100)


def test_a_step_waits_for_those_who_train_but_not_for_ever() -> None:
    tally = Tally(TARGET)
    behind = report(1, [step_report(1)], name="bob")
    assert [line.step for line in look(tally, START, a=report(1), b=behind)] == [1]
    now = START + 2
    assert look(tally, now, a=report(2), b=behind) == []
    assert [line.step for line in look(tally, now + SETTLING_SECONDS + 1)] == [2]


def test_steps_that_a_look_missed_are_found_in_the_next_report() -> None:
    tally = Tally(TARGET)
    look(tally, START, a=report(1))
    missed = [step_report(2), step_report(3), step_report(4)]
    assert [line.step for line in look(tally, START + 4, a=report(4, missed))] == [2, 3, 4]


def test_no_step_is_written_twice() -> None:
    tally = Tally(TARGET)
    assert len(look(tally, START, a=report(1))) == 1
    assert look(tally, START + 1, a=report(1)) == []


def test_samples_a_second_are_by_the_clock() -> None:
    tally = Tally(TARGET)
    look(tally, START, a=report(1))
    (line,) = look(tally, START + 9, a=report(2, [step_report(2, samples=60, time=START + 5)]))
    assert line.samples_per_second == pytest.approx(60 / 4)


def test_a_silent_volunteer_has_left_and_is_no_longer_waited_for() -> None:
    tally = Tally(TARGET)
    look(tally, START, a=report(1), b=report(1, name="bob"))
    now = START + SILENCE_SECONDS + 3
    alive = report(2, time=now)
    (line,) = look(tally, now, a=alive, b=report(1, name="bob"))
    assert (line.training, line.left) == (1, 1)
    assert {c.name: c.state for c in tally.contributors()} == {"alice": "training", "bob": "left"}


def test_a_volunteer_who_comes_back_keeps_what_it_did() -> None:
    tally = Tally(TARGET)
    look(tally, START, a=report(2))
    again = report(3, session=START + 50, time=START + 60, samples=32, steps=1)
    look(tally, START + 60, a=again)
    (contributor,) = tally.contributors()
    assert (contributor.samples, contributor.steps) == (64 + 32, 2 + 1)
    assert contributor.seconds == pytest.approx(2 + 10)


@pytest.mark.parametrize(
    "claim",
    [
        {"samples": 10**6},  # more than whole global steps
        {"samples": 0},  # less than before
    ],
)
def test_an_impossible_claim_is_not_counted_but_noted(claim: dict[str, int]) -> None:
    tally = Tally(TARGET)
    look(tally, START, a=report(1))
    (line,) = look(tally, START + 2, a=report(2, [step_report(2)], **claim))
    assert line.rejected == 1
    assert tally.contributors()[0].samples == 32


def test_a_step_from_far_in_the_future_does_not_stop_the_books() -> None:
    tally = Tally(TARGET)
    look(tally, START, a=report(1), b=report(1, name="bob"), c=report(1, name="carol"))
    liar = report(2, [step_report(10**9)], name="carol")
    (line,) = look(tally, START + 2, a=report(2), b=report(2, name="bob"), c=liar)[:1] or look(
        tally, START + 3 + SETTLING_SECONDS
    )
    assert line.step == 2
    assert line.rejected == 1


def test_micro_batches_left_out_by_volunteers_are_noted() -> None:
    tally = Tally(TARGET)
    (line,) = look(tally, START, a=report(1, rejected=3))
    assert line.rejected == 3


def test_a_restart_continues_the_books() -> None:
    tally = Tally(TARGET)
    look(tally, START, a=report(1))
    again = Tally(TARGET, last_step=tally.last_step)
    again.restore(json.loads(json.dumps(tally.state())))
    (line,) = look(again, START + 2, a=report(2))
    assert line.step == 2
    assert again.contributors() == [replace(again.contributors()[0], samples=64)]
    assert again.count(PeerState.TRAINING) == 1
