"""The authority's books: allowlist, bans and every decision, in SQLite.

The service and the moderators' commands are separate processes with the same file.
"""

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

FILE_NAME = "authority.sqlite"
KEEP_SECONDS = 90 * 86_400.0  # decisions name people: they are not kept forever
BUSY_SECONDS = 10.0

_TABLES = """
CREATE TABLE IF NOT EXISTS allowed (
    username TEXT PRIMARY KEY COLLATE NOCASE, since REAL NOT NULL, reason TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS bans (
    kind TEXT NOT NULL, subject TEXT NOT NULL COLLATE NOCASE, username TEXT COLLATE NOCASE,
    since REAL NOT NULL, reason TEXT NOT NULL, PRIMARY KEY (kind, subject));
CREATE TABLE IF NOT EXISTS decisions (
    id INTEGER PRIMARY KEY, time REAL NOT NULL, username TEXT NOT NULL COLLATE NOCASE,
    peer_id TEXT NOT NULL, decision TEXT NOT NULL, cause TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS keys (
    username TEXT NOT NULL COLLATE NOCASE, peer_id TEXT NOT NULL, until REAL NOT NULL,
    PRIMARY KEY (username, peer_id));
CREATE INDEX IF NOT EXISTS decisions_of_user ON decisions (username, decision);
"""


class Kind(StrEnum):
    """Kinds of things that a ban names."""

    USER = "user"
    PEER = "peer"


class Decision(StrEnum):
    """A decision by the service or by a moderator."""

    ADMITTED = "admitted"
    REFUSED = "refused"
    ALLOWED = "allowed"
    DISALLOWED = "disallowed"
    BANNED = "banned"
    UNBANNED = "unbanned"


@dataclass(frozen=True)
class Ban:
    """A ban; `username` is the user on whose account a device is banned."""

    kind: Kind
    subject: str
    username: str | None
    since: str
    reason: str


@dataclass(frozen=True)
class Entry:
    """A line of the log; empty texts where something is not known."""

    time: str
    username: str
    peer_id: str
    decision: Decision
    cause: str


class Books:
    """Opens the books in a folder; makes them where there are none."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / FILE_NAME
        os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
        with self._open() as database:
            database.execute("PRAGMA journal_mode = WAL")
            database.executescript(_TABLES)
            oldest = time.time() - KEEP_SECONDS
            database.execute("DELETE FROM decisions WHERE time < ?", (oldest,))

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """A connection of its own for each use: one transaction, closed afterwards."""
        with closing(sqlite3.connect(self.path, timeout=BUSY_SECONDS)) as database, database:
            database.execute("PRAGMA synchronous = NORMAL")
            yield database

    def note(self, username: str, peer_id: str, decision: Decision, cause: str = "") -> None:
        """Write a line of the log."""
        with self._open() as database:
            _note(database, username, peer_id, decision, cause)

    def hold_key(self, username: str, peer_id: str, until: float) -> int | None:
        """Note that an account takes part with a device until a time (seconds since 1970).

        None when that is so now; where the account has another device whose access has not ended,
        the time at which it does.
        """
        with self._open() as database:
            database.execute("BEGIN IMMEDIATE")  # two requests of one account at the same time
            database.execute("DELETE FROM keys WHERE until <= ?", (time.time(),))
            query = "SELECT until FROM keys WHERE username = ? AND peer_id != ?"
            other = database.execute(query, (username, peer_id)).fetchone()
            if other is not None:
                return int(other[0])
            values = (username, peer_id, until)
            database.execute("INSERT OR REPLACE INTO keys VALUES (?, ?, ?)", values)
            return None

    def allow(self, username: str, reason: str = "") -> None:
        """Put a user on the allowlist."""
        with self._open() as database:
            database.execute(
                "INSERT OR REPLACE INTO allowed VALUES (?, ?, ?)", (username, time.time(), reason)
            )
            _note(database, username, "", Decision.ALLOWED, reason)

    def disallow(self, username: str) -> bool:
        """Take a user off the allowlist; False when there was none."""
        with self._open() as database:
            found = database.execute("DELETE FROM allowed WHERE username = ?", (username,))
            if found.rowcount:
                _note(database, username, "", Decision.DISALLOWED)
            return bool(found.rowcount)

    def is_allowed(self, username: str) -> bool:
        """True if a user is on the allowlist."""
        with self._open() as database:
            query = "SELECT 1 FROM allowed WHERE username = ?"
            return database.execute(query, (username,)).fetchone() is not None

    def allowed(self) -> list[tuple[str, str, str]]:
        """The allowlist: user, since when, why."""
        with self._open() as database:
            rows = database.execute("SELECT username, since, reason FROM allowed ORDER BY username")
            return [(name, _in_words(since), reason) for name, since, reason in rows]

    def ban_user(self, username: str, reason: str) -> list[str]:
        """Ban a user and the devices that were admitted on the account; gives the latter."""
        with self._open() as database:
            query = "SELECT DISTINCT peer_id FROM decisions WHERE username = ? AND decision = ?"
            found = database.execute(query, (username, Decision.ADMITTED)).fetchall()
            peers = [peer_id for (peer_id,) in found]
            _ban(database, Kind.USER, username, username, reason)
            for peer_id in peers:
                _ban(database, Kind.PEER, peer_id, username, reason)
            _note(database, username, "", Decision.BANNED, reason)
            return peers

    def ban_peer(self, peer_id: str, reason: str) -> None:
        """Ban a device."""
        with self._open() as database:
            _ban(database, Kind.PEER, peer_id, None, reason)
            _note(database, "", peer_id, Decision.BANNED, reason)

    def unban(self, name: str) -> bool:
        """Lift the bans of a user and the devices banned with it, or of a device."""
        with self._open() as database:
            found = database.execute(
                "DELETE FROM bans WHERE subject = ? OR username = ?", (name, name)
            )
            if found.rowcount:
                _note(database, name, "", Decision.UNBANNED)
            return bool(found.rowcount)

    def find_ban(self, username: str, peer_id: str) -> Ban | None:
        """The ban of a user or a device, None where there is none."""
        with self._open() as database:
            query = f"""{_BANS} WHERE (kind = 'user' AND subject = ?)
                     OR (kind = 'peer' AND subject = ?) ORDER BY kind DESC"""
            row = database.execute(query, (username, peer_id)).fetchone()
            return _as_ban(row) if row else None

    def bans(self) -> list[Ban]:
        """All bans, the oldest first."""
        with self._open() as database:
            return [_as_ban(row) for row in database.execute(f"{_BANS} ORDER BY since")]

    def decisions(self, username: str = "", newest: int = 50) -> list[Entry]:
        """The newest lines of the log, of one user if one is named, the oldest first."""
        with self._open() as database:
            rows = database.execute(
                """SELECT time, username, peer_id, decision, cause FROM decisions
                   WHERE ? IN ('', username) ORDER BY id DESC LIMIT ?""",
                (username, newest),
            )
            entries = [
                Entry(_in_words(when), name, peer, Decision(decision), cause)
                for when, name, peer, decision, cause in rows
            ]
        return entries[::-1]


_BANS = "SELECT kind, subject, username, since, reason FROM bans"


def _ban(
    database: sqlite3.Connection, kind: Kind, subject: str, username: str | None, reason: str
) -> None:
    values = (kind, subject, username, time.time(), reason)
    database.execute("INSERT OR REPLACE INTO bans VALUES (?, ?, ?, ?, ?)", values)


def _note(
    database: sqlite3.Connection, username: str, peer_id: str, decision: Decision, cause: str = ""
) -> None:
    database.execute(
        "INSERT INTO decisions (time, username, peer_id, decision, cause) VALUES (?, ?, ?, ?, ?)",
        (time.time(), username, peer_id, decision, cause),
    )


def _as_ban(row: tuple[str, str, str | None, float, str]) -> Ban:
    kind, subject, username, since, reason = row
    return Ban(Kind(kind), subject, username, _in_words(since), reason)


def _in_words(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
