"""Finding the others: identity, entry points, and what to do when the line goes down."""

import asyncio
import contextlib
import fcntl
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import hivemind
from hivemind.dht import DHTNode
from hivemind.dht.crypto import RSASignatureValidator
from hivemind.dht.protocol import ValidationError
from hivemind.p2p import P2P, PeerID
from hivemind.p2p.p2p_daemon_bindings.utils import P2PDaemonError, P2PHandlerError
from hivemind.proto import crypto_pb2
from hivemind.utils.crypto import RSAPrivateKey
from hivemind.utils.multiaddr import Multiaddr

from calculator.errors import InputError
from training.access.authorizer import GrantAuthorizer
from training.access.grants import Grant
from training.access.membership import Membership
from training.network import tasks
from training.network.trouble import CannotConnectError, explain
from training.records import directory
from training.records.owners import BanList
from training.records.validator import RecordValidator, drop_invalid_entries

__all__ = ["CannotConnectError", "Endpoint", "Identity", "Network", "alone_in"]

START_SECONDS = 60.0
ANSWER_SECONDS = 10.0
ANNOUNCE_SECONDS = 30.0  # between two announcements of the same grant


@dataclass(frozen=True)
class Endpoint:
    """Addresses on which a peer listens.

    Attributes:
        host: address to listen on: 127.0.0.1 for this machine alone, 0.0.0.0 for all.
        port: TCP port, 0 for any.
        announce: multiaddresses to tell others where our own cannot be reached.
        reachable: False behind a firewall: this peer then calls others and is never called.
    """

    host: str = "0.0.0.0"
    port: int = 0
    announce: tuple[str, ...] = ()
    reachable: bool = True


@dataclass(frozen=True)
class Identity:
    """The key that names a peer in the network and signs what it reports.

    A volunteer who comes back with the same key is recognised as the same.
    """

    path: Path
    key: RSAPrivateKey

    @classmethod
    def read(cls, folder: Path) -> "Identity":
        """Read the key in a peer's folder; make one where there is none."""
        path = folder / "identity.key"
        if not path.exists():
            folder.mkdir(parents=True, exist_ok=True)
            P2P.generate_identity(str(path))
        protobuf = crypto_pb2.PrivateKey.FromString(path.read_bytes())
        key = RSAPrivateKey()
        key.__setstate__({"_private_key": protobuf.data})
        return cls(path, key)

    @property
    def subkey(self) -> bytes:
        """The subkey of the peer's records: it carries the public key."""
        subkey: bytes = RSASignatureValidator(self.key).local_public_key
        return subkey

    @property
    def public_key(self) -> str:
        """The public key as the run's authority wants it: ``ssh-rsa AAAA...``."""
        text: str = self.key.get_public_key().to_bytes().decode()
        return text


class Network:
    """A membership in a run's network.

    Args:
        run: the run's name. identity: who we are.
        entry_points: multiaddresses of peers to begin with; with none, others come to us.
        may_be_alone: do not insist that an entry point answers.
        membership: our access, where the run has an authority: then all calls of the DHT are
            signed, and those of peers without access are refused.

    Raises:
        CannotConnectError: when no entry point answers.
        AccessRefusedError: when they can be reached but do not admit us, or our clock is off.
    """

    def __init__(
        self,
        run: str,
        identity: Identity,
        entry_points: tuple[str, ...],
        endpoint: Endpoint,
        may_be_alone: bool = False,
        membership: Membership | None = None,
    ) -> None:
        self.run, self.entry_points, self.membership = run, entry_points, membership
        self.key, self.subkey = identity.key, identity.subkey
        self.bans = BanList(identity.path.parent)
        self._announced = -math.inf
        tasks.keep_tasks()
        drop_invalid_entries()
        self.dht = self._open(identity.path, endpoint, [] if may_be_alone else list(entry_points))
        if membership is not None:
            membership.listeners.append(self._announce)
            self._keep_announced(membership)

    def _open(self, identity: Path, endpoint: Endpoint, initial_peers: list[str]) -> hivemind.DHT:
        with self.forking():
            dht = hivemind.DHT(
                initial_peers=initial_peers or None,
                start=True,
                await_ready=False,
                client_mode=not endpoint.reachable,
                host_maddrs=[f"/ip4/{endpoint.host}/tcp/{endpoint.port}"],
                announce_maddrs=list(endpoint.announce) or None,
                identity_path=str(identity),
                check_if_identity_free=False,
                startup_timeout=START_SECONDS / 2,
                record_validators=[
                    RecordValidator(self.run, self.key, self.membership, bans=self.bans)
                ],
                authorizer=GrantAuthorizer(self.key, self.membership) if self.membership else None,
            )
        try:
            dht.wait_until_ready(START_SECONDS)
        except (P2PDaemonError, RuntimeError, TimeoutError, ValidationError) as error:
            dht.shutdown()
            dht.kill()  # where it inherited a handler of SIGTERM, its shutdown leaves it running
            raise explain(error, initial_peers, endpoint.port) from error
        return dht

    @contextlib.contextmanager
    def forking(self) -> Iterator[None]:
        """Keep the renewal of access still while the library starts a process of its own."""
        with self.membership.renewing if self.membership else contextlib.nullcontext():
            yield

    def _announce(self, grant: Grant) -> None:
        self._announced = time.monotonic()
        directory.announce(self.dht, self.subkey, grant)

    def _keep_announced(self, membership: Membership) -> None:
        """Publish our grant now and then, because peers that stored it may have left."""
        if time.monotonic() - self._announced < ANNOUNCE_SECONDS:
            return
        admission = membership.read()
        if admission is not None:
            self._announce(admission.grant)

    def addresses(self) -> tuple[str, ...]:
        """Multiaddresses under which others can enter the run through this peer."""
        return tuple(str(address) for address in self.dht.get_visible_maddrs())

    def connections(self) -> tuple[str, ...]:
        """Multiaddresses of the peers we are connected with now; empty when the line is down.

        Raises:
            TimeoutError: when the network daemon does not answer.
            OSError: when there is none, or none any more.
        """
        future = self.dht.run_coroutine(_list_peers, return_future=True)
        try:
            found: tuple[str, ...] = future.result(ANSWER_SECONDS)
        except EOFError as error:
            raise ConnectionError("the network daemon ended during a call") from error
        return found

    def keep_entry_points(self) -> bool:
        """See to it that an entry point is connected; False when nobody at all is.

        Peers who know each other but no entry point would not be found by newcomers, who would
        then make a second run of the same name. Whose access has expired is refused by all.
        """
        if self.membership is not None:
            if self.membership.has_expired:
                return False
            self._keep_announced(self.membership)
        try:
            connections = self.connections()
        except TimeoutError:
            return True  # a daemon too busy to answer is busy with others
        connected = {Multiaddr(address)["p2p"] for address in connections}
        entry_points = {Multiaddr(address)["p2p"] for address in self.entry_points}
        if not connected & entry_points and self.dial(self.entry_points):
            self._announced = -math.inf  # they may have lost what we told them
            return True
        return bool(connected) or not entry_points

    def dial(self, addresses: tuple[str, ...]) -> int:
        """Try to reach peers again, after an outage of ours or theirs; says how many answered."""
        coroutine = partial(_dial, addresses=addresses)
        future = self.dht.run_coroutine(coroutine, return_future=True)
        try:
            answered: int = future.result(ANSWER_SECONDS)
        except TimeoutError:
            return 0
        return answered

    def close(self) -> None:
        """Leave the network and end its daemon."""
        self.dht.shutdown()


async def _list_peers(_dht: hivemind.DHT, node: DHTNode) -> tuple[str, ...]:
    peers = await node.p2p.list_peers()
    return tuple(f"{peer.addrs[0]}/p2p/{peer.peer_id}" for peer in peers if peer.addrs)


async def _dial(_dht: hivemind.DHT, node: DHTNode, addresses: tuple[str, ...]) -> int:
    return sum(await asyncio.gather(*(_dial_one(node, Multiaddr(one)) for one in addresses)))


async def _dial_one(node: DHTNode, address: Multiaddr) -> bool:
    peer = PeerID.from_base58(address["p2p"])
    if peer == node.peer_id:
        return False
    try:
        route = address.decapsulate(Multiaddr(f"/p2p/{peer}"))
        await asyncio.wait_for(node.p2p._client.connect(peer, [route]), ANSWER_SECONDS / 2)
        return await node.protocol.call_ping(peer) is not None
    except (P2PDaemonError, P2PHandlerError, OSError, EOFError, TimeoutError, ValueError):
        return False  # it may answer later


@contextlib.contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Hold a peer's folder: two processes with one identity would disturb each other.

    Raises:
        InputError: when another process holds it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            rule = "must not be in use: another process is running in it"
            raise InputError("folder", folder, rule) from error
        yield
