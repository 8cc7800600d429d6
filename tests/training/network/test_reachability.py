"""The monitor's part, between real network daemons."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict
from google.protobuf.struct_pb2 import Struct
from hivemind.p2p import P2P

from training.access.limits import Buckets, Rate
from training.network import reachability
from training.network.reachability import Outcome, ReachabilityServicer, ask, knock

WORD = "a word of its own"


@asynccontextmanager
async def saying(said: bytes) -> AsyncIterator[int]:
    """A port of this machine that sends some bytes to whoever connects."""

    def answer(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(said)
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]


@pytest.mark.parametrize(
    ("said", "outcome"),
    [
        (WORD.encode(), Outcome.REACHED),
        (b"SSH-2.0-OpenSSH_9.6 and more", Outcome.SOMEBODY_ELSE),
        (b"", Outcome.SOMEBODY_ELSE),
    ],
)
def test_only_the_expected_word_counts(said: bytes, outcome: Outcome) -> None:
    async def listen() -> Outcome:
        async with saying(said) as port:
            return await knock("127.0.0.1", port, WORD)

    assert asyncio.run(listen()) is outcome


def test_a_closed_port_refuses() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))  # bound, but nobody listens
        port = probe.getsockname()[1]
        assert asyncio.run(knock("127.0.0.1", port, WORD)) is Outcome.REFUSED


def test_what_does_not_answer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(*_arguments: object) -> None:
        await asyncio.sleep(60)

    monkeypatch.setattr(reachability, "DIAL_SECONDS", 0.05)
    monkeypatch.setattr(asyncio, "open_connection", never)
    assert asyncio.run(knock("192.0.2.1", 1, WORD)) is Outcome.NO_ANSWER


@pytest.mark.swarm
def test_the_monitor_connects_back_to_the_asking_machine_only() -> None:
    async def talk() -> list[Any]:
        monitor = await P2P.create(auto_nat=False, nat_port_map=False)
        addresses = [str(address) for address in await monitor.get_visible_maddrs()]
        client = {"dht_mode": "client", "no_listen": True, "host_maddrs": None}
        asker = await P2P.create(addresses, **client, auto_nat=False, nat_port_map=False)
        try:
            return await ask_all(monitor, asker)
        finally:
            await asker.shutdown()
            await monitor.shutdown()

    async def ask_all(monitor: P2P, asker: P2P) -> list[Any]:
        servicer = ReachabilityServicer(monitor)
        await servicer.add_p2p_handlers(monitor)
        async with saying(WORD.encode()) as port:
            reached = await ask(asker, monitor.peer_id, port, WORD, 10)
        closed = await ask(asker, monitor.peer_id, port, WORD, 10)
        time_only = await ask(asker, monitor.peer_id, 0, "", 10)
        servicer._each = Buckets(Rate(burst=0, per_second=0.1))
        busy = await ask(asker, monitor.peer_id, port, WORD, 10)
        stub = ReachabilityServicer.get_stub(asker, monitor.peer_id)
        nonsense = []
        for wrong in ({}, {"port": 1.5e9, "word": ""}, {"port": 1, "word": "x" * 65}):
            request = Struct()
            request.update(wrong)
            nonsense.append(MessageToDict(await stub.rpc_connect_back(request, timeout=10)))
        return [reached, closed, time_only, busy, *nonsense]

    answers = asyncio.run(talk())
    outcomes = ["reached", "refused", "not-asked", "busy", *3 * ["bad-request"]]
    assert [answer["outcome"] for answer in answers] == outcomes
    assert {answer["seen_as"] for answer in answers} == {"127.0.0.1"}
    assert all(answer["time"] > 1.7e9 for answer in answers)
