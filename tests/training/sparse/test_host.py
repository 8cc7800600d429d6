"""training/sparse/host: what a host takes, when it closes a round, what it keeps."""

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hivemind.utils.crypto import RSAPrivateKey

from tests.training.sparse.clocks import Clock
from tests.training.sparse.rounds import (
    RUN,
    SETTINGS,
    first_state,
    make_host,
    make_payload,
    make_report,
)
from training.access import grants
from training.access.client import Admission
from training.access.membership import Membership
from training.sparse import audience, closing
from training.sparse.audience import Audience
from training.sparse.host import Host, NotTakenError
from training.sparse.peer import published
from training.sparse.report import Report

Start = Callable[..., Host]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def start(tmp_path: Path, identities: list[str], clock: Clock) -> Start:
    """Starts a host in the same folder each time."""
    return partial(make_host, tmp_path, identities[0], clock=clock)


@pytest.fixture
def host(start: Start) -> Host:
    return start()


def take_payloads(host: Host, *keys: RSAPrivateKey, **options: Any) -> None:
    for key in keys:
        host.take_payload(make_payload(host.swarm, host.state, key, **options), b"")


def take_reports(host: Host, *keys: RSAPrivateKey, **options: Any) -> None:
    for key in keys:
        host.take_report(make_report(key, **options), b"")


def files_in(folder: Path) -> int:
    return len(list(folder.glob("files/*")))


def text_of(key: RSAPrivateKey) -> str:
    return key.get_public_key().to_bytes().decode()


def test_a_full_round_closes(host: Host, keys: list[RSAPrivateKey], identities: list[str]) -> None:
    take_reports(host, *keys[1:3])
    take_payloads(host, keys[1])
    assert host.close_if_due(keys[0]) is None  # the other one is heard training
    take_payloads(host, keys[2], samples=32)
    closed = host.close_if_due(keys[0])
    assert [(one.peer, one.samples) for one in closed.taken] == [
        (identities[1], 16),
        (identities[2], 32),
    ]
    assert host.state.round == 1
    assert host.state.samples == 48
    found = closing.find(host.swarm, 0)
    assert found.taken == closed.taken
    assert closing.apply(host.swarm, found, first_state()).digest() == host.state.digest()


def test_the_missing_are_waited_for(host: Host, keys: list[RSAPrivateKey], clock: Clock) -> None:
    take_reports(host, *keys[1:4])
    take_payloads(host, *keys[1:3])
    assert host.close_if_due(keys[0]) is None
    clock.now = SETTINGS.grace
    assert host.close_if_due(keys[0]) is not None
    # It gave the last round nothing and is silent now, so this one does not wait for it.
    take_payloads(host, *keys[1:3])
    assert host.close_if_due(keys[0]) is not None


def test_whoever_says_goodbye_is_not_waited_for(host: Host, keys: list[RSAPrivateKey]) -> None:
    take_reports(host, *keys[1:3])
    take_payloads(host, keys[1])
    take_reports(host, keys[2], state="left")
    assert host.close_if_due(keys[0]) is not None


def test_a_crash_costs_one_silence(
    start: Start, keys: list[RSAPrivateKey], identities: list[str], clock: Clock
) -> None:
    host = start(settings=replace(SETTINGS, longest=10 * audience.SILENT_SECONDS))
    take_reports(host, *keys[1:3])
    take_payloads(host, keys[1])  # no quorum without the other one, which crashed
    assert host.present() == set(identities[1:3])
    while host.close_if_due(keys[0]) is None:
        clock.now += 1.0
        take_reports(host, keys[1])
    assert clock.now == audience.SILENT_SECONDS
    assert host.present() == {identities[1]}


def test_a_volunteer_has_one_update_in_a_round_and_can_repeat_it(
    host: Host, keys: list[RSAPrivateKey], tmp_path: Path
) -> None:
    content = make_payload(host.swarm, host.state, keys[1])
    assert host.take_payload(content, b"") == host.take_payload(content, b"")
    with pytest.raises(NotTakenError, match="one in this round already"):
        take_payloads(host, keys[1], samples=99)
    assert files_in(tmp_path) == 1
    assert host.refused == 1


def test_what_is_refused_is_not_kept(host: Host, keys: list[RSAPrivateKey], tmp_path: Path) -> None:
    for options, words in [({"samples": 0}, "number of samples"), ({"size": 100.0}, "its norm is")]:
        with pytest.raises(NotTakenError, match=words):
            take_payloads(host, keys[1], **options)
    assert files_in(tmp_path) == 0


def test_an_older_report_is_refused(host: Host, keys: list[RSAPrivateKey]) -> None:
    content = make_report(keys[1])
    host.take_report(content, b"")
    with pytest.raises(NotTakenError, match="shown again"):
        host.take_report(content, b"")


def test_whoever_was_heard_to_train_since_a_round_opened_is_in_it() -> None:
    clock = Clock(100.0)
    heard, now = Audience(clock), time.time()
    for peer, state in (("early", "training"), ("waits", "syncing"), ("late", "training")):
        content = Report(peer, state, now, now, 0, None, 0, 0)
        assert heard.hear(peer, content)
        clock.now += 10.0
    assert heard.training(99.0) == heard.training(100.0) == {"early", "late"}
    assert heard.training(101.0) == heard.training(120.0) == {"late"}
    assert heard.training(121.0) == set()


def test_a_crowd_of_keys_closes_the_door_to_nobody(
    host: Host, keys: list[RSAPrivateKey], clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audience, "MOST_REPORTS", 2)
    take_reports(host, *keys[1:])
    assert len(host.reports()) == 2
    clock.now = 3700.0
    take_reports(host, keys[0])
    assert len(host.reports()) == 1, "whoever is silent for an hour is forgotten"


def test_bans_are_followed(start: Start, keys: list[RSAPrivateKey], identities: list[str]) -> None:
    banned = {identities[1]}
    host = start(is_banned=banned.__contains__)
    with pytest.raises(NotTakenError, match="banned"):
        take_reports(host, keys[1])
    with pytest.raises(NotTakenError, match="banned from the run"):
        take_payloads(host, keys[1])
    take_payloads(host, keys[2])


def test_a_finished_run_takes_goodbyes_only(host: Host, keys: list[RSAPrivateKey]) -> None:
    host.finish()
    with pytest.raises(NotTakenError, match="the run is over"):
        take_payloads(host, keys[1])
    take_reports(host, keys[1], state="left")
    assert host.close_if_due(keys[0]) is None


def test_in_a_run_with_an_authority_uploads_need_the_uploaders_own_grant(
    start: Start, tmp_path: Path, keys: list[RSAPrivateKey]
) -> None:
    authority = Ed25519PrivateKey.generate()
    public = grants.public_key_text(authority)

    def grant(key: RSAPrivateKey, by: Ed25519PrivateKey = authority) -> bytes:
        return grants.issue(by, RUN, "someone", text_of(key), 2**33).to_bytes()

    membership = Membership(tmp_path, RUN, text_of(keys[0]))
    membership.write(Admission(grants.parse(grant(keys[0])), public))
    host = start(membership=membership)
    content = make_payload(host.swarm, host.state, keys[1])
    forged = grant(keys[1], by=Ed25519PrivateKey.generate())
    for token, words in [
        (b"", "not shaped like a grant"),
        (forged, "not signed by the run's authority"),
        (grant(keys[2]), "its peer has no access to the run"),
    ]:
        with pytest.raises(NotTakenError, match=words):
            host.take_payload(content, token)
    with pytest.raises(NotTakenError, match="another than the grant is for") as refusal:
        host.take_report(make_report(keys[1]), grant(keys[2]))
    assert refusal.value.is_forbidden
    assert published(host.store, 0) == []
    host.take_report(make_report(keys[1]), grant(keys[1]))
    host.take_payload(content, grant(keys[1]))
    assert len(published(host.store, 0)) == 1
