"""The authority over HTTP: whom it admits, whom it refuses and how it says so."""

import json
import socket
import time
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import httpx
import pytest
from hivemind.utils.crypto import RSAPrivateKey

from tests.training.access.conftest import ALICE, MALLORY, STRANGER, TOKENS, UNKNOWN, WEB, Place
from training.access import grants
from training.access.causes import EXPLANATIONS, AccessRefusedError, Cause
from training.access.grants import GrantError
from training.access.limits import Rate
from training.access.tokens import Token
from training.authority.admission import Policy
from training.authority.books import Decision
from training.authority.service import LARGEST_BODY

OpenPlace = Callable[..., Place]
PEER_ID = grants.peer_id_of(RSAPrivateKey.process_wide().get_public_key().to_bytes().decode())


def refusal(answer: httpx.Response) -> tuple[int, str]:
    """Status and cause of a refusal, which says what it means and what to do."""
    problem = answer.json()["error"]
    explanation = EXPLANATIONS[Cause(problem["cause"])]
    assert (problem["message"], problem["fix"]) == (explanation.meaning, explanation.fix)
    return answer.status_code, str(problem["cause"])


def test_a_member_gets_a_grant_that_others_can_check(place: Place) -> None:
    answer = place.put(ALICE)
    assert answer.status_code == 200
    told = answer.json()
    grant = grants.verify(told["grant"].encode(), told["authority_key"], "our-run", told["peer_id"])
    assert (grant.username, grant.run) == ("alice", "our-run")
    assert 590 < grant.seconds_left() <= 600
    assert abs(told["time"] - time.time()) < 60
    assert told["expires"] == grant.expires_at


@pytest.mark.parametrize(
    ("token", "status", "cause"),
    [
        (None, 401, "token-missing"),
        (UNKNOWN, 401, "token-invalid"),
        (STRANGER, 403, "not-a-member"),
    ],
)
def test_a_refusal_names_its_cause_and_what_to_do(
    place: Place, token: str | None, status: int, cause: str
) -> None:
    assert refusal(place.put(token)) == (status, cause)
    assert [entry.cause for entry in place.books.decisions()] == [cause]


def test_the_allowlist_admits_those_on_it_only(open_place: OpenPlace) -> None:
    place = open_place(Policy("our-run", "our-org", allowlist=True))
    place.books.allow("Alice", "an old friend")
    assert place.put(ALICE).status_code == 200
    assert refusal(place.put(MALLORY)) == (403, "not-allowed")
    assert place.books.disallow("alice")
    assert place.put(ALICE).status_code == 403


def test_a_run_without_organisation_admits_every_account(open_place: OpenPlace) -> None:
    place = open_place(Policy("our-run", ""))
    assert place.put(STRANGER).status_code == 200
    assert place.put(UNKNOWN).status_code == 401


def test_a_ban_tells_its_reason_and_covers_the_devices_of_the_account(place: Place) -> None:
    assert place.put(MALLORY).status_code == 200
    peers = place.books.ban_user("mallory", "sent wrong gradients")
    assert len(peers) == 1
    answer = place.put(MALLORY)
    assert refusal(answer) == (403, "banned")
    assert answer.json()["error"]["detail"] == "sent wrong gradients"
    assert refusal(place.put(ALICE)) == (403, "banned")  # from the same device
    assert place.books.unban("mallory")
    assert place.put(ALICE).status_code == place.put(MALLORY).status_code == 200


def test_nobody_can_have_anothers_device_banned(place: Place) -> None:
    of_alice = place.request(RSAPrivateKey.process_wide(), ALICE)
    answer = place.put(MALLORY, of_alice)  # her key, his account
    assert answer.status_code == 422
    assert answer.json()["error"]["field"] == "proof"
    assert place.books.ban_user("mallory", "") == []
    assert place.put(ALICE).status_code == 200


def test_another_runs_volunteers_are_told_so(place: Place) -> None:
    for change in ({"run": "another-run"}, {"organisation": "another"}):
        assert refusal(place.put(ALICE, **change)) == (404, "wrong-run")


@pytest.mark.parametrize(
    ("change", "field", "rule"),
    [
        ({"run": "Our Run"}, "run", "pattern"),
        ({"run": 5}, "run", "valid string"),
        ({"peer_public_key": "ssh-rsa AAAA"}, "peer_public_key", "RSA key"),
        ({"peer_public_key": "x" * 5000}, "peer_public_key", "at most 2000"),
        ({"proof": "AAAA"}, "proof", "private key"),
        ({"hf_token": ALICE}, "hf_token", "not permitted"),
    ],
)
def test_bad_input_is_named(place: Place, change: dict[str, object], field: str, rule: str) -> None:
    answer = place.put(ALICE, **change)
    problem = answer.json()["error"]
    assert (answer.status_code, problem["cause"]) == (422, "bad-request")
    assert problem["field"] == field
    assert rule in problem["rule"]
    assert len(problem["value"]) <= 101
    assert ALICE not in answer.text


LONG = b"x" * (LARGEST_BODY + 1)


@pytest.mark.parametrize(
    ("method", "path", "content", "status", "rule"),
    [
        *(
            ("PUT", "/access", body, 422, "")
            for body in (b"", b"{", b"[]", b"null", b"\xed\xa0\x80", b'{"run": "' + b"{" * 3000)
        ),
        ("PUT", "/access", LONG, 413, f"{LARGEST_BODY:,}"),
        ("PUT", "/access", [LONG], 413, f"{LARGEST_BODY:,}"),  # its length is not told
        ("GET", "/access", b"", 405, "PUT /access"),
        ("PUT", f"/{ALICE}", b"", 404, "PUT /access"),
    ],
)
def test_what_is_no_request_is_answered_with_the_rule(
    place: Place, method: str, path: str, content: Any, status: int, rule: str
) -> None:
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {ALICE}"}
    address = f"{place.run.authority}{path}"
    answer = WEB.request(method, address, content=content, headers=headers)
    assert answer.status_code == status
    told = answer.json()["error"]["rule"]
    assert told
    assert rule in told
    assert ALICE not in answer.text


def test_a_body_that_never_comes_is_cut_off(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("training.authority.service.BODY_SECONDS", 0.2)
    port = int(place.run.authority.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), 30) as line:
        line.sendall(b"PUT /access HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n")
        assert line.recv(100).startswith(b"HTTP/1.1 408 ")


def test_who_asks_too_often_is_told_when_to_come_back(open_place: OpenPlace) -> None:
    for rates in ({"address_rate": Rate(2, 0.01)}, {"user_rate": Rate(2, 0.01)}):
        place = open_place(**rates)
        before = len(place.books.decisions())
        answers = [place.put(ALICE) for _ in range(5)]
        assert [answer.status_code for answer in answers[:2]] == [200, 200]
        assert {refusal(answer) for answer in answers[2:]} == {(429, "rate-limited")}
        assert 1 <= int(answers[-1].headers["Retry-After"]) <= 100
        assert "rate-limited" in [entry.cause for entry in place.books.decisions()][before:]


def test_the_hub_being_down_or_odd_is_told_apart_from_a_bad_token(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("training.authority.standin.whoami", lambda _user: {"name": ["?"]})
    assert refusal(place.put(ALICE)) == (502, "hub-unreachable")
    place.hub.is_down = True
    assert refusal(place.put(ALICE)) == (503, "hub-unreachable")
    place.hub.close()
    assert refusal(place.put(ALICE)) == (503, "hub-unreachable")


def test_the_hub_is_not_asked_again_about_the_same_token(open_place: OpenPlace) -> None:
    place = open_place(remember_seconds=60.0)
    assert place.put(ALICE).status_code == 200
    place.hub.is_down = True
    assert place.put(ALICE).status_code == 200
    assert place.put(MALLORY).status_code == 503


def test_a_failure_inside_shows_no_trace(
    place: Place, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    broken = Mock(side_effect=RuntimeError(f"broken with {ALICE}"))
    monkeypatch.setattr("training.authority.books.Books.find_ban", broken)
    answer = place.put(ALICE)
    assert answer.status_code == 500
    assert "Traceback" not in answer.text + caplog.text
    assert "RuntimeError" in caplog.text
    assert ALICE not in answer.text + caplog.text


def test_no_token_is_in_a_file_a_log_or_an_answer(
    place: Place, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level("DEBUG")
    answers = [place.put(token) for token in TOKENS]
    answers += [place.put(token, proof=token, run=token) for token in TOKENS]
    for token in TOKENS:
        headers = {"Authorization": token}
        answers.append(WEB.put(f"{place.run.authority}/access?token={token}", headers=headers))
    terminal = "".join(capfd.readouterr())
    files = [path.read_bytes() for path in place.folder.iterdir()]
    assert len(files) >= 2
    # this process is the visitor as well, whose library logs the address that it asks for
    lines = [line for line in caplog.text.splitlines() if "?token=" not in line]
    for token in TOKENS:
        assert not any(token in answer.text for answer in answers)
        assert not any(token.encode() in content for content in files)
        assert token not in terminal
        assert not any(token in line for line in lines)


def test_key_and_books_are_for_their_owner_only(place: Place) -> None:
    modes = {path.name: path.stat().st_mode & 0o777 for path in place.folder.iterdir()}
    assert modes.keys() >= {"authority.key", "authority.sqlite"}
    assert set(modes.values()) == {0o600}


def test_it_says_what_it_serves(place: Place) -> None:
    told = WEB.get(place.run.authority).json()
    assert (told["run"], told["organisation"], told["lifetime"]) == ("our-run", "our-org", 600)


def test_a_volunteer_reads_the_cause_from_the_answer(place: Place) -> None:
    assert place.ask(ALICE).grant.username == "alice"
    place.books.ban_user("mallory", "sent wrong gradients")
    for token, cause, words in (
        (UNKNOWN, Cause.TOKEN_INVALID, "revoked"),
        (STRANGER, Cause.NOT_A_MEMBER, "stranger is not in our-org"),
        (MALLORY, Cause.BANNED, "sent wrong gradients"),
    ):
        with pytest.raises(AccessRefusedError, match=words) as caught:
            place.ask(token)
        assert caught.value.cause is cause
        assert not caught.value.passes
        assert token not in str(caught.value)
        assert len(str(caught.value).splitlines()) == 1
    place.run = replace(place.run, authority="http://127.0.0.1:9")  # where nothing listens
    with pytest.raises(AccessRefusedError, match="no connection to") as caught:
        place.ask(ALICE)
    assert caught.value.cause is Cause.AUTHORITY_UNREACHABLE
    assert caught.value.passes


def test_a_volunteer_hears_of_a_wrong_clock(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    shifts = {"by": 0.0}
    clock = SimpleNamespace(time=lambda: time.time() + shifts["by"])
    monkeypatch.setattr("training.authority.service.time", clock)
    for shifts["by"], words in ((40.0, "behind the authority's"), (-40.0, "ahead of the")):
        with pytest.raises(AccessRefusedError, match=words) as caught:
            place.ask(ALICE)
        assert caught.value.cause is Cause.CLOCK_OFF
    shifts["by"] = 1.0
    assert place.ask(ALICE)


def test_a_decision_is_logged_with_user_and_peer(place: Place) -> None:
    place.put(ALICE)
    place.put(STRANGER)
    place.books.ban_user("mallory", "why not")
    assert [(e.username, e.peer_id, e.decision, e.cause) for e in place.books.decisions()] == [
        ("alice", PEER_ID, Decision.ADMITTED, ""),
        ("stranger", PEER_ID, Decision.REFUSED, "not-a-member"),
        ("mallory", "", Decision.BANNED, "why not"),
    ]
    assert [entry.username for entry in place.books.decisions("stranger")] == ["stranger"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("run", "another-run"),
        ("username", "bob"),
        ("peer_public_key", RSAPrivateKey().get_public_key().to_bytes().decode()),
        ("expires", 2**33),
        ("signature", "AAAA"),
    ],
)
def test_a_changed_grant_does_not_hold(place: Place, field: str, value: object) -> None:
    admission = place.ask(ALICE)
    grants.verify(admission.grant.to_bytes(), admission.authority_key, "our-run", PEER_ID)
    token = json.dumps(json.loads(admission.grant.to_bytes()) | {field: value}).encode()
    with pytest.raises(GrantError):
        grants.verify(token, admission.authority_key, "our-run", grants.parse(token).peer_id)


@pytest.mark.parametrize("token", [b"", b"{}", b"[1]", b"x" * 5000, b'{"signature": 1}', b"\xff"])
def test_what_is_no_grant_is_refused(token: bytes) -> None:
    with pytest.raises(GrantError):
        grants.verify(token, "AAAA", "our-run", "Qm")


@pytest.mark.parametrize("text", ["", "hf_a b", "hf_a\nX-Evil: 1", "hf_ä", "h" * 5000])
def test_a_token_that_cannot_be_one_is_refused_unseen(text: str) -> None:
    with pytest.raises(AccessRefusedError) as caught:
        Token(text)
    assert caught.value.cause is Cause.TOKEN_INVALID
    assert not text or text not in str(caught.value)
    assert ALICE not in repr(Token(ALICE)) + str(Token(ALICE))
