"""The network of a run with an authority: real DHT nodes, each a process with its daemon."""

import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from multiprocessing import active_children
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hivemind.dht.routing import DHTID
from hivemind.dht.validation import DHTRecord
from hivemind.utils import MSGPackSerializer, get_dht_time

from tests.training.processes import wait_for
from training.access import grants
from training.access.causes import AccessRefusedError, Cause
from training.access.client import Admission
from training.access.grants import Grant
from training.access.membership import Membership
from training.authority.keys import read_key, sign_own
from training.network.connection import CannotConnectError, Endpoint, Identity, Network
from training.network.trouble import explain
from training.records.directory import Directory, announce
from training.records.validator import RecordValidator
from training.rehearsal.command import free_port

pytestmark = [
    pytest.mark.swarm,
    pytest.mark.filterwarnings("ignore:path is deprecated:DeprecationWarning"),  # in hivemind
]

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


def test_whoever_has_no_grant_is_refused_and_told_what_it_means(
    entry: Network, tmp_path: Path
) -> None:
    with pytest.raises(AccessRefusedError) as caught:
        Network(RUN, Identity.read(tmp_path), entry.addresses(), HERE)
    assert caught.value.cause is Cause.NETWORK_REFUSED
    assert "admits no one without its grant" in str(caught.value)
    assert "initial_peers" not in str(caught.value)


def test_a_refused_network_leaves_no_process(entry: Network, tmp_path: Path) -> None:
    before = set(active_children())
    # whoever forks a process may handle SIGTERM, and the process has its handler
    handler = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        with pytest.raises(AccessRefusedError):
            Network(RUN, Identity.read(tmp_path), entry.addresses(), HERE)
    finally:
        signal.signal(signal.SIGTERM, handler)
    wait_for("the end of its process", lambda: set(active_children()) <= before, 10.0)


@pytest.mark.parametrize("how", ["forged", "stolen", "expired"])
def test_a_bad_grant_is_refused(entry: Network, folder: Path, tmp_path: Path, how: str) -> None:
    identity, victim = Identity.read(tmp_path), Identity.read(tmp_path / "victim")
    authority = read_key(folder)
    admission, named = {
        "forged": (sign(Ed25519PrivateKey.generate(), identity.public_key, 600), identity),
        "stolen": (sign(authority, victim.public_key, 600), victim),
        "expired": (sign(authority, identity.public_key, -5), identity),
    }[how]
    membership = Careless(tmp_path, RUN, named.public_key)
    membership.write(admission)
    with pytest.raises(AccessRefusedError) as caught:
        Network(RUN, identity, entry.addresses(), HERE, membership=membership)
    assert caught.value.cause is Cause.NETWORK_REFUSED


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
        announced = announce(network.dht, network.subkey, membership.current().grant)
        assert announced.result(30)
    finally:
        network.close()
    _check_announcement(entry, membership)


def _check_announcement(entry: Network, membership: Membership) -> None:
    """The others keep what a member has announced, also when it is gone."""
    assert entry.membership is not None
    membership_of_all = entry.membership
    directory = Directory(entry.dht, membership_of_all, entry.bans)
    peer_id = membership.current().grant.peer_id

    def found() -> Any:
        known = directory._read(membership_of_all, entry.dht.get(f"{RUN}_access", latest=True))
        return known.get(peer_id)

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


def test_the_librarys_other_complaints_are_put_into_words() -> None:
    clock = explain(
        RuntimeError("local time must be within 3 seconds  of others(local: 110.5, peer: 100.0)"),
        [],
        0,
    )
    assert isinstance(clock, AccessRefusedError)
    assert clock.cause is Cause.CLOCK_OFF
    assert "10.5 s ahead of the run's" in str(clock)
    wall = explain(RuntimeError("Peer X can't access this node. Probably, ..."), [], 0)
    assert "--behind-firewall" in str(wall)
    taken = explain(RuntimeError("listen tcp4: address already in use"), [], 31337)
    assert "port 31337 is taken" in str(taken)


def test_records_of_made_up_keys_are_refused_where_there_is_an_authority(folder: Path) -> None:
    """One account has one key: whoever makes twenty is still one peer."""
    member, made_up = Identity.read(folder / "member"), Identity.read(folder / "made-up")
    memberships = {}
    for identity in (member, made_up):
        membership = Membership(identity.path.parent, RUN, identity.public_key)
        membership.write(sign_own(folder, RUN, identity.public_key))
        memberships[identity] = membership
    check = RecordValidator(RUN, member.key, memberships[member])
    key = DHTID.generate(f"{RUN}_progress").to_bytes()
    for identity in (member, made_up):
        subkey = MSGPackSerializer.dumps(identity.subkey)
        record = DHTRecord(key, subkey, MSGPackSerializer.dumps(None), get_dht_time() + 30)
        by_right = RecordValidator(RUN, identity.key, memberships[identity])
        assert check.validate(replace(record, value=by_right.sign_value(record)))
    borrowed = RecordValidator(RUN, made_up.key, memberships[member])
    assert not check.validate(replace(record, value=borrowed.sign_value(record)))
    without = RecordValidator(RUN, made_up.key)
    assert not check.validate(replace(record, value=without.sign_value(record)))
