"""Judges that lied: they judge no more, whatever becomes of the monitor's process."""

from collections.abc import Collection
from pathlib import Path

from calculator.errors import InputError
from training.run import atomic

_FILE = "banned_judges.json"


def read(folder: Path) -> set[str]:
    """Identities of the judges that are banned.

    Raises:
        InputError: the monitor's file holds something else.
    """
    banned = atomic.read_json(folder / _FILE) or []
    if not (isinstance(banned, list) and all(isinstance(peer, str) for peer in banned)):
        raise InputError("file", folder / _FILE, "must hold a list of identities as it was written")
    return set(banned)


def write(folder: Path, banned: Collection[str]) -> None:
    """Write all of them, in place of those before."""
    atomic.write_json(folder / _FILE, sorted(banned))
