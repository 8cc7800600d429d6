"""`python transfer.py receive HOST PORT` or `send HOST PORT BYTES`: one plain TCP connection.

The receiver prints the seconds from the connection to its last byte, the sender those until the
connection stood: about a round trip.
"""

import json
import socket
import sys
import time
from typing import Any


def receive(host: str, port: int) -> dict[str, float]:
    """Take what one sender sends."""
    with socket.create_server((host, port)) as server:
        connection, _ = server.accept()
        began, size = time.perf_counter(), 0
        while content := connection.recv(2**16):
            size += len(content)
        return {"bytes": size, "seconds": time.perf_counter() - began}


def send(host: str, port: int, size: int) -> dict[str, Any]:
    """Send so many bytes to a receiver, which may come a little later."""
    deadline = time.monotonic() + 20
    while True:
        began = time.perf_counter()
        try:
            connection = socket.create_connection((host, port))
            break
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
    round_trip = time.perf_counter() - began
    with connection:
        connection.sendall(bytes(size))
        name = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
    return {"round_trip": round_trip, "congestion_control": name.rstrip(b"\0").decode()}


if __name__ == "__main__":
    command, host, port, *size = sys.argv[1:]
    done = receive(host, int(port)) if command == "receive" else send(host, int(port), int(size[0]))
    print(json.dumps(done), flush=True)
