"""Processes of a run with local steps, each in a home of its own, some behind routers."""

import subprocess
import sys
from dataclasses import dataclass, field

from tests.training.network import forward
from tests.training.network.homes import Router, Street, inside
from tests.training.processes import RoundsSwarm

PORT = "31337"


@dataclass
class RoundsStreet(RoundsSwarm):
    """A monitor in the open, and volunteers behind the routers that `begin_behind` is given."""

    street: Street = field(default_factory=Street)
    homes: dict[str, str] = field(default_factory=dict)
    hosts: dict[str, str] = field(default_factory=dict)
    _ways: "list[subprocess.Popen[bytes]]" = field(default_factory=list)

    def begin_behind(self, **routers: Router) -> None:
        """Build the homes, and start the monitor and a volunteer in each of them."""
        for number, (name, router) in enumerate({"monitor": Router.NONE, **routers}.items(), 1):
            self.homes[name] = self.street.build(number, router)
            self.hosts[name] = self.street.address(number)
            if name != "monitor":
                self._lead(name)
        self.exchange = f"http://127.0.0.1:{PORT}"
        self.begin_at(PORT)
        for name, router in routers.items():
            place = ["--port", PORT] if router is Router.NONE else ["--behind-firewall"]
            self.start(name, "--name", name, "--no-doctor", *place)
        self.await_start(*routers)

    def namespace_of(self, name: str) -> str:
        return self.homes[name]

    def host_of(self, name: str) -> str:
        return self.hosts[name]

    def stop(self) -> None:
        super().stop()
        for way in self._ways:
            way.kill()
            way.wait()

    def _lead(self, name: str) -> None:
        command = [*inside(self.homes[name]), sys.executable, forward.__file__, PORT]
        self._ways.append(subprocess.Popen([*command, self.hosts["monitor"], PORT]))
