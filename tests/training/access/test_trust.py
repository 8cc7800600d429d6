"""A stored token goes nowhere before its owner has seen the server's name and said yes."""

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hivemind.utils.crypto import RSAPrivateKey

from tests.training.access.conftest import ALICE, MALLORY, Place
from training.access import trust
from training.access.causes import AccessRefusedError, Cause
from training.authority.standin import StandInUser, whoami

AUTHORITY = "https://Admits.Example.org:8440/here"
HOST = "admits.example.org:8440"


class Terminal(io.StringIO):
    """Standard input as a terminal with an answer."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _own_state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("HF_TOKEN", ALICE)
    # set and removed, so that what the code sets is taken back after the test
    monkeypatch.setenv(trust._AGREED, "")
    monkeypatch.delenv(trust._AGREED)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    monkeypatch.setattr("huggingface_hub.HfApi.whoami", lambda *_: whoami(StandInUser("alice")))


def test_without_a_yes_the_token_is_not_handed_out() -> None:
    with pytest.raises(AccessRefusedError) as caught:
        trust.token_for(AUTHORITY)
    assert caught.value.cause is Cause.NOT_TRUSTED
    assert HOST in str(caught.value)
    assert not caught.value.passes


def test_the_name_is_shown_and_one_yes_is_remembered(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal("yes\n"))
    trust.agree(AUTHORITY)
    assert f"Send the token to {HOST}?" in capsys.readouterr().err
    monkeypatch.delenv(trust._AGREED, raising=False)  # as if another process looked
    assert trust.token_for(AUTHORITY).reveal() == ALICE
    trust.agree(AUTHORITY)  # asks nothing: the terminal has no further line
    assert capsys.readouterr().err == ""
    assert not trust.is_trusted("https://other.example.org")


@pytest.mark.parametrize("terminal", [io.StringIO("yes\n"), *map(Terminal, ("no\n", "\n", ""))])
def test_any_other_answer_and_nobody_to_ask_are_a_no(
    monkeypatch: pytest.MonkeyPatch, terminal: io.StringIO
) -> None:
    monkeypatch.setattr("sys.stdin", terminal)
    with pytest.raises(AccessRefusedError, match="--trust-authority"):
        trust.agree(AUTHORITY)
    assert not trust.is_trusted(AUTHORITY)


def test_a_script_names_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AccessRefusedError, match=f"{HOST}; --trust-authority names other.org"):
        trust.agree(AUTHORITY, "other.org")
    trust.agree(AUTHORITY, "Admits.Example.org:8440")
    monkeypatch.delenv(trust._AGREED, raising=False)  # as if another process looked
    assert trust.is_trusted(AUTHORITY)


def test_a_token_that_stays_on_this_machine_needs_no_yes() -> None:
    assert trust.token_for("http://127.0.0.1:8440").reveal() == ALICE
    assert not trust.is_trusted("https://127.0.0.1.example.org")


FINE = {"global": ["discussion.write"], "scoped": [{"permissions": ["repo.content.read"]}]}


@pytest.mark.parametrize(
    ("access", "words"),
    [
        ({"role": "read"}, ""),
        ({"role": "write"}, "it is of the type 'write'"),
        ({"role": "fineGrained", "fineGrained": FINE}, "discussion.write"),
        ({"role": "fineGrained", "fineGrained": {"scoped": []}}, ""),
    ],
)
def test_a_token_that_may_do_more_than_read_gets_a_warning(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    access: dict[str, Any],
    words: str,
) -> None:
    told = whoami(StandInUser("alice")) | {"auth": {"accessToken": access}}
    monkeypatch.setattr("huggingface_hub.HfApi.whoami", lambda *_: told)
    trust.agree(AUTHORITY, HOST)
    shown = capsys.readouterr().err
    assert ("may do more than read" in shown) == bool(words)
    assert words in shown
    assert ALICE not in shown


def test_an_authority_with_another_key_than_the_run_files_is_refused(place: Place) -> None:
    right = place.ask(ALICE).authority_key
    place.run = replace(place.run, authority_key=right)
    assert place.ask(ALICE).authority_key == right
    place.run = replace(place.run, authority_key="A" * 43 + "=")
    with pytest.raises(AccessRefusedError) as caught:
        place.ask(ALICE)
    assert caught.value.cause is Cause.ANOTHER_KEY


def test_an_account_takes_part_with_one_device_at_a_time(place: Place) -> None:
    first, second = RSAPrivateKey.process_wide(), RSAPrivateKey()
    assert place.put(ALICE, place.request(first, ALICE)).status_code == 200
    refused = place.put(ALICE, place.request(second, ALICE))
    assert refused.status_code == 409
    assert refused.json()["error"]["cause"] == "key-in-use"
    assert "it ends in" in refused.json()["error"]["detail"]
    assert place.put(ALICE, place.request(first, ALICE)).status_code == 200  # a renewal
    assert place.put(MALLORY, place.request(second, MALLORY)).status_code == 200


def test_another_device_follows_when_the_first_ones_access_has_ended(place: Place) -> None:
    past, future = 1.0, 2e10
    assert place.books.hold_key("alice", "first", past) is None
    assert place.books.hold_key("Alice", "second", future) is None
    assert place.books.hold_key("ALICE", "third", future) == future
