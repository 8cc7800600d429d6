"""Files from peer to peer: a volunteer that others can reach hands out what it has, by SHA-256.

libp2p proves that the peer at the other end has the key that its address names. What it sends is
checked by its sum, so it need not be trusted. The one who asks sends 32 bytes; the answer is the
length of the file in 8 bytes, big-endian, 0 for none, and the file.
"""

import asyncio
import contextlib
import hashlib
import ipaddress
import logging
import math
import struct
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, TypeVar

from hivemind.p2p import P2P, PeerID
from hivemind.p2p.p2p_daemon_bindings.utils import P2PDaemonError, P2PHandlerError
from hivemind.utils.multiaddr import Multiaddr

from training.network.connection import Endpoint

logger = logging.getLogger(__name__)
T = TypeVar("T")

PROTOCOL = "training-transformers-together/files/1"
START_SECONDS = 30.0
ANSWER_SECONDS = 3.0  # without any byte; a peer that is gone costs no more
REST_SECONDS = 300.0  # of a peer that did not answer
SLOWEST = 2**16  # bytes in a second of a file, beside that
MOST_AT_ONCE = 8  # files that are handed out
_DIGEST_BYTES, _CHUNK = 32, 2**16
_LENGTH = struct.Struct(">Q")
_FAILURES = (P2PDaemonError, P2PHandlerError, OSError, EOFError, TimeoutError, ValueError)


class PeerFiles:
    """A peer's daemon for files, from any thread.

    One that others can reach starts at once; otherwise it starts when it is first needed.

    Args:
        identity: path of the peer's key.
        endpoint: with a port or addresses to announce where others can reach this peer.
        find: gives a file by its SHA-256.
        say: told if the daemon does not start.

    Attributes:
        addresses: multiaddresses for others; empty where they cannot reach this peer.
        bytes_sent: of files that others took.
    """

    def __init__(
        self,
        identity: Path,
        endpoint: Endpoint,
        find: Callable[[str], bytes | None],
        say: Callable[[str], None] = lambda _text: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.addresses: tuple[str, ...] = ()
        self.bytes_sent = 0
        self._identity, self._endpoint, self._find = identity, endpoint, find
        self._say, self._clock = say, clock
        self._handing_out = 0
        self._rests: dict[str, float] = {}  # until when, by peer
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._p2p: P2P | None = None
        self._has_failed = False
        if endpoint.reachable and (endpoint.port or endpoint.announce):
            self._start_once(listens=True)

    def fetch(self, addresses: Sequence[str], sha256: str, most_bytes: int) -> bytes | None:
        """The file with that sum from the peer at some addresses, None where that fails.

        Args:
            addresses: of one peer; those that are not for the outside world are left out.
        """
        routes = [address for address in addresses if self._may_dial(address)]
        if not routes:
            return None
        peer = routes[0].rpartition("/")[2]
        if self._clock() < self._rests.get(peer, -math.inf) or not self._start_once(listens=False):
            return None
        try:
            return self._run(self._fetch(peer, routes, sha256, most_bytes))
        except _FAILURES as error:
            logger.info("no file from %s: %r", peer, error)
            self._rests[peer] = self._clock() + REST_SECONDS
            return None

    def close(self) -> None:
        """End the daemon."""
        with self._lock:
            loop, p2p, self._loop, self._p2p = self._loop, self._p2p, None, None
            self._has_failed = True
        if loop is None:
            return
        if p2p is not None:
            with contextlib.suppress(*_FAILURES):
                asyncio.run_coroutine_threadsafe(_end(p2p), loop).result(ANSWER_SECONDS)
        loop.call_soon_threadsafe(loop.stop)
        self._thread.join(ANSWER_SECONDS)
        if not self._thread.is_alive():
            loop.close()

    def _start_once(self, listens: bool) -> bool:
        """Start the daemon unless it runs; False if it does not start."""
        with self._lock:
            if self._p2p is not None or self._has_failed:
                return self._p2p is not None
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
            self._thread.start()
            start = asyncio.run_coroutine_threadsafe(self._start(listens), self._loop)
            try:
                self._p2p = start.result(START_SECONDS)
            except _FAILURES as error:
                self._has_failed = True
                self._say(f"files come from the run's host alone: no libp2p here ({error!r})")
            return self._p2p is not None

    async def _start(self, listens: bool) -> P2P:
        endpoint = self._endpoint
        version = 6 if ":" in endpoint.host else 4
        p2p = await P2P.create(
            dht_mode="client",
            host_maddrs=[f"/ip{version}/{endpoint.host}/tcp/{endpoint.port}"] if listens else None,
            announce_maddrs=list(endpoint.announce) or None if listens else None,
            identity_path=str(self._identity),
            check_if_identity_free=False,
            no_listen=not listens,
            use_relay=False,
            auto_nat=False,
            startup_timeout=START_SECONDS / 2,
        )
        # Without such a handler the daemon would end for want of use, and not with this process.
        await p2p._client.add_unary_handler(f"{PROTOCOL}/alive", _answer_nothing)
        if listens:
            await p2p.add_binary_stream_handler(PROTOCOL, self._hand_out)
            seen = [str(address) for address in await p2p.get_visible_maddrs(latest=True)]
            self.addresses = tuple(filter(self._may_announce, seen))[:4]
        return p2p

    def _may_announce(self, address: str) -> bool:
        """True for what others can dial: the outside world, or the network that was asked for."""
        found = _ip_of(address)
        if found is None or self._endpoint.announce:
            return found is not None
        return found.is_global if self._is_anywhere() else str(found) == self._endpoint.host

    def _may_dial(self, address: str) -> bool:
        """True unless a stranger's address leads into our own network."""
        found = _ip_of(address)
        return found is not None and (found.is_global or not self._is_anywhere())

    def _is_anywhere(self) -> bool:
        return self._endpoint.host in ("0.0.0.0", "::")

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        loop = self._loop
        if loop is None:
            work.close()
            raise ConnectionError("the daemon has ended")
        return asyncio.run_coroutine_threadsafe(work, loop).result()

    async def _hand_out(
        self, _info: object, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        with contextlib.closing(writer), contextlib.suppress(*_FAILURES):
            wanted = await _in_time(reader.readexactly(_DIGEST_BYTES))
            content = self._find(wanted.hex()) if self._handing_out < MOST_AT_ONCE else None
            content = content or b""
            self._handing_out += 1
            try:
                writer.write(_LENGTH.pack(len(content)))
                for start in range(0, len(content), _CHUNK):
                    writer.write(content[start : start + _CHUNK])
                    await _in_time(writer.drain(), 10 * ANSWER_SECONDS)
                self.bytes_sent += len(content)
            finally:
                self._handing_out -= 1

    async def _fetch(
        self, peer: str, routes: Sequence[str], sha256: str, most_bytes: int
    ) -> bytes | None:
        assert self._p2p is not None
        identity = PeerID.from_base58(peer)
        dialed = [Multiaddr(route).decapsulate(Multiaddr(f"/p2p/{peer}")) for route in routes]
        await _in_time(self._p2p._client.connect(identity, dialed))
        _, reader, writer = await _in_time(self._p2p.call_binary_stream_handler(identity, PROTOCOL))
        with contextlib.closing(writer):
            writer.write(bytes.fromhex(sha256))
            await _in_time(writer.drain())
            (length,) = _LENGTH.unpack(await _in_time(reader.readexactly(_LENGTH.size)))
            if not length:
                return None
            if length > most_bytes:
                raise ValueError(f"{length:,} bytes are too many")
            seconds = ANSWER_SECONDS + length / SLOWEST
            content = await asyncio.wait_for(_read(reader, length), seconds)
        if hashlib.sha256(content).hexdigest() != sha256:
            raise ValueError("another file: its SHA-256 differs")
        return content


async def _end(p2p: P2P) -> None:
    child = p2p._child
    await p2p.shutdown()
    if child is not None:
        child._transport.close()  # of its output, which the library leaves open
        await asyncio.sleep(0)


async def _answer_nothing(_request: bytes, _caller: PeerID) -> bytes:
    return b""


async def _read(reader: asyncio.StreamReader, length: int) -> bytes:
    content = bytearray()
    while len(content) < length:
        piece = await _in_time(reader.read(min(_CHUNK, length - len(content))))
        if not piece:
            raise EOFError("it ended too soon")
        content += piece
    return bytes(content)


async def _in_time(work: Coroutine[Any, Any, T], seconds: float = ANSWER_SECONDS) -> T:
    return await asyncio.wait_for(work, seconds)


def _ip_of(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The IP address in a multiaddress of the form /ip4/IP/tcp/PORT/p2p/IDENTITY."""
    parts = address.split("/")
    if len(parts) != 7 or parts[1] not in ("ip4", "ip6") or parts[3::2] != ["tcp", "p2p"]:
        return None
    try:
        return ipaddress.ip_address(parts[2])
    except ValueError:
        return None
