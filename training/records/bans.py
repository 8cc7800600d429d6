"""Contributors that a run's organizers have banned, as a list in each peer's folder.

The monitor's list is written by `python -m training ban`. It goes to the volunteers as a record
that only an entry point of the run can write (`records.orders`); each keeps it in its own folder,
where the processes of its network layer read it. Nobody stores a banned peer's records, lets it
into a group, or averages what it sends.
"""

from collections.abc import Iterable
from pathlib import Path

from calculator.errors import InputError
from training.records.owners import contributor_of
from training.run import atomic

FILE_NAME = "bans.json"


class BanList:
    """The list in a folder, for any process; read again whenever the file changes."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE_NAME
        self._seen: tuple[int, int] | None = None
        self._ids: frozenset[str] = frozenset()

    def ids(self) -> frozenset[str]:
        """Public names of those who are banned, as of `contributor_of`.

        Raises:
            InputError: the file holds something else.
        """
        try:
            found = self.path.stat()
        except FileNotFoundError:
            return frozenset()
        if self._seen != (found.st_mtime_ns, found.st_ino):
            ids = atomic.read_json(self.path)
            if not (isinstance(ids, list) and all(isinstance(one, str) for one in ids)):
                raise InputError("file", self.path, "must hold a list of contributors")
            self._ids, self._seen = frozenset(ids), (found.st_mtime_ns, found.st_ino)
        return self._ids

    def write(self, ids: Iterable[str]) -> None:
        """Replace the list."""
        atomic.write_json(self.path, sorted(set(ids)))

    def is_banned(self, peer_id: str) -> bool:
        """True for the identity of a peer that is banned."""
        ids = self.ids()
        return bool(ids) and contributor_of(peer_id) in ids
