"""Reports: what they may hold, how they are handed in, and that none of them ends the monitor."""

import asyncio
import math
from types import SimpleNamespace
from typing import Any

import pytest
from google.protobuf.wrappers_pb2 import BytesValue
from hivemind.p2p.p2p_daemon_bindings.utils import P2PHandlerError
from hivemind.utils import MSGPackSerializer, get_dht_time
from hivemind.utils.crypto import RSAPrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.training.records.sealing import subkey_of
from training.access.grants import GrantError
from training.network.traffic import Traffic
from training.records import reports
from training.records.owners import peer_id_of
from training.records.reports import MOST_STEPS, RECENT_STEPS, StepReport
from training.run.live import PeerState
from training.volunteer.contribution import TOLD_SECONDS, Contribution

OURS, THEIRS = RSAPrivateKey(), RSAPrivateKey()


def report(name: str = "alice") -> dict[str, Any]:
    contribution = Contribution(name)
    contribution.add(16, 4.5)
    contribution.finish_step(3, Traffic(100, 90))
    return contribution.report(PeerState.TRAINING, 3, 12.5).model_dump()


def is_accepted(value: object) -> bool:
    try:
        reports.parse(value)
    except ValueError:
        return False
    return True


class Box(reports.ReportServicer):
    """A letter box, and what it answers to a peer."""

    def answer(self, content: bytes, peer: str = "a-peer") -> str:
        context = SimpleNamespace(remote_id=peer)
        answer = asyncio.run(self.rpc_hand_in(BytesValue(value=content), context))
        return answer.value.decode(errors="replace")


def letter(content: object, token: object = b"") -> bytes:
    dumps = MSGPackSerializer.dumps
    return bytes(dumps([token, dumps(content)]))


def test_the_newest_report_of_each_volunteer_is_kept_until_the_box_is_emptied(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def empty() -> dict[str, bytes]:
        nowhere: Any = None
        return asyncio.run(reports._empty(nowhere, nowhere))

    monkeypatch.setattr(reports, "_box", None)
    assert empty() == {}  # nobody serves yet
    monkeypatch.setattr(reports, "_box", box := Box(None))
    for name, peer in (("old", "a-peer"), ("new", "a-peer"), ("other", "another-peer")):
        assert box.answer(letter(report(name)), peer) == ""
    names = {peer: MSGPackSerializer.loads(kept)["name"] for peer, kept in empty().items()}
    assert names == {"a-peer": "new", "another-peer": "other"}
    assert empty() == {}


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "Unpack"),
        (b"\xc1", "refused"),
        (letter(1)[:-1], "incomplete"),
        (letter(report(), token=7), "not a report"),
        (MSGPackSerializer.dumps([b"", b"", b""]), "too many values"),
        (letter({"name": "x" * reports.MOST_BYTES}), "bytes"),
    ],
)
def test_what_is_no_report_is_refused_with_the_reason(content: bytes, why: str) -> None:
    box = Box(None)
    assert why in box.answer(content)
    assert box.newest == {}


def test_a_flood_of_peers_does_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reports, "MOST_REPORTS", 2)
    box = Box(None)
    answers = [box.answer(letter(report()), f"peer-{number}") for number in range(3)]
    assert answers == ["", "", "too many reports"]
    assert box.answer(letter(report()), "peer-1") == ""


def test_in_a_run_with_an_authority_a_report_needs_access() -> None:
    class Strict:
        def verify(self, token: bytes, peer: str) -> None:
            if (token, peer) != (b"grant", "member"):
                raise GrantError("made for another peer's key")

    box = Box(Strict())  # type: ignore[arg-type]
    assert box.answer(letter(report(), b"grant"), "member") == ""
    assert "another peer" in box.answer(letter(report(), b"grant"), "stranger")
    assert list(box.newest) == ["member"]


MONITOR, GUEST = (peer_id_of(subkey_of(key)) for key in (OURS, THEIRS))


@pytest.mark.parametrize(
    ("monitors", "answers", "taken"),
    [
        ([MONITOR], [b""], True),
        ([MONITOR], [b"too many reports"], False),
        ([MONITOR], [P2PHandlerError("no such handler")], False),
        ([MONITOR], [TimeoutError()], False),
        ([MONITOR, MONITOR], [b"refused", b""], True),  # one of them has it
        (["no identity"], [], False),
        ([GUEST], [], False),  # nobody reports to itself
    ],
)
def test_a_report_is_handed_in_where_a_monitor_has_nothing_against_it(
    monitors: list[str], answers: list[Any], taken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = iter(answers)

    async def hand_in(_request: BytesValue, timeout: float) -> BytesValue:
        if isinstance(answer := next(given), Exception):
            raise answer
        return BytesValue(value=answer)

    stub = SimpleNamespace(rpc_hand_in=hand_in)
    monkeypatch.setattr(reports.ReportServicer, "get_stub", lambda *_: stub)
    node: Any = SimpleNamespace(p2p=None, peer_id=GUEST)
    handed: Any = reports._hand_in(None, node, tuple(monitors), b"")  # type: ignore[arg-type]
    assert asyncio.run(handed) is taken
    assert list(given) == []


class Unadmitted:
    """A volunteer whose access has expired."""

    @property
    def token(self) -> bytes:
        raise GrantError("expired")


@pytest.mark.parametrize(
    ("membership", "token"),
    [(None, b""), (SimpleNamespace(token=b"grant"), b"grant"), (Unadmitted(), b"")],
)
def test_a_report_goes_to_the_monitors_with_our_access(membership: Any, token: bytes) -> None:
    def run(call: Any, return_future: bool) -> Any:
        assert return_future  # nobody waits for the monitor
        return call

    dht: Any = SimpleNamespace(run_coroutine=run)
    sent = report()
    call: Any = reports.hand_in(dht, ["a", "b"], reports.parse(sent), membership)
    shown, content = MSGPackSerializer.loads(call.keywords["content"])
    assert (call.keywords["monitors"], shown) == (("a", "b"), token)
    assert MSGPackSerializer.loads(content) == sent


@given(st.binary(max_size=200) | st.builds(letter, st.none() | st.integers(0, 99) | st.text()))
@settings(max_examples=80)
def test_no_bytes_make_the_box_or_its_reader_raise(content: bytes) -> None:
    box = Box(None)
    box.answer(content)
    found = SimpleNamespace(result=lambda _timeout: dict(box.newest))
    dht = SimpleNamespace(run_coroutine=lambda *_arguments, **_options: found)
    assert reports.collect(dht, 1.0) == {}


@pytest.mark.parametrize(
    "seconds", [-2 * reports.EXPIRATION_SECONDS, 2 * reports.EXPIRATION_SECONDS]
)
def test_a_report_of_another_time_is_refused(seconds: float) -> None:
    assert not is_accepted(report() | {"time": get_dht_time() + seconds})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("samples", -1),
        ("samples", 1.0),
        ("samples_per_second", math.nan),
        ("samples_per_second", math.inf),
        ("name", ""),
        ("name", "<script>"),
        ("name", "x" * 41),
        ("name", "alice\n"),
        ("samples", 2**60),
        ("state", "sleeping"),
        ("recent", [{"step": 1}]),
        ("milestones", {"lunch": 3.0}),
        ("milestones", {"connect": -1.0}),
        ("note", "a field too many"),
    ],
)
def test_a_report_of_another_shape_is_refused(field: str, value: object) -> None:
    assert not is_accepted(report() | {field: value})


@pytest.mark.parametrize("name", ["Ada Lovelace", "user_1", "d.e@f-g", "Grażyna", "名前"])
def test_names_of_people_are_accepted(name: str) -> None:
    assert is_accepted(report(name))


def test_a_contribution_counts_only_what_went_into_a_step() -> None:
    contribution = Contribution("alice")
    contribution.add(16, 4.0)
    contribution.discard()
    contribution.add(16, 3.0)
    contribution.add(16, 5.0)
    assert (contribution.samples, contribution.pending) == (0, 32)
    contribution.finish_step(1, Traffic(100, 90))
    contribution.add(16, 2.0)
    contribution.finish_step(2, Traffic(130, 100))
    sent = contribution.report(PeerState.TRAINING, 2, 1.0)
    assert (sent.samples, sent.steps) == (48, 2)
    assert [(s.samples, s.loss, s.mini_steps) for s in sent.recent] == [(32, 8.0, 2), (16, 2.0, 1)]
    assert [(s.bytes_sent, s.bytes_received) for s in sent.recent] == [(100, 90), (30, 10)]


def contribution_of(steps: int) -> Contribution:
    contribution = Contribution("alice")
    for step in range(1, steps + 1):
        contribution.add(16, 4.0)
        contribution.finish_step(step, Traffic(0, 0))
    return contribution


def told_by(contribution: Contribution) -> list[StepReport]:
    return list(contribution.report(PeerState.TRAINING, 1, 1.0).recent)


def test_a_report_tells_the_last_few_steps_and_those_that_a_monitor_missed() -> None:
    contribution = contribution_of(3 * RECENT_STEPS)
    everything = list(range(1, 3 * RECENT_STEPS + 1))
    for sent in (None, 0.0, TOLD_SECONDS - 1):  # not taken; not written yet, perhaps
        if sent is not None:
            contribution.note_taken(told_by(contribution), sent)
        assert [entry.step for entry in told_by(contribution)] == everything
    contribution.note_taken(told_by(contribution), TOLD_SECONDS)
    assert [entry.step for entry in told_by(contribution)] == everything[-RECENT_STEPS:]


def test_steps_that_a_killed_monitor_had_taken_are_told_to_the_next() -> None:
    """However long finding out that it is gone took: looking for it kept a volunteer for 40 s."""
    contribution = contribution_of(3 * RECENT_STEPS)
    for step in contribution.untold:
        step.time -= 2 * TOLD_SECONDS
    contribution.note_taken(told_by(contribution), 0.0)
    contribution.note_not_taken()
    for sent in (TOLD_SECONDS + 10, 2 * TOLD_SECONDS):
        assert len(told_by(contribution)) == 3 * RECENT_STEPS
        contribution.note_taken(told_by(contribution), sent)
    assert len(told_by(contribution)) == 3 * RECENT_STEPS
    contribution.note_taken(told_by(contribution), 2 * TOLD_SECONDS + 10)
    assert len(told_by(contribution)) == RECENT_STEPS


def test_a_report_after_a_day_without_a_monitor_keeps_the_newest_steps() -> None:
    contribution = contribution_of(2 * MOST_STEPS)
    told = told_by(contribution)
    assert [entry.step for entry in told] == list(range(MOST_STEPS + 1, 2 * MOST_STEPS + 1))


def test_a_report_that_is_too_long_goes_without_its_oldest_steps() -> None:
    contribution = contribution_of(MOST_STEPS)
    crowd = [reports.Witness(contributor=f"{n:012x}", weight=1.0) for n in range(reports.MOST_SEEN)]
    for step in contribution.untold:
        step.seen = crowd
    report = contribution.report(PeerState.TRAINING, MOST_STEPS, 1.0)
    content = reports.letter(report, b"grant" * 100)
    assert len(content) <= reports.MOST_BYTES
    read = reports.parse(MSGPackSerializer.loads(MSGPackSerializer.loads(content)[1]))
    steps = [entry.step for entry in read.recent]
    assert RECENT_STEPS < len(steps) < MOST_STEPS
    assert steps[-1] == MOST_STEPS
    assert read.samples == report.samples
