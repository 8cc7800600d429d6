"""Reachability of a machine: the monitor tries to connect to it when its doctor asks.

The monitor dials nothing but the address that the question itself comes from, so that nobody can
make it knock at other people's machines; it tells only whether the words it was told to expect
were there; and it tries a few times a minute for each address.
"""

import asyncio
import math
from enum import StrEnum

import hivemind
from google.protobuf.json_format import MessageToDict  # type: ignore[import-untyped]
from google.protobuf.struct_pb2 import Struct  # type: ignore[import-untyped]
from hivemind.dht import DHTNode
from hivemind.p2p import P2P, P2PContext, PeerID, ServicerBase
from hivemind.utils import get_dht_time

from training.access.limits import Buckets, Rate

DIAL_SECONDS = 4.0
START_SECONDS = 10.0
LONGEST_WORD = 64
TRIES = Rate(burst=6, per_second=0.1)  # for one address
TRIES_OF_ALL = Rate(burst=60, per_second=1.0)


class Outcome(StrEnum):
    """Results of the attempt to connect."""

    REACHED = "reached"
    REFUSED = "refused"  # the machine answers, the port does not
    NO_ANSWER = "no-answer"  # a firewall or a router swallows the attempt
    SOMEBODY_ELSE = "somebody-else"  # another program or machine answered
    NO_ADDRESS = "no-address"  # the question came through a relay
    BUSY = "busy"  # too many questions
    NOT_ASKED = "not-asked"  # port 0: only the time was wanted
    BAD_REQUEST = "bad-request"


class ReachabilityServicer(ServicerBase):
    """Answers those who ask whether they can be reached.

    The question has a `port` and a `word`, which whoever listens there sends to each caller; the
    answer has the `outcome`, the address that the question was `seen_as`, and our `time`.
    """

    def __init__(self, p2p: P2P) -> None:
        self.p2p = p2p
        self._each, self._all = Buckets(TRIES), Buckets(TRIES_OF_ALL)

    async def rpc_connect_back(self, request: Struct, context: P2PContext) -> Struct:
        """Try to connect to the asking machine."""
        address = await self._address_of(context.remote_id)
        outcome = await self._try(MessageToDict(request), address)
        answer = Struct()
        answer.update(
            {"outcome": outcome.value, "seen_as": address or "", "time": float(get_dht_time())}
        )
        return answer

    async def _try(self, request: dict[str, object], address: str | None) -> Outcome:
        port, word = request.get("port"), request.get("word")
        if not (isinstance(port, float) and math.isfinite(port) and 0 <= port < 2**16):
            return Outcome.BAD_REQUEST
        if not (isinstance(word, str) and word.isascii() and len(word) <= LONGEST_WORD):
            return Outcome.BAD_REQUEST
        if address is None:
            return Outcome.NO_ADDRESS
        if int(port) == 0:
            return Outcome.NOT_ASKED
        if self._each.take(address).wait or self._all.take("").wait:
            return Outcome.BUSY
        return await knock(address, int(port), word)

    async def _address_of(self, peer: PeerID) -> str | None:
        """The IP address of a connected peer, None where there is a relay between."""
        for info in await self.p2p.list_peers():
            if info.peer_id == peer:
                for address in map(str, info.addrs):
                    parts = address.split("/")
                    if parts[1] in ("ip4", "ip6") and "p2p-circuit" not in parts:
                        return parts[2]
        return None


async def knock(address: str, port: int, word: str) -> Outcome:
    """Connect and read what is said there."""
    try:
        connection = asyncio.open_connection(address, port)
        reader, writer = await asyncio.wait_for(connection, DIAL_SECONDS)
    except TimeoutError:
        return Outcome.NO_ANSWER
    except ConnectionRefusedError:
        return Outcome.REFUSED
    except OSError:
        return Outcome.NO_ANSWER
    try:
        heard = await asyncio.wait_for(reader.readexactly(len(word)), DIAL_SECONDS)
    except (TimeoutError, OSError, asyncio.IncompleteReadError):
        return Outcome.SOMEBODY_ELSE
    finally:
        writer.close()
    return Outcome.REACHED if heard == word.encode() else Outcome.SOMEBODY_ELSE


def serve(dht: hivemind.DHT) -> None:
    """Answer such questions from now on, within the DHT's own process."""
    dht.run_coroutine(_serve, return_future=True).result(START_SECONDS)


async def _serve(_dht: hivemind.DHT, node: DHTNode) -> None:
    await ReachabilityServicer(node.p2p).add_p2p_handlers(node.p2p)


async def ask(p2p: P2P, peer: PeerID, port: int, word: str, seconds: float) -> dict[str, object]:
    """Ask a peer to connect back.

    Raises:
        TimeoutError: when it does not answer within `seconds`.
        P2PHandlerError: when it does not know the question, as only monitors do.
    """
    question = Struct()
    question.update({"port": port, "word": word})
    stub = ReachabilityServicer.get_stub(p2p, peer)
    answer: dict[str, object] = MessageToDict(
        await stub.rpc_connect_back(question, timeout=seconds)
    )
    return answer
