"""training/network/peer_files: files between real processes by libp2p; one of them is killed."""

import hashlib
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.training.network import offering
from tests.training.sparse.clocks import Clock
from training.network.connection import Endpoint, Identity
from training.network.peer_files import ANSWER_SECONDS, REST_SECONDS, PeerFiles

pytestmark = [
    pytest.mark.swarm,
    # The library finds its daemon in a way that will change.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

CONTENT = bytes(range(256)) * 14_000  # 3.6 MB, as an update of the paper's model
SUM = hashlib.sha256(CONTENT).hexdigest()
LIE = "1" * 64  # the same file is handed out under this name
HERE = Endpoint("127.0.0.1", reachable=False)


@dataclass
class Offer:
    """A process that hands out the file."""

    process: "subprocess.Popen[str]"
    addresses: list[str]


@pytest.fixture
def offer(tmp_path: Path) -> Iterator[Offer]:
    path = tmp_path / LIE
    path.write_bytes(CONTENT)
    command = [sys.executable, offering.__file__, str(tmp_path / "offering"), str(path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    yield Offer(process, process.stdout.readline().split())
    process.kill()
    process.communicate()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def taker(tmp_path: Path, clock: Clock) -> Iterator[PeerFiles]:
    identity = Identity.read(tmp_path / "taking")
    files = PeerFiles(identity.path, HERE, lambda _sha256: None, clock=clock)
    yield files
    files.close()


def test_a_file_is_taken_from_a_peer_until_that_is_gone(
    offer: Offer, taker: PeerFiles, clock: Clock
) -> None:
    assert len(offer.addresses) == 1
    assert taker.addresses == ()
    assert taker.fetch(offer.addresses, SUM, len(CONTENT)) == CONTENT
    assert taker.fetch(offer.addresses, "0" * 64, 100) is None, "it has no such file"
    assert taker.fetch(offer.addresses, SUM, len(CONTENT)) == CONTENT, "and is asked again"
    assert taker.fetch(offer.addresses, LIE, len(CONTENT)) is None, "it sends another one"
    assert taker.fetch(offer.addresses, SUM, len(CONTENT)) is None, (
        "so it is left alone for a while"
    )
    clock.now += REST_SECONDS
    assert taker.fetch(offer.addresses, SUM, len(CONTENT) - 1) is None, "too long"
    clock.now += REST_SECONDS
    assert taker.fetch(offer.addresses, SUM, len(CONTENT)) == CONTENT
    offer.process.kill()
    begun = time.monotonic()
    assert taker.fetch(offer.addresses, SUM, len(CONTENT)) is None
    assert time.monotonic() - begun < 3 * ANSWER_SECONDS
    begun = time.monotonic()
    assert taker.fetch(offer.addresses, SUM, len(CONTENT)) is None
    assert time.monotonic() - begun < 0.1, "nobody waits for it twice"


def test_a_stranger_is_not_dialed_in_our_own_network(tmp_path: Path) -> None:
    """It would need a daemon, which would make this slow: none starts."""
    identity = Identity.read(tmp_path)
    said: list[str] = []
    files = PeerFiles(identity.path, Endpoint(), lambda _sha256: None, said.append)
    peer = "QmPcnCuRmfR7qcT2M6YMxqP7jFzo2K3uNYUkp346TFhLgT"
    for address in (
        f"/ip4/127.0.0.1/tcp/80/p2p/{peer}",
        f"/ip4/192.168.1.1/tcp/80/p2p/{peer}",
        f"/ip6/fe80::1/tcp/80/p2p/{peer}",
        f"/dns4/router.local/tcp/80/p2p/{peer}",
        f"/ip4/93.184.216.34/udp/80/p2p/{peer}",
        "",
    ):
        assert files.fetch([address], SUM, 10) is None, address
    assert files._p2p is None
    assert files._may_dial(f"/ip4/93.184.216.34/tcp/80/p2p/{peer}")
    assert files._may_announce(f"/ip4/93.184.216.34/tcp/80/p2p/{peer}")
    assert not files._may_announce(f"/ip4/10.0.0.2/tcp/80/p2p/{peer}")
    files.close()


def test_a_daemon_that_does_not_start_is_said_and_done_without(tmp_path: Path) -> None:
    elsewhere = "203.0.113.5"  # no address of this machine
    command = [sys.executable, offering.__file__, str(tmp_path), str(tmp_path / LIE), elsewhere]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("files come from the run's host alone")
        assert process.stdout.readline() == "\n", "there is no address"
        process.kill()
