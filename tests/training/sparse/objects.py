"""The test's object store, as a process of its own."""

import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.training.sparse import object_server
from training.sparse.object_store import ObjectStore


@dataclass
class ObjectProcess:
    """An object store that can be ended and started again at the same address.

    Attributes:
        folder: with its files.
    """

    folder: Path
    address: str = ""
    _process: "subprocess.Popen[str] | None" = field(default=None, repr=False)

    def start(self) -> None:
        """Start it, the first time at any port."""
        self.folder.mkdir(exist_ok=True)
        command = [sys.executable, object_server.__file__, str(self.folder)]
        if self.address:
            command.append(self.address.split("/")[2].rpartition(":")[2])
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.address = self._process.stdout.readline().strip()
        assert self.address, "it did not start"

    def stop(self) -> None:
        """End it."""
        if self._process is not None:
            self._process.kill()
            with suppress(ValueError):
                self._process.communicate()
            self._process = None

    def names(self) -> set[str]:
        """The keys' last parts."""
        return {path.name for path in self.folder.iterdir()}

    def open(self, **environment: str) -> ObjectStore:
        """The store with its owner's keys."""
        return ObjectStore.from_environment(self.address, object_server.ENVIRONMENT | environment)
