"""`python router.py CONGESTION NAMESPACE ...`: slow lines between network namespaces.

Each namespace gets a TUN device, whose packets this process reads: it queues them at the line's
rate, holds them back and loses some at random, as a line does. It stands in for `tc netem`, which
many kernels lack; what TCP makes of such a line is the kernel's own doing. Needs root and Linux.

CONGESTION names TCP's congestion control. A JSON object a line on standard input sets the lines
and is answered with what was counted since the one before.
"""

import fcntl
import heapq
import itertools
import json
import os
import random
import select
import struct
import subprocess
import sys
import time
from dataclasses import dataclass, field

NETWORK = "10.77.0."  # of the namespaces alone: no packet leaves this machine
MTU = 1500
SERVER_MBIT = 1000.0  # of a server's line
QUEUE_SECONDS = 0.1  # a line's buffer; what comes when it is full is lost
FIRST_WAIT = 3600.0

_TUNSETIFF, _IFF_TUN, _IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
_TCP, _SYN, _ACK = 6, 0x02, 0x10


@dataclass
class Lines:
    """Properties of all connections.

    `closed` and `servers` are the addresses' last numbers: of those that accept no call, and of
    those whose line is a server's.
    """

    mbit_per_second: float = 1000.0
    delay_ms: float = 0.0
    loss_percent: float = 0.0
    closed: list[int] = field(default_factory=list)
    servers: list[int] = field(default_factory=list)

    def bytes_per_second(self, number: int) -> float:
        """The rate of a line, in each direction."""
        mbit = SERVER_MBIT if number in self.servers else self.mbit_per_second
        return mbit * 1e6 / 8


@dataclass
class Line:
    """A namespace's line: when its two directions are free again, and what it carried."""

    number: int
    file: int
    up_free: float = 0.0
    down_free: float = 0.0
    sent_packets: int = 0
    sent_bytes: int = 0
    received_bytes: int = 0


class Router:
    """Reads every device, and writes each packet to its addressee's at its time."""

    def __init__(self, congestion: str, namespaces: list[str]) -> None:
        self.lines = Lines()
        self.by_number = {
            number: Line(number, attach(name, number, congestion))
            for number, name in enumerate(namespaces, start=1)
        }
        self.by_file = {line.file: line for line in self.by_number.values()}
        self.events: list[tuple[float, int, bytes, Line, bool]] = []
        self.lost = self.overflowed = self.refused = 0
        self.latest = 0.0  # seconds that a packet was passed on too late
        self._order = itertools.count()
        self._random = random.Random(0)

    def run(self) -> None:
        """Carry packets until standard input ends."""
        files = [*self.by_file, sys.stdin.fileno()]
        while True:
            wait = self.events[0][0] - time.monotonic() if self.events else FIRST_WAIT
            ready, _, _ = select.select(files, [], [], max(0.0, wait))
            for file in ready:
                if file in self.by_file:
                    self._read(self.by_file[file])
                elif not self._obey():
                    return
            self._pass_on()

    def _read(self, line: Line) -> None:
        for _ in range(64):  # then look at the clock again
            try:
                packet = os.read(line.file, 65536)
            except BlockingIOError:
                return
            self._send_up(line, packet)

    def _send_up(self, line: Line, packet: bytes) -> None:
        if packet[0] >> 4 != 4 or packet[19] not in self.by_number:
            return
        line.sent_packets += 1
        line.sent_bytes += len(packet)
        if self._random.random() * 100 < self.lines.loss_percent:
            self.lost += 1
        elif self.is_call(packet) and packet[19] in self.lines.closed:
            self.refused += 1
        else:
            line.up_free = self._queue(line, packet, line.up_free, is_up=True)

    def _queue(self, line: Line, packet: bytes, free: float, is_up: bool) -> float:
        """Put a packet at the end of a queue; gives when the line is free after it."""
        now = time.monotonic()
        start = max(now, free)
        if start - now > QUEUE_SECONDS:
            self.overflowed += 1
            return free
        end = start + len(packet) / self.lines.bytes_per_second(line.number)
        there = end + (self.lines.delay_ms / 1000 if is_up else 0.0)
        heapq.heappush(self.events, (there, next(self._order), packet, line, is_up))
        return end

    def _pass_on(self) -> None:
        now = time.monotonic()
        while self.events and self.events[0][0] <= now:
            there, _, packet, line, is_up = heapq.heappop(self.events)
            self.latest = max(self.latest, now - there)
            if is_up:
                below = self.by_number[packet[19]]
                below.down_free = self._queue(below, packet, below.down_free, is_up=False)
            else:
                line.received_bytes += len(packet)
                os.write(line.file, packet)

    def is_call(self, packet: bytes) -> bool:
        """True if a packet wants a new connection, or is no TCP at all."""
        header = 4 * (packet[0] & 0x0F)
        return packet[9] != _TCP or packet[header + 13] & (_SYN | _ACK) == _SYN

    def _obey(self) -> bool:
        text = sys.stdin.readline()
        if not text:
            return False
        self.lines = Lines(**json.loads(text))
        counted = {
            "packets": sum(line.sent_packets for line in self.by_number.values()),
            "bytes": [line.sent_bytes for line in self.by_number.values()],
            "bytes_received": [line.received_bytes for line in self.by_number.values()],
            "lost": self.lost,
            "overflowed": self.overflowed,
            "refused": self.refused,
            "latest_ms": round(1000 * self.latest, 1),
        }
        self.lost = self.overflowed = self.refused = 0
        self.latest = 0.0
        for line in self.by_number.values():
            line.sent_packets = line.sent_bytes = line.received_bytes = 0
        print(json.dumps(counted), flush=True)
        return True


def attach(namespace: str, number: int, congestion: str) -> int:
    """Make a TUN device, move it into the namespace as its only way out; gives our end."""
    device = f"line{number}"
    file = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(file, _TUNSETIFF, struct.pack("16sH", device.encode(), _IFF_TUN | _IFF_NO_PI))
    inside = ["ip", "-n", namespace]
    for command in (
        ["ip", "link", "set", device, "netns", namespace],
        [*inside, "link", "set", device, "mtu", str(MTU), "txqueuelen", "10000", "up"],
        [*inside, "link", "set", "lo", "up"],
        [*inside, "address", "add", f"{NETWORK}{number}/32", "dev", device],
        [*inside, "route", "add", f"{NETWORK}0/24", "dev", device, "congctl", congestion],
    ):
        subprocess.run(command, check=True)
    return file


if __name__ == "__main__":
    router = Router(sys.argv[1], sys.argv[2:])
    print(json.dumps({"ready": True}), flush=True)
    router.run()
