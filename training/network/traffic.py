"""Bytes that this peer has exchanged with others, counted where the library sends them.

The library streams gradients, weights and states through two functions, in processes that it
forks. `start_counting` wraps both before the first fork; the counters lie in shared memory, so
one look sees all processes. Counted is what is handed to the network daemon and received from
it; the encryption around it (a few percent) and the small messages of the DHT are not.
"""

import asyncio
import multiprocessing
from dataclasses import dataclass

from hivemind.p2p import P2P


@dataclass(frozen=True)
class Traffic:
    """Bytes since the start of counting."""

    sent: int
    received: int


_sent = multiprocessing.Value("q", 0)
_received = multiprocessing.Value("q", 0)
_send_raw_data = P2P.send_raw_data
_receive_raw_data = P2P.receive_raw_data


async def _send(data: bytes, writer: asyncio.StreamWriter, **options: int) -> None:
    with _sent.get_lock():
        _sent.value += len(data) + P2P.HEADER_LEN
    await _send_raw_data(data, writer, **options)


async def _receive(reader: asyncio.StreamReader) -> bytes:
    data: bytes = await _receive_raw_data(reader)
    with _received.get_lock():
        _received.value += len(data) + P2P.HEADER_LEN
    return data


def start_counting() -> None:
    """Count from now on; must come before the first `hivemind.DHT` of the process."""
    P2P.send_raw_data = staticmethod(_send)
    P2P.receive_raw_data = staticmethod(_receive)


def read() -> Traffic:
    """The current counts."""
    return Traffic(sent=_sent.value, received=_received.value)
