"""Real DHTs on loopback: what becomes of records that are not what they say."""

import hashlib
import time
from collections.abc import Iterator
from contextlib import ExitStack

import hivemind
import pytest
from hivemind.utils import get_dht_time

from training import metrics, orders
from training.contribution import Contribution
from training.live import PeerState
from training.network import Endpoint, Identity, Network
from training.orders import RollbackOrder, moderators_of
from training.runfile import RunFile
from training.subkeys import contributor_id, contributor_of, peer_id_of

# hivemind runs in this process and in forks of it, and its own warnings are not ours to mend
pytestmark = [pytest.mark.swarm, pytest.mark.filterwarnings("ignore")]

ANSWER_SECONDS = 20.0


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


def make_order(step: int) -> RollbackOrder:
    digest = hashlib.sha256(b"weights").hexdigest()
    return RollbackOrder(checkpoint=10, step=step, sha256=digest, time=get_dht_time())


def find_order(network: Network, moderators: frozenset[str]) -> RollbackOrder | None:
    return orders.find(network.dht, network.run, moderators, ANSWER_SECONDS)


def wait_for_order(network: Network, moderators: frozenset[str]) -> RollbackOrder:
    deadline = time.monotonic() + ANSWER_SECONDS
    while (order := find_order(network, moderators)) is None:
        assert time.monotonic() < deadline, "the order did not arrive"
        time.sleep(0.2)
    return order


def test_a_record_of_another_is_refused_and_counted(networks: tuple[Network, Network]) -> None:
    victim, reader = networks
    forger = hivemind.DHT(  # checks and signs nothing
        initial_peers=list(victim.addresses()), start=True, host_maddrs=["/ip4/127.0.0.1/tcp/0"]
    )
    before = metrics.refused_records()
    contribution = Contribution("mallory as alice")
    contribution.samples = 10**6
    try:
        forger.store(
            key="records_metrics",
            subkey=victim.subkey,
            value=contribution.report(PeerState.TRAINING, 1, 1.0).dict(),
            expiration_time=get_dht_time() + 300,
        )
        assert metrics.refused_records() > before
        assert metrics.collect(reader.dht, "records", ANSWER_SECONDS) == {}
    finally:
        forger.shutdown()


def test_only_the_entry_points_of_the_run_file_give_orders(
    networks: tuple[Network, Network],
) -> None:
    monitor, volunteer = networks
    moderators = moderators_of(RunFile("records", "tiny", initial_peers=monitor.addresses()))
    usurper = frozenset({peer_id_of(volunteer.subkey)})
    orders.publish(volunteer.dht, "records", volunteer.subkey, make_order(99))
    assert wait_for_order(monitor, usurper).step == 99  # it is there, and signed
    assert find_order(monitor, moderators) is None
    orders.publish(monitor.dht, "records", monitor.subkey, make_order(50))
    assert wait_for_order(volunteer, moderators).step == 50


def test_the_key_that_signs_is_the_key_that_libp2p_knows(
    networks: tuple[Network, Network],
) -> None:
    for network in networks:
        assert peer_id_of(network.subkey) == str(network.dht.peer_id)
        assert contributor_id(network.subkey) == contributor_of(str(network.dht.peer_id))
    with pytest.raises(ValueError, match="0 public keys"):
        peer_id_of(b"no key")
