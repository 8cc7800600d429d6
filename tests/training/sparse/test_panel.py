"""training/sparse/panel: who judges, and whose figures count."""

import math
import random
from collections import Counter
from collections.abc import Collection, Mapping

import pytest
from hivemind.utils.crypto import RSAPrivateKey

from training.sparse import verdict
from training.sparse.assignment import MOST_ASSIGNED
from training.sparse.closing import Taken
from training.sparse.panel import ENOUGH, REST, SPOT, Hearing, Panel, agree
from training.sparse.payload import Round
from training.sparse.verdict import Finding, VerdictError

OF = Round("our-run", 7, "0" * 64)
ANNOUNCED = "c" * 64
A, B = "a" * 64, "b" * 64
HELPS, HARMS = Finding(-0.02, 1e-6), Finding(0.5, 1e-6)


def make_panel(seed: int = 1, each: int = 3) -> Panel:
    return Panel(lambda number: b"", each, chooser=random.Random(seed))


def taken(count: int) -> list[Taken]:
    return [Taken(f"{place:064x}", f"peer-{place:04}", 10) for place in range(count)]


def make_hearing(shares: Mapping[str, tuple[str, ...]], until: float = 10.0) -> Hearing:
    return Hearing(OF, ANNOUNCED, dict(shares), until)


def answer(hearing: Hearing, key: RSAPrivateKey, findings: Mapping[str, Finding]) -> str:
    return hearing.take(verdict.write(OF, ANNOUNCED, findings, key))


def test_each_update_has_three_judges_and_nobody_judges_its_own() -> None:
    updates = taken(20)
    shares = make_panel().draw(0, updates)
    owner = {one.sha256: one.peer for one in updates}
    judged = Counter(sha256 for share in shares.values() for sha256 in share)
    assert judged == dict.fromkeys(owner, 3)
    assert all(owner[sha256] != judge for judge, share in shares.items() for sha256 in share)
    assert all(len(set(share)) == len(share) for share in shares.values())
    assert max(map(len, shares.values())) <= 4


def test_the_draw_is_another_one_each_time() -> None:
    panel = make_panel()
    assert panel.draw(0, taken(20)) != panel.draw(0, taken(20))


def test_every_volunteer_is_as_likely_to_judge_an_update() -> None:
    """Of 9 others each judges the first update in 3 of 9 draws: 333 of 1,000, deviation 15."""
    panel, first = make_panel(), taken(10)[0].sha256
    counts: Counter[str] = Counter()
    for number in range(1000):
        shares = panel.draw(number, taken(10))
        counts.update(judge for judge, share in shares.items() if first in share)
    assert len(counts) == 9
    assert all(abs(count - 1000 / 3) < 75 for count in counts.values())


@pytest.mark.parametrize("count", [0, 1, 2])
def test_two_volunteers_are_too_few(count: int) -> None:
    panel = make_panel()
    assert panel.draw(0, taken(count)) == {}
    assert not panel.can_meet(0, count)
    assert panel.can_meet(0, 3)


def test_with_fewer_than_two_judges_for_each_nobody_is_drawn() -> None:
    assert not make_panel(each=1).can_meet(0, 100)


def test_no_share_is_larger_than_a_verdict_can_be() -> None:
    updates = taken(200)
    panel = make_panel()
    panel.liars = {one.peer for one in updates[:-3]}
    shares = panel.draw(0, updates)
    assert max(map(len, shares.values())) == MOST_ASSIGNED


def test_figures_agree_but_for_rounding() -> None:
    assert agree(HELPS, Finding(-0.02005, 1.05e-6))
    assert not agree(HELPS, Finding(-0.021, 1e-6))
    assert not agree(HELPS, Finding(-0.02, 1e-4)), "a doubt that hides harm"
    assert agree(Finding(0.5, 0.01), Finding(0.509, 0.01)), "a tenth of the standard error"
    nothing = Finding(math.inf, math.inf)
    assert agree(nothing, nothing)
    assert not agree(nothing, HELPS)
    assert not agree(HELPS, nothing)


def test_the_middle_figure_counts_where_all_agree(
    keys: list[RSAPrivateKey], identities: list[str]
) -> None:
    hearing = make_hearing(dict.fromkeys(identities[:3], (A,)))
    for key, mean in zip(keys[:3], (-0.02002, -0.02, -0.02001), strict=True):
        answer(hearing, key, {A: Finding(mean, 1e-6)})
    assert hearing.finding(A) == Finding(-0.02001, 1e-6)
    hearing.check({A: Finding(-0.0200, 1e-6)})
    assert hearing.liars == set()


def test_one_who_disagrees_leaves_it_to_the_host_and_is_found_out(
    keys: list[RSAPrivateKey], identities: list[str]
) -> None:
    hearing = make_hearing(dict.fromkeys(identities[:3], (A, B)))
    answer(hearing, keys[0], {A: HELPS, B: HELPS})
    answer(hearing, keys[1], {A: HELPS, B: HELPS})
    assert hearing.finding(A) == hearing.finding(B) == HELPS
    answer(hearing, keys[2], {A: HARMS, B: HELPS})
    assert hearing.finding(A) is None
    hearing.check({A: HELPS})
    assert hearing.liars == {identities[2]}
    assert hearing.finding(A) == HELPS


def test_a_lying_majority_is_found_out_by_one_who_does_not_lie(
    keys: list[RSAPrivateKey], identities: list[str]
) -> None:
    hearing = make_hearing(dict.fromkeys(identities[:3], (A, B)))
    for key in keys[:2]:
        answer(hearing, key, {A: HELPS, B: HELPS})
    answer(hearing, keys[2], {A: HARMS})
    assert hearing.finding(A) is None
    assert hearing.finding(B) == HELPS
    hearing.check({A: HARMS})
    assert hearing.liars == set(identities[:2])
    assert hearing.finding(B) is None, "nothing that liars say counts in this round"


def test_too_few_figures_leave_it_to_the_host(
    keys: list[RSAPrivateKey], identities: list[str]
) -> None:
    assert ENOUGH == 2
    hearing = make_hearing(dict.fromkeys(identities[:3], (A,)))
    answer(hearing, keys[0], {A: HELPS})
    answer(hearing, keys[1], {})
    assert hearing.finding(A) is None
    assert not hearing.is_over(now=9.0)
    assert hearing.is_over(now=10.0)
    answer(hearing, keys[2], {A: HELPS})
    assert hearing.is_over(now=9.0)
    assert hearing.finding(A) == HELPS


def test_a_judge_answers_once_and_for_itself(
    keys: list[RSAPrivateKey], identities: list[str]
) -> None:
    hearing = make_hearing({identities[0]: (A,), identities[1]: (A,)})
    assert answer(hearing, keys[0], {A: HELPS}) == identities[0]
    answer(hearing, keys[0], {A: HELPS})  # sent again, after an answer was lost
    with pytest.raises(VerdictError, match="answered already"):
        answer(hearing, keys[0], {A: HARMS})
    content = verdict.write(OF, ANNOUNCED, {A: HELPS}, keys[1])
    with pytest.raises(VerdictError, match="another than the grant is for"):
        hearing.take(content, member=identities[0])


def test_liars_are_not_drawn_again(keys: list[RSAPrivateKey], identities: list[str]) -> None:
    panel = make_panel()
    updates = [Taken(f"{place:064x}", who, 10) for place, who in enumerate(identities)]
    hearing = make_hearing({identities[0]: (A,)})
    answer(hearing, keys[0], {A: HARMS})
    panel.close(hearing, {A: HELPS})
    for number in range(9, 2000, 100):
        assert identities[0] not in panel.draw(number, updates)
        assert set(panel.draw(number, updates)) == set(identities[1:])


def test_a_judge_that_did_not_answer_rests_for_longer_each_time() -> None:
    panel, updates = make_panel(), taken(4)
    judge = updates[0].peer

    def vanish(number: int) -> None:
        of = Round("our-run", number, "0" * 64)
        panel.close(Hearing(of, ANNOUNCED, {judge: (A,)}, 0.0), {})

    vanish(7)
    assert judge not in panel.draw(7 + REST, updates)
    assert judge in panel.draw(8 + REST, updates)
    vanish(20)
    assert judge not in panel.draw(20 + 2 * REST, updates)
    assert judge in panel.draw(21 + 2 * REST, updates)
    assert panel.liars == set()


def test_where_judges_have_too_little_time_fewer_rounds_are_heard(
    keys: list[RSAPrivateKey], identities: list[str]
) -> None:
    """One round of pause, 2, 4: and one less after each hearing with enough figures."""
    panel, updates = make_panel(), taken(4)

    def hear(number: int, *answers: RSAPrivateKey) -> None:
        of = Round("our-run", number, "0" * 64)
        hearing = Hearing(of, ANNOUNCED, dict.fromkeys(identities, (A,)), 0.0)
        for key in keys:
            findings = {A: HELPS} if key in answers else {}
            hearing.take(verdict.write(of, ANNOUNCED, findings, key))
        assert hearing.covered == (len(answers) >= ENOUGH)
        panel.close(hearing, {})

    hear(7, keys[0])
    assert panel.draw(8, updates) == {}
    assert panel.draw(9, updates) != {}
    hear(9)
    assert panel.draw(11, updates) == {}
    assert panel.draw(12, updates) != {}
    hear(12)
    assert panel.draw(16, updates) == {}
    assert not panel.can_meet(16, 4)
    hear(17, *keys[:2])
    assert panel.draw(20, updates) == {}
    assert panel.draw(21, updates) != {}


def test_a_group_that_lies_where_it_is_alone_is_found_out_after_three_lies_on_average() -> None:
    """(1 - SPOT) / SPOT = 3 false findings, mean of 4,000 groups: deviation sqrt(12 / 4000)."""
    panel, told = make_panel(), []
    for _ in range(4000):
        lies = 0
        while not panel.is_spot():
            lies += 1
        told.append(lies)
    assert SPOT == 0.25
    assert sum(told) / len(told) == pytest.approx(3.0, abs=4 * math.sqrt(12 / 4000))


def test_a_new_panel_knows_the_liars_of_the_one_before(keys: list[RSAPrivateKey]) -> None:
    """The ban is noted before the round is over: if it cannot be, the next attempt may."""
    updates = taken(4)
    liar = updates[0].peer
    noted: list[list[str]] = []

    def fail(_liars: Collection[str]) -> None:
        raise OSError("no space left")

    hearing = make_hearing({liar: (A,)})
    hearing.liars.add(liar)
    with pytest.raises(OSError, match="no space left"):
        Panel(lambda _: b"", ban=fail).close(hearing, {})
    first = Panel(lambda _: b"", liars={"earlier"}, ban=lambda liars: noted.append(sorted(liars)))
    first.close(hearing, {})
    first.close(make_hearing({}), {})  # without a new one nothing is written
    assert noted == [sorted(("earlier", liar))]
    second = Panel(lambda _: b"", 3, chooser=random.Random(1), liars=noted[0])
    assert all(liar not in second.draw(number, updates) for number in range(50))
