"""Homes behind routers, as network namespaces of this machine: root and iproute2.

Each home is a machine behind a router of its own, which lets nobody in who was not called; a
symmetric one also gives every connection another port. Servers stand in the open. No packet
leaves this machine.
"""

import os
import subprocess
import sys
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

ROUTER = Path(__file__).with_name("router.py")
NETWORK = "25.77.0."  # looks public to those inside, and is theirs alone


class UnavailableError(RuntimeError):
    """This machine cannot have such namespaces; the message says why."""


class Router(StrEnum):
    """The router between a machine and the others."""

    NONE = "none"
    CLOSED = "closed"
    SYMMETRIC = "symmetric"


@dataclass
class Street:
    """Namespaces on one switch; use it as a context."""

    tag: str = field(default_factory=lambda: f"h{os.getpid() % 100_000}")
    _names: list[str] = field(default_factory=list)

    def __enter__(self) -> "Street":
        try:
            self._add("switch")
            self._run("switch", "ip", "link", "add", "switch", "type", "bridge")
            self._run("switch", "ip", "link", "set", "switch", "up")
        except Exception:
            self._remove()
            raise
        return self

    def __exit__(self, *_error: object) -> None:
        self._remove()

    def build(self, number: int, router: Router) -> str:
        """Build a home or a server at an address; gives its namespace."""
        name = f"n{number}"
        self._add(name)
        if router is Router.NONE:
            self._connect(name, "switch", f"{NETWORK}{number}/24")
            return f"{self.tag}{name}"
        gateway, inner = f"r{number}", f"192.168.{number}."
        self._add(gateway)
        self._connect(gateway, "switch", f"{NETWORK}{number}/24")
        self._connect(name, gateway, f"{inner}2/24", f"{inner}1/24")
        self._run(name, "ip", "route", "add", "default", "via", f"{inner}1")
        self._run(gateway, "sysctl", "-qw", "net.ipv4.ip_forward=1")
        ports = ["--symmetric"] if router is Router.SYMMETRIC else []
        self._run(gateway, sys.executable, str(ROUTER), f"{gateway}-switch", *ports)
        return f"{self.tag}{name}"

    @staticmethod
    def address(number: int) -> str:
        """The address that others see."""
        return f"{NETWORK}{number}"

    def _add(self, name: str) -> None:
        self._names.append(name)
        _call("ip", "netns", "add", f"{self.tag}{name}")
        self._run(name, "ip", "link", "set", "lo", "up")

    def _connect(self, name: str, other: str, address: str, others: str = "") -> None:
        """Lay a line between two namespaces; at the switch it is plugged in."""
        near, far = f"{name}-{other}", f"{other}-{name}"
        ends = ["netns", f"{self.tag}{name}", "type", "veth", "peer", "name", far]
        _call("ip", "link", "add", near, *ends, "netns", f"{self.tag}{other}")
        self._run(name, "ip", "address", "add", address, "dev", near)
        if others:
            self._run(other, "ip", "address", "add", others, "dev", far)
        else:
            self._run(other, "ip", "link", "set", far, "master", other)
        self._run(other, "ip", "link", "set", far, "up")
        self._run(name, "ip", "link", "set", near, "up")

    def _run(self, name: str, *command: str) -> None:
        _call("ip", "netns", "exec", f"{self.tag}{name}", *command)

    def _remove(self) -> None:
        for name in self._names:
            command = ["ip", "netns", "delete", f"{self.tag}{name}"]
            subprocess.run(command, check=False, capture_output=True)
        self._names.clear()


def _call(*command: str) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        why = getattr(error, "stderr", "") or str(error)
        words = " ".join(command[-6:])
        raise UnavailableError(f"'... {words}' failed: {why.strip()}") from error
