"""Real DHTs on loopback: what becomes of records that are not what they say."""

import hashlib
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import hivemind
import pytest
from hivemind.optim.progress_tracker import GlobalTrainingProgress
from hivemind.utils import get_dht_time
from hivemind.utils.crypto import RSAPrivateKey

from tests.training.processes import wait_for
from tests.training.records.sealing import Forger, progress, subkey_of
from training.averaging.progress import CredibleTracker
from training.network.connection import Endpoint, Identity, Network
from training.records import orders
from training.records.orders import BanOrder, RollbackOrder, moderators_of
from training.records.owners import contributor_id, contributor_of, peer_id_of
from training.records.validator import refused_records
from training.run.runfile import RunFile

# hivemind runs in this process and in forks of it, and its own warnings are not ours to fix
pytestmark = [pytest.mark.swarm, pytest.mark.filterwarnings("ignore")]

ANSWER_SECONDS = 20.0
TARGET = 2048  # samples of a batch


@pytest.fixture(scope="module")
def networks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Network, Network]]:
    """Two peers of a run; the first is its entry point."""
    folder, local = tmp_path_factory.mktemp("records"), Endpoint("127.0.0.1")
    with ExitStack() as stack:
        first = Network("records", Identity.read(folder / "1"), (), local, may_be_alone=True)
        stack.callback(first.close)
        second = Network("records", Identity.read(folder / "2"), first.addresses(), local)
        stack.callback(second.close)
        yield first, second


@dataclass
class Attacker:
    """A node of the table that checks nothing, and signs what carries its key."""

    dht: hivemind.DHT
    key: RSAPrivateKey

    @property
    def tag(self) -> bytes:
        return subkey_of(self.key)

    def put(self, name: str, subkey: object, value: object, seconds: float = 20.0) -> None:
        """Hand a record to all nodes."""
        expires = get_dht_time() + seconds
        self.dht.store(f"records{name}", value, expires, subkey=subkey)


@pytest.fixture
def attacker(networks: tuple[Network, Network]) -> Iterator[Attacker]:
    key = RSAPrivateKey()
    node = hivemind.DHT(
        initial_peers=list(networks[0].addresses()),
        start=True,
        host_maddrs=["/ip4/127.0.0.1/tcp/0"],
        record_validators=[Forger(key)],
    )
    attacker = Attacker(node, key)
    yield attacker
    attacker.put("_progress", attacker.tag, None, 30.0)  # out of the next test's way
    node.shutdown()


def make_order(step: int) -> RollbackOrder:
    digest = hashlib.sha256(b"weights").hexdigest()
    return RollbackOrder(checkpoint=10, step=step, sha256=digest, time=get_dht_time())


def find_order(network: Network, moderators: frozenset[str]) -> RollbackOrder | None:
    return orders.find(network.dht, network.run, RollbackOrder, moderators, ANSWER_SECONDS)


def wait_for_order(network: Network, moderators: frozenset[str]) -> RollbackOrder:
    order = wait_for("the order", lambda: find_order(network, moderators))
    assert order is not None
    return order


def test_a_record_of_another_is_refused_and_counted(
    networks: tuple[Network, Network], attacker: Attacker
) -> None:
    victim, reader = networks
    before = refused_records()
    attacker.put("_orders", victim.subkey, make_order(10**6).model_dump())
    assert refused_records() > before
    assert find_order(reader, frozenset({str(victim.dht.peer_id)})) is None


def tracker_of(network: Network, step: int = 10) -> CredibleTracker:
    """A volunteer's look at the others' progress, after a step that it has just made."""
    tracker = CredibleTracker(network.dht, "records", TARGET, start=False, private_key=network.key)
    with tracker.pause_updates():
        tracker.update_epoch(step)
    return tracker


def look(tracker: CredibleTracker) -> GlobalTrainingProgress:
    found = tracker.dht.get("records_progress", latest=True)
    return tracker._parse_swarm_progress_data(found.value if found else None)


def wait_for_progress(tracker: CredibleTracker, peers: int) -> GlobalTrainingProgress:
    wait_for(f"{peers} peers", lambda: look(tracker).num_peers >= peers)
    return look(tracker)


def train(network: Network, **values: object) -> None:
    """Store the progress of an honest peer."""
    value = progress(network.key) | values
    network.dht.store("records_progress", value, get_dht_time() + 20, subkey=network.subkey)


def test_an_owner_named_twice_for_thirty_years_ends_no_reader(
    networks: tuple[Network, Network], attacker: Attacker
) -> None:
    _, reader = networks
    thirty_years = 30 * 365 * 86_400.0
    twice = attacker.tag + attacker.tag
    attacker.put("_progress", twice, progress(attacker.key), thirty_years)
    attacker.put("_orders", twice, make_order(10**6).model_dump(), thirty_years)
    tracker = tracker_of(reader)
    train(reader)
    assert wait_for_progress(tracker, 1).num_peers == 1
    assert find_order(reader, frozenset({str(attacker.dht.peer_id)})) is None


@pytest.mark.parametrize(
    "name", ["_state_averager.all_averagers", "_grad_averager.0b", "_grad_averager.0b01"]
)
def test_a_plain_value_does_not_keep_honest_records_out(
    networks: tuple[Network, Network], attacker: Attacker, name: str
) -> None:
    honest, reader = networks
    attacker.put(name, None, "mine", 30 * 365 * 86_400.0)
    value = 3 if name.endswith("averagers") else True
    subkey = honest.dht.peer_id.to_bytes()
    honest.dht.store(f"records{name}", value, get_dht_time() + 20, subkey=subkey)

    def records() -> Any:
        found = reader.dht.get(f"records{name}", latest=True)
        return found.value if found is not None and isinstance(found.value, dict) else {}

    wait_for("the honest record", lambda: subkey in records())
    assert records()[subkey].value == value
    assert list(records()) == [subkey]


def test_twenty_subkeys_of_one_key_are_one_peer(
    networks: tuple[Network, Network], attacker: Attacker
) -> None:
    _, reader = networks
    tracker = tracker_of(reader)
    train(reader)
    for number in range(20):
        claim = progress(attacker.key, epoch=10**6)
        attacker.put("_progress", attacker.tag + str(number).encode(), claim)
    attacker.put("_progress", attacker.tag, progress(attacker.key, samples_accumulated=0))
    seen = wait_for_progress(tracker, 2)
    assert (seen.num_peers, seen.epoch) == (2, 10)


@pytest.mark.parametrize(
    "claim",
    [{"samples_accumulated": TARGET}, {"samples_per_second": 1e12}, {"time": 0.0}],
    ids=["samples", "pace", "age"],
)
def test_one_liar_does_not_fill_the_batch(
    networks: tuple[Network, Network], attacker: Attacker, claim: dict[str, float]
) -> None:
    """At two samples a second each, three honest peers need a quarter of an hour for a batch."""
    first, second = networks
    trackers = tracker_of(first, 11), tracker_of(second, 11)
    honest = {"samples_accumulated": 1, "samples_per_second": 2.0, "epoch": 11}
    for network in networks:
        train(network, **honest)
    attacker.put("_progress", attacker.tag, progress(attacker.key, **(honest | claim)))
    for tracker in trackers:
        tracker.max_refresh_period = 0.5  # such a run is looked at often
        seen = wait_for_progress(tracker, 3)
        assert seen.samples_accumulated < TARGET / 4
        assert seen.eta_next_epoch > get_dht_time() + 60.0


def test_only_entry_points_of_the_run_file_give_orders(networks: tuple[Network, Network]) -> None:
    monitor, volunteer = networks
    moderators = moderators_of(RunFile("records", "tiny", initial_peers=monitor.addresses()))
    usurper = frozenset({peer_id_of(volunteer.subkey)})
    orders.publish(volunteer.dht, "records", volunteer.subkey, make_order(99))
    assert wait_for_order(monitor, usurper).step == 99  # it is there, and signed
    assert find_order(monitor, moderators) is None
    orders.publish(monitor.dht, "records", monitor.subkey, make_order(50))
    assert wait_for_order(volunteer, moderators).step == 50


def test_everybody_hears_who_is_banned(networks: tuple[Network, Network]) -> None:
    monitor, volunteer = networks
    moderators = moderators_of(RunFile("records", "tiny", initial_peers=monitor.addresses()))
    banned = BanOrder(contributors=[contributor_id(volunteer.subkey)], time=get_dht_time())
    orders.publish(monitor.dht, "records", monitor.subkey, banned)
    found = wait_for(
        "the ban", lambda: orders.find(volunteer.dht, "records", BanOrder, moderators, 10.0)
    )
    assert found.contributors == banned.contributors


def test_the_key_that_signs_is_the_key_that_libp2p_knows(networks: tuple[Network, Network]) -> None:
    for network in networks:
        assert peer_id_of(network.subkey) == str(network.dht.peer_id)
        assert contributor_id(network.subkey) == contributor_of(str(network.dht.peer_id))
    with pytest.raises(ValueError, match="not one owner's tag"):
        peer_id_of(b"no key")
