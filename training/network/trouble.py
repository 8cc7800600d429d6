"""Explanations in plain words of why a run's network cannot be reached."""

import re
import socket
from collections.abc import Sequence

from hivemind.utils.multiaddr import Multiaddr

from training.access.causes import AccessRefusedError, Cause

TOUCH_SECONDS = 3.0
_CLOCKS = re.compile(r"local: ([\d.]+), peer: ([\d.]+)")


class CannotConnectError(ConnectionError):
    """The run's network cannot be reached; the message says in plain words what to look at."""


def explain(
    error: Exception, entry_points: Sequence[str], port: int
) -> CannotConnectError | AccessRefusedError:
    """Say what the library's error at the start of the network means.

    Args:
        entry_points: multiaddresses that we tried. port: on which we wanted to listen.
    """
    text = str(error) or type(error).__name__
    if "local time must be" in text:
        return AccessRefusedError(Cause.CLOCK_OFF, _clocks_apart(text))
    if "can't access this node" in text:
        return CannotConnectError(
            "others cannot connect to this machine: a firewall or router blocks them. Start "
            "with --behind-firewall, or open a port and name it with --port"
        )
    if "initial_peers" in text or "bootstrap" in text:
        return _explain_silence(entry_points)
    if "address already in use" in text:
        return CannotConnectError(
            f"port {port} is taken on this machine: choose another with --port, or leave --port out"
        )
    return CannotConnectError(
        f"the network daemon did not start: {text}. Run the doctor; if it finds nothing, send this "
        "to the organizers"
    )


def _explain_silence(entry_points: Sequence[str]) -> CannotConnectError | AccessRefusedError:
    answering = [address for address in entry_points if can_touch(address)]
    if answering:
        return AccessRefusedError(Cause.NETWORK_REFUSED, ", ".join(answering))
    return CannotConnectError(
        f"none of the run's entry points answered ({', '.join(entry_points)}). Either they "
        "are down, or a firewall blocks them, or this machine has no connection. The doctor says "
        "which."
    )


def can_touch(address: str) -> bool:
    """True if something listens at a multiaddress' TCP port; False for other protocols."""
    parts = dict(re.findall(r"/(ip4|ip6|dns|dns4|dns6|tcp)/([^/]+)", str(Multiaddr(address))))
    port = parts.pop("tcp", None)
    if port is None or not parts:
        return False
    try:
        socket.create_connection((next(iter(parts.values())), int(port)), TOUCH_SECONDS).close()
    except OSError:
        return False
    return True


def _clocks_apart(text: str) -> str:
    times = _CLOCKS.search(text)
    if times is None:
        return ""
    apart = float(times[1]) - float(times[2])
    way = "ahead of" if apart > 0 else "behind"
    return f"it is {abs(apart):.1f} s {way} the run's"
