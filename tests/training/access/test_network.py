"""The network of a run with an authority: real DHT nodes, each a process with its daemon."""

import asyncio
import re
import signal
import time
from collections.abc import Iterator
from multiprocessing import active_children
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hivemind.proto.dht_pb2 import PingRequest

from tests.training.processes import wait_for
from training.access import grants
from training.access.authorizer import GrantAuthorizer
from training.access.causes import EXPLANATIONS, AccessRefusedError, Cause
from training.access.client import Admission
from training.access.grants import Grant
from training.access.membership import Membership
from training.authority.keys import read_key, sign_own
from training.network.connection import CannotConnectError, Endpoint, Identity, Network
from training.network.trouble import explain
from training.records.directory import Directory, announce
from training.rehearsal.command import free_port

pytestmark = pytest.mark.swarm

HERE = Endpoint("127.0.0.1")
RUN = "our-run"


class Careless(Membership):
    """Takes whatever is in its file for valid, and everybody else's grant too."""

    def current(self) -> Admission:
        admission = self.read()
        assert admission is not None
        return admission

    def check(self, grant: Grant) -> None:
        """Accept every grant."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("access")


@pytest.fixture(scope="module")
def entry(folder: Path) -> Iterator[Network]:
    """The monitor: an entry point with access of its own."""
    identity = Identity.read(folder / "entry")
    membership = Membership(folder / "entry", RUN, identity.public_key)
    membership.write(sign_own(folder, RUN, identity.public_key))
    network = Network(RUN, identity, (), HERE, membership=membership)
    yield network
    network.close()


def sign(key: Ed25519PrivateKey, public_key: str, lifetime: int) -> Admission:
    expires = int(time.time()) + lifetime
    return Admission(
        grants.issue(key, RUN, "mallory", public_key, expires), grants.public_key_text(key)
    )


def test_whoever_has_no_grant_is_refused_told_why_and_leaves_no_process(
    entry: Network, tmp_path: Path
) -> None:
    before = set(active_children())
    # whoever forks a process may handle SIGTERM, and the process has its handler
    handler = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        with pytest.raises(AccessRefusedError, match="admits no one without its grant") as caught:
            Network(RUN, Identity.read(tmp_path), entry.addresses(), HERE)
    finally:
        signal.signal(signal.SIGTERM, handler)
    assert caught.value.cause is Cause.NETWORK_REFUSED
    assert "initial_peers" not in str(caught.value)
    wait_for("the end of its process", lambda: set(active_children()) <= before, 10.0)


@pytest.mark.parametrize("how", ["good", "forged", "stolen", "expired"])
def test_a_grant_of_the_authority_for_the_callers_own_key_holds_in_its_time(
    folder: Path, tmp_path: Path, how: str
) -> None:
    """As the library attaches it to a call, in one process."""
    caller, other = Identity.read(tmp_path), Identity.read(tmp_path / "other")
    authority = read_key(folder)
    admission = {
        "good": sign(authority, caller.public_key, 600),
        "forged": sign(Ed25519PrivateKey.generate(), caller.public_key, 600),
        "stolen": sign(authority, other.public_key, 600),
        "expired": sign(authority, caller.public_key, -5),
    }[how]
    membership = Careless(tmp_path, RUN, admission.grant.peer_public_key)
    membership.write(admission)
    called = Membership(tmp_path / "other", RUN, other.public_key)
    called.write(sign(authority, other.public_key, 600))

    async def is_answered() -> bool:
        request = PingRequest()
        await GrantAuthorizer(caller.key, membership).sign_request(request, None)
        return await GrantAuthorizer(other.key, called).validate_request(request)

    assert asyncio.run(is_answered()) is (how == "good")


def test_a_peer_is_refused_once_its_access_has_ended_and_admitted_when_renewed(
    entry: Network, folder: Path, tmp_path: Path
) -> None:
    identity, authority = Identity.read(tmp_path), read_key(folder)
    membership = Careless(tmp_path, RUN, identity.public_key)
    # so short that the library looks for a renewed grant at every call
    membership.write(sign(authority, identity.public_key, 60))
    network = Network(RUN, identity, entry.addresses(), HERE, membership=membership)
    try:
        assert network.dial(entry.addresses()) == 1
        membership.write(sign(authority, identity.public_key, -5))
        assert network.dial(entry.addresses()) == 0
        assert not network.keep_entry_points()
        # of two records the DHT takes the one that lasts longer
        membership.write(sign(authority, identity.public_key, 62))
        assert network.dial(entry.addresses()) == 1
        assert network.keep_entry_points()
        grant = membership.current().grant
        assert announce(network.dht, network.subkey, grant).result(30)
    finally:
        network.close()
    # the others keep what a member has announced, also when it is gone
    directory = Directory(entry.dht, entry.membership, entry.bans)

    def found() -> Any:
        known = entry.dht.get(f"{RUN}_access", latest=True)
        return directory._read(entry.membership, known).get(grant.peer_id)

    assert wait_for("the announcement", found).username == "mallory"


def test_an_entry_point_that_is_down_is_told_apart_from_one_that_refuses(entry: Network) -> None:
    silence = RuntimeError("none of the initial_peers responded to a ping")
    nobody = f"/ip4/127.0.0.1/tcp/{free_port()}/p2p/{entry.addresses()[0].rpartition('/')[2]}"
    down = explain(silence, [nobody], 0)
    assert isinstance(down, CannotConnectError)
    assert "they are down" in str(down)
    refusing = explain(silence, [nobody, *entry.addresses()], 0)
    assert isinstance(refusing, AccessRefusedError)
    assert entry.addresses()[0] in str(refusing)


@pytest.mark.parametrize(
    ("complaint", "words"),
    [
        ("Peer X can't access this node. Probably, ...", "--behind-firewall"),
        ("listen tcp4: address already in use", "port 31337 is taken"),
        (
            "local time must be within 3 seconds  of others(local: 110.5, peer: 100.0)",
            re.escape(EXPLANATIONS[Cause.CLOCK_OFF].meaning) + ".* 10.5 s ahead of the run's",
        ),
    ],
)
def test_the_librarys_other_complaints_are_put_into_words(complaint: str, words: str) -> None:
    assert re.search(words, str(explain(RuntimeError(complaint), [], 31337)))
