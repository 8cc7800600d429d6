"""A peer's access on file: renewed in time, kept through an outage, given up when refused."""

import asyncio
import io
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import AsyncMock, Mock

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hivemind.utils import ValueWithExpiration
from hivemind.utils.crypto import RSAPrivateKey

from calculator.errors import InputError
from tests.training.access.conftest import ALICE, Place
from tests.training.processes import wait_for
from tests.training.sparse.clocks import Clock
from training.__main__ import main
from training.access import grants
from training.access.causes import EXPLANATIONS, AccessRefusedError, Cause
from training.access.client import Admission
from training.access.grants import Grant, GrantError
from training.access.membership import Membership, Renewal, admitted
from training.access.tokens import find_token, provide_token
from training.authority.keys import find_authority_folder, read_key, sign_own
from training.records import directory
from training.records.directory import EXPIRATION_SECONDS, PAUSE_SECONDS, Directory, announce
from training.records.owners import BanList, contributor_of, tag_of
from training.run import supervisor
from training.run.runfile import RunFile

KEY = Ed25519PrivateKey.generate()
PEER = RSAPrivateKey.process_wide().get_public_key().to_bytes().decode()


def admission(lifetime: float) -> Admission:
    expires = int(time.time() + lifetime)
    grant = grants.issue(KEY, "our-run", "alice", PEER, expires)
    return Admission(grant, grants.public_key_text(KEY))


@pytest.fixture
def membership(tmp_path: Path) -> Membership:
    return Membership(tmp_path, "our-run", PEER)


@pytest.fixture(autouse=True)
def _no_stored_token(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(tmp_path / "token"))
    monkeypatch.setenv("HF_TOKEN", "")


def test_access_is_renewed_before_it_expires(membership: Membership) -> None:
    announced: set[int] = set()
    membership.listeners.append(lambda grant: announced.add(grant.expires))
    lapses: list[bool] = []

    def has_renewed() -> bool:
        lapses.append(membership.has_expired)
        return len(announced) >= 2

    stop = threading.Event()
    with Renewal(membership, lambda: admission(4.0), print, stop):
        wait_for("a new grant", has_renewed)
    assert sum(lapses) < len(lapses) / 2  # a busy machine may be late, never mostly
    assert not stop.is_set()


def test_another_process_sees_the_renewed_access(membership: Membership, tmp_path: Path) -> None:
    reader = Membership(tmp_path, "our-run", PEER)
    assert reader.has_expired
    membership.write(admission(-5))
    assert reader.has_expired
    with pytest.raises(GrantError, match="expired"):
        reader.current()
    membership.write(admission(60))
    assert not reader.has_expired
    assert reader.verify(membership.token, grants.peer_id_of(PEER)).username == "alice"


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"grant": 1}', '{"grant": "{}"}'])
def test_a_broken_file_is_no_access(membership: Membership, content: str) -> None:
    membership.path.write_text(content)
    assert membership.has_expired


def test_anothers_access_in_the_file_is_not_used(tmp_path: Path) -> None:
    Membership(tmp_path, "our-run", PEER).write(admission(60))
    assert Membership(tmp_path, "another-run", PEER).has_expired
    other = RSAPrivateKey().get_public_key().to_bytes().decode()
    assert Membership(tmp_path, "our-run", other).has_expired


DOWN = AccessRefusedError(Cause.AUTHORITY_UNREACHABLE)


def test_an_outage_is_told_and_bridged_while_access_lasts(membership: Membership) -> None:
    said: list[str] = []
    stop = threading.Event()
    ask = Mock(side_effect=[admission(4.0), DOWN, DOWN, admission(60.0)])
    with Renewal(membership, ask, said.append, stop):
        wait_for("the renewal", lambda: len(said) >= 2)
    assert "access could not be renewed and lasts until" in said[0]
    assert "authority does not respond" in said[0]
    assert said[1:] == ["access to the run is renewed"]
    assert not stop.is_set()


def test_earlier_access_is_used_while_the_authority_is_down(membership: Membership) -> None:
    ask = Mock(side_effect=DOWN)
    with pytest.raises(AccessRefusedError), Renewal(membership, ask, print, threading.Event()):
        pass
    membership.write(admission(300))
    with Renewal(membership, ask, print, threading.Event()) as held:
        assert not held.has_expired


def test_a_refused_renewal_ends_the_work_and_says_why(membership: Membership) -> None:
    refusal, stop = AccessRefusedError(Cause.BANNED, "sent wrong gradients"), threading.Event()
    ask = Mock(side_effect=[admission(3.0), refusal])
    with (
        pytest.raises(AccessRefusedError, match="sent wrong gradients"),
        Renewal(membership, ask, print, stop),
    ):
        assert stop.wait(60)


def test_a_run_without_authority_needs_no_access(tmp_path: Path) -> None:
    run = RunFile(name="our-run", recipe="tiny")
    key = RSAPrivateKey.process_wide()
    with admitted(run, key, tmp_path, print, threading.Event()) as membership:
        assert membership is None


def test_a_volunteer_is_admitted_by_the_token_in_the_environment(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = RSAPrivateKey.process_wide()
    monkeypatch.setenv("HF_TOKEN", ALICE)
    with admitted(place.run, key, tmp_path, print, threading.Event()) as membership:
        assert membership.current().grant.username == "alice"
    assert ALICE not in (tmp_path / "access.json").read_text()


def test_the_monitor_signs_its_own_access_beside_the_authority(place: Place) -> None:
    key = RSAPrivateKey.process_wide()
    theirs = place.ask(ALICE)
    folder, stop = place.folder / "monitor", threading.Event()
    assert find_authority_folder(place.run, place.folder) == place.folder
    ask = partial(sign_own, place.folder, place.run.name, PEER)
    with admitted(place.run, key, folder, print, stop, ask) as membership:
        assert membership.current().grant.username == "(monitor)"
        assert membership.verify(theirs.grant.to_bytes(), theirs.grant.peer_id)


def test_an_authority_folder_without_authority_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="authority_folder"):
        find_authority_folder(RunFile(name="our-run", recipe="tiny"), tmp_path)


def test_a_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    assert read_key(tmp_path).private_bytes_raw() == read_key(tmp_path).private_bytes_raw()
    (tmp_path / "authority.key").chmod(0o644)
    with pytest.raises(InputError, match="chmod 600"):
        read_key(tmp_path)


def test_who_has_no_token_is_told_where_to_get_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    run = RunFile(name="our-run", recipe="tiny", organisation="us", authority="http://127.0.0.1:9")
    (tmp_path / "run.toml").write_text(run.to_toml())
    assert main(["join", str(tmp_path / "run.toml")]) == supervisor.NOT_ADMITTED
    (line,) = capsys.readouterr().err.splitlines()
    assert EXPLANATIONS[Cause.TOKEN_MISSING].meaning in line
    assert "huggingface.co/settings/tokens" in line


def test_a_token_typed_at_the_prompt_is_kept_for_the_processes_started(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr("getpass.getpass", lambda _prompt: f" {ALICE}\n")
    provide_token()
    assert find_token().reveal() == ALICE
    assert ALICE not in "".join(capsys.readouterr())


def test_the_stored_token_is_found(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(f"{ALICE}\n")
    assert find_token().reveal() == ALICE


PEER_ID = grants.peer_id_of(PEER)


def table_of(*listed: Grant) -> Mock:
    """A hash table with one list of grants."""
    end = time.time() + 60
    given = {
        tag_of(grant.peer_public_key): ValueWithExpiration(grant.to_bytes(), end)
        for grant in listed
    }
    return Mock(get=AsyncMock(return_value=ValueWithExpiration(given, end)))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(directory, "time", SimpleNamespace(monotonic=clock))
    return clock


def known(table: Mock, membership: Membership | None, folder: Path) -> Callable[[], Grant | None]:
    """A search for a peer's grant, by one that has access itself where there is an authority."""
    if membership is not None:
        membership.write(admission(60.0))
    list_of_grants = Directory(table, membership, BanList(folder))
    return lambda: asyncio.run(list_of_grants.find(PEER_ID))


def test_a_grant_is_looked_up_once(membership: Membership, tmp_path: Path, clock: Clock) -> None:
    table = table_of(admission(60.0).grant)
    find = known(table, membership, tmp_path)
    found = find()
    assert found.peer_id == PEER_ID
    clock.now = 100.0
    assert find() == found
    table.get.assert_called_once_with("our-run_access", latest=True, return_future=True)
    BanList(tmp_path).write([contributor_of(PEER_ID)])
    with pytest.raises(GrantError, match="banned"):
        find()


def test_where_there_is_no_authority_nobody_needs_a_grant(tmp_path: Path) -> None:
    table = table_of()
    assert known(table, None, tmp_path)() is None
    assert not table.get.called


def test_strangers_cost_few_searches(membership: Membership, tmp_path: Path, clock: Clock) -> None:
    forged = grants.issue(Ed25519PrivateKey.generate(), "our-run", "x", PEER, 2**31)
    table = table_of(forged)
    find = known(table, membership, tmp_path)
    for clock.now, looks in ((0.0, 1), (PAUSE_SECONDS / 2, 1), (PAUSE_SECONDS, 2)):
        with pytest.raises(GrantError, match="announced no grant"):
            find()
        assert table.get.call_count == looks
    clock.now, table.get.side_effect = 2 * PAUSE_SECONDS, TimeoutError
    with pytest.raises(GrantError, match="announced no grant"):
        find()
    clock.now, table.get = 3 * PAUSE_SECONDS, table_of(admission(60.0).grant).get
    assert find() is not None


def test_after_the_end_of_a_grant_the_next_one_is_looked_up(
    membership: Membership, tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = table_of(admission(30.0).grant)
    find = known(table, membership, tmp_path)
    first = find()
    later = time.time() + 40
    monkeypatch.setattr(grants.time, "time", lambda: later)
    clock.now, table.get = 40.0, table_of(admission(10.0).grant).get
    assert find().expires > first.expires


@pytest.mark.parametrize("lifetime", [60.0, 10 * EXPIRATION_SECONDS])
def test_a_grant_is_announced_to_its_end_but_not_for_long(lifetime: float) -> None:
    table, grant = Mock(), admission(lifetime).grant
    announce(table, tag_of(PEER), grant)
    sent = table.store.call_args.kwargs
    left = sent["expiration_time"] - time.time()
    assert min(lifetime, EXPIRATION_SECONDS) - 30 < left <= min(lifetime, EXPIRATION_SECONDS)
    assert sent["return_future"]
    assert grants.parse(sent["value"]) == grant
    assert (sent["key"], sent["subkey"]) == ("our-run_access", tag_of(PEER))
