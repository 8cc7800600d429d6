"""training/monitor/round_books: lines and credit from what the rounds took."""

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.training.sparse import test_report
from training.monitor.round_books import RoundBooks, Traffic
from training.records.owners import contributor_of
from training.sparse.closing import Taken

ALICE, BOB = "QmAlice", "QmBob"
FIGURES: dict[str, Any] = {"number": 0, "loss": 3.0, "bytes_sent": 100, "bytes_received": 200}
REPORT = replace(test_report.REPORT, time=1010.0, milestones={"connect": 1.0}, **FIGURES)
THEIRS = replace(REPORT, name="bob", loss=1.0)
TAKEN = (Taken("a" * 64, ALICE, 30), Taken("b" * 64, BOB, 10))


@pytest.fixture
def books() -> RoundBooks:
    books = RoundBooks()
    books.hear({ALICE: REPORT, BOB: THEIRS}, {ALICE, BOB}, 1010.0)
    return books


def test_a_line_says_what_the_round_took(books: RoundBooks) -> None:
    line = books.book(0, TAKEN, {ALICE: REPORT, BOB: THEIRS}, 1011.0, Traffic(5, 6, 7))
    assert (line.step, line.samples, line.time) == (1, 40, "1970-01-01T00:16:51.000Z")
    assert line.loss == pytest.approx((30 * 3.0 + 10 * 1.0) / 40)
    assert (line.bytes_sent, line.bytes_received, line.rejected) == (5, 6, 7)
    assert (line.training, line.syncing, line.left) == (2, 0, 0)
    assert books.book(1, TAKEN, {}, 1015.0).samples_per_second == 10.0  # 40 in 4 s by the clock


def test_the_loss_of_another_round_does_not_count(books: RoundBooks) -> None:
    late = {ALICE: REPORT, BOB: replace(THEIRS, number=1)}
    assert books.book(1, TAKEN, late, 1011.0).loss == 1.0
    assert books.book(2, TAKEN, late, 1012.0).loss is None


def test_credit_is_what_the_lists_say_also_after_a_restart(books: RoundBooks) -> None:
    books.book(0, TAKEN, {}, 1011.0)
    books.book(1, TAKEN[:1], {}, 1012.0)
    alice, bob = books.contributors()
    assert (alice.id, alice.name) == (contributor_of(ALICE), "alice")
    assert (alice.samples, alice.steps, bob.samples, bob.steps) == (60, 2, 10, 1)
    assert (alice.bytes_sent, alice.bytes_received) == (100, 200)
    after = RoundBooks()
    after.restore(json.loads(json.dumps(books.state())))
    assert (after.next_round, after.contributors()) == (2, [alice, bob])


def test_a_volunteer_who_comes_back_keeps_its_account(books: RoundBooks) -> None:
    books.book(0, TAKEN, {}, 1011.0)
    again = replace(REPORT, session=2000.0, time=2005.0, bytes_sent=1, milestones={"connect": 9.0})
    books.hear({ALICE: again}, {ALICE}, 2005.0)
    books.hear({ALICE: replace(again, time=2006.0)}, {ALICE}, 2006.0)
    alice = books.contributors()[0]
    assert (alice.bytes_sent, alice.samples) == (101, 30)
    assert alice.milestones == {"connect": 1.0}


def test_time_is_what_the_monitor_heard_whatever_a_volunteer_says() -> None:
    books = RoundBooks()
    report = replace(REPORT, session=1000.0 + 11 * 86_400)
    for now in (1000.0, 1010.0, 1020.0, 1500.0, 1510.0):  # away between 1020 and 1500
        books.hear({ALICE: replace(report, time=now)}, {ALICE}, now)
    books.hear({ALICE: replace(report, time=1510.0)}, {ALICE}, 1530.0)  # no news
    assert books.contributors()[0].seconds == 30.0


def test_whoever_is_not_present_has_left_and_is_forgotten_where_it_earned_nothing(
    books: RoundBooks,
) -> None:
    books.hear({ALICE: REPORT, BOB: THEIRS}, {BOB}, 1011.0)
    line = books.book(0, TAKEN[1:], {}, 1011.0)
    assert (line.training, line.left) == (1, 1)
    assert [(who.name, who.state) for who in books.contributors()] == [
        ("bob", "training"),
        ("alice", "left"),
    ]
    books.hear({}, set(), 1010.0 + 3700)
    assert [each.name for each in books.contributors()] == ["bob"]
