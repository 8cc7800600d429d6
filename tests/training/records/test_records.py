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
from training.records.orders import BanOrder, Order, RollbackOrder, moderators_of
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

    def put(self, name: str, subkey: object, value: object, seconds: float = 20.0) -> None:
        """Hand a record to all nodes."""
        expires = get_dht_time() + seconds
        self.dht.store(f"records{name}", value, expires, subkey=subkey)


@pytest.fixture(scope="module")
def attacker(networks: tuple[Network, Network]) -> Iterator[Attacker]:
    key = RSAPrivateKey()
    node = hivemind.DHT(
        initial_peers=list(networks[0].addresses()),
        start=True,
        host_maddrs=["/ip4/127.0.0.1/tcp/0"],
        record_validators=[Forger(key)],
    )
    yield Attacker(node, key)
    node.shutdown()


def make_order(step: int) -> RollbackOrder:
    digest = hashlib.sha256(b"weights").hexdigest()
    return RollbackOrder(checkpoint=10, step=step, sha256=digest, time=get_dht_time())


def find(network: Network, kind: type[Order], moderators: frozenset[str]) -> Order | None:
    return orders.find(network.dht, network.run, kind, moderators, ANSWER_SECONDS)


def test_a_record_of_another_is_refused_and_counted(
    networks: tuple[Network, Network], attacker: Attacker
) -> None:
    victim, reader = networks
    before = refused_records()
    attacker.put("_orders", victim.subkey, make_order(10**6).model_dump())
    assert refused_records() > before
    assert find(reader, RollbackOrder, frozenset({str(victim.dht.peer_id)})) is None


def test_a_plain_value_does_not_keep_honest_records_out(
    networks: tuple[Network, Network], attacker: Attacker
) -> None:
    honest, reader = networks
    name, subkey = "records_state_averager.all_averagers", honest.dht.peer_id.to_bytes()
    attacker.put("_state_averager.all_averagers", None, "mine", 30 * 365 * 86_400.0)
    honest.dht.store(name, 3, get_dht_time() + 20, subkey=subkey)

    def records() -> Any:
        found = reader.dht.get(name, latest=True)
        return found.value if found is not None and isinstance(found.value, dict) else {}

    wait_for("the honest record", lambda: subkey in records())
    assert records()[subkey].value == 3
    assert list(records()) == [subkey]


def test_one_liar_is_one_peer_and_does_not_fill_the_batch(
    networks: tuple[Network, Network], attacker: Attacker
) -> None:
    """At two samples a second each, three honest peers need a quarter of an hour for a batch.

    The liar claims a whole batch, any pace and to have begun long ago; each alone would fill it.
    """
    trackers = [
        CredibleTracker(n.dht, "records", TARGET, start=False, private_key=n.key) for n in networks
    ]
    honest = {"samples_accumulated": 1, "samples_per_second": 2.0, "epoch": 11}
    for network in networks:
        own = progress(network.key, **honest)
        network.dht.store("records_progress", own, get_dht_time() + 20, subkey=network.subkey)
    tag = subkey_of(attacker.key)
    for number in range(20):
        ahead = progress(attacker.key, epoch=10**6)
        attacker.put("_progress", tag + str(number).encode(), ahead)
    claim = {"samples_accumulated": TARGET, "samples_per_second": 1e12, "time": 0.0}
    attacker.put("_progress", tag, progress(attacker.key, **(honest | claim)))
    for tracker in trackers:
        with tracker.pause_updates():
            tracker.update_epoch(11)  # a step that it has just made
        tracker.max_refresh_period = 0.5  # such a run is looked at often

        def look(tracker: CredibleTracker = tracker) -> GlobalTrainingProgress | None:
            found = tracker.dht.get("records_progress", latest=True)
            seen = tracker._parse_swarm_progress_data(found.value if found else None)
            return seen if seen.num_peers >= 3 else None

        seen = wait_for("three peers", look)
        assert (seen.num_peers, seen.epoch) == (3, 11)
        assert seen.samples_accumulated < TARGET / 4
        assert seen.eta_next_epoch > get_dht_time() + 60.0


def test_only_entry_points_of_the_run_file_give_orders(networks: tuple[Network, Network]) -> None:
    monitor, volunteer = networks
    moderators = moderators_of(RunFile("records", "tiny", initial_peers=monitor.addresses()))
    usurper = frozenset({peer_id_of(volunteer.subkey)})
    orders.publish(volunteer.dht, "records", volunteer.subkey, make_order(99))
    order = wait_for("the order", lambda: find(monitor, RollbackOrder, usurper))
    assert order.step == 99  # it is there, and signed
    assert find(monitor, RollbackOrder, moderators) is None
    banned = BanOrder(contributors=[contributor_id(volunteer.subkey)], time=get_dht_time())
    for given in (make_order(50), banned):
        orders.publish(monitor.dht, "records", monitor.subkey, given)
        kind = type(given)
        assert wait_for("the order", lambda k=kind: find(volunteer, k, moderators)) == given


def test_the_key_that_signs_is_the_key_that_libp2p_knows(networks: tuple[Network, Network]) -> None:
    for network in networks:
        assert peer_id_of(network.subkey) == str(network.dht.peer_id)
        assert contributor_id(network.subkey) == contributor_of(str(network.dht.peer_id))
    with pytest.raises(ValueError, match="not one owner's tag"):
        peer_id_of(b"no key")
