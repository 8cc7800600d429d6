"""A peer's own access: kept in a file of its folder, and renewed before it expires.

The DHT and the averagers run in processes of their own, forked when the peer starts; they read
the file, which the peer's main process replaces at each renewal.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from training.access import client, grants
from training.access.causes import AccessRefusedError, Cause
from training.access.client import Admission
from training.access.grants import Grant, GrantError
from training.access.signatures import PeerKey
from training.access.trust import token_for
from training.run import atomic
from training.run.runfile import RunFile

logger = logging.getLogger(__name__)

RENEWAL_SECONDS = 60.0  # so long before its end a grant is renewed
FILE_NAME = "access.json"

Ask = Callable[[], Admission]  # raises AccessRefusedError
Say = Callable[[str], None]


class Membership:
    """The file with a peer's access, for any process of the peer to read.

    Args:
        folder: the peer's. run: the run's name. peer_public_key: the peer's own key.

    Attributes:
        listeners: told of each new grant, in the process that renews.
        renewing: held during a renewal. Hold it where a process is forked: a fork in the middle
            of a renewal would hand down locks that the child finds closed for ever.
    """

    def __init__(self, folder: Path, run: str, peer_public_key: str) -> None:
        self.path = folder / FILE_NAME
        self.run, self.peer_public_key = run, peer_public_key
        self.listeners: list[Callable[[Grant], object]] = []
        self.renewing = threading.Lock()
        self._read_at: tuple[int, int] | None = None
        self._admission: Admission | None = None

    def read(self) -> Admission | None:
        """The grant in the file, even if it has expired; None if there is none of use."""
        try:
            found = self.path.stat()
        except FileNotFoundError:
            return None
        if self._read_at != (found.st_mtime_ns, found.st_ino):
            self._admission = self._parse()
            self._read_at = (found.st_mtime_ns, found.st_ino)
        return self._admission

    def write(self, admission: Admission) -> None:
        """Replace what the file holds."""
        values = {
            "grant": admission.grant.to_bytes().decode(),
            "authority_key": admission.authority_key,
        }
        atomic.write_json(self.path, values)
        for tell in self.listeners:
            tell(admission.grant)

    @property
    def token(self) -> bytes:
        """Our grant as it is shown to others.

        Raises:
            GrantError: when it has expired or there is none.
        """
        return self.current().grant.to_bytes()

    def current(self) -> Admission:
        """Our access; raises GrantError when it has expired or there is none."""
        admission = self.read()
        if admission is None:
            raise GrantError("this peer has no access yet")
        grants.check(admission.grant, admission.authority_key, self.run)
        return admission

    @property
    def has_expired(self) -> bool:
        """True if we have no access now: others would reject us."""
        return self.seconds_left() <= 0

    def seconds_left(self) -> float:
        """Seconds until our access ends; 0 where there is none."""
        admission = self.read()
        return admission.grant.seconds_left() if admission else 0.0

    def verify(self, token: bytes, peer_id: str) -> Grant:
        """Check the grant that another peer of the run shows.

        Args:
            token: what it showed. peer_id: its identity as libp2p has proved it, in base 58.

        Raises:
            GrantError: with the reason, when it does not hold, or we have no access ourselves.
        """
        return grants.verify(token, self.current().authority_key, self.run, peer_id)

    def check(self, grant: Grant) -> None:
        """Check a grant's signature, run and time; whose key it is the caller must see to.

        Raises:
            GrantError: with the reason, when it does not hold, or we have no access ourselves.
        """
        grants.check(grant, self.current().authority_key, self.run)

    def _parse(self) -> Admission | None:
        try:
            values = atomic.read_json(self.path)
            grant = grants.parse(values["grant"].encode())
            key = values["authority_key"]
            if grant.run != self.run or grant.peer_public_key != self.peer_public_key:
                return None
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return None
        return Admission(grant, key) if isinstance(key, str) else None


class Renewal:
    """Holds access to a run while its block lasts: a thread renews it in time.

    Where the authority cannot answer, access of an earlier start is used while it lasts. When it
    refuses, `stop` is set.

    Args:
        ask: gets new access. say: tells the peer's owner, also when renewal does not work.

    Raises:
        AccessRefusedError: at the start when there is no access to be had; at the end when its
            renewal was refused.
    """

    def __init__(self, membership: Membership, ask: Ask, say: Say, stop: threading.Event) -> None:
        self.membership, self.ask, self.say, self.stop = membership, ask, say, stop
        self.refusal: AccessRefusedError | None = None
        self._told: Cause | None = None
        self._told_expiry = False
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="access", daemon=True)

    def __enter__(self) -> Membership:
        try:
            self.membership.write(self.ask())
        except AccessRefusedError as error:
            if not error.passes or error.cause is Cause.CLOCK_OFF or self.membership.has_expired:
                raise
            self._tell(error)
        self._lifetime = self.membership.seconds_left()
        self._thread.start()
        return self.membership

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._closed.set()
        if kind is None and self.refusal is not None:
            raise self.refusal

    def _run(self) -> None:
        while not self._closed.wait(self._pause()):
            with self.membership.renewing:
                self._renew()
            if self.refusal is not None:
                return

    def _pause(self) -> float:
        """Seconds until the next attempt: a minute before the end, then more and more often.

        Once access has ended there is no hurry any more.
        """
        left = self.membership.seconds_left()
        if self._told is None:
            return max(0.5, left - min(RENEWAL_SECONDS, self._lifetime / 2))
        return min(15.0, max(1.0, left / 4)) if left > 0 else 15.0

    def _renew(self) -> None:
        try:
            self.membership.write(self.ask())
        except AccessRefusedError as error:
            if error.passes:
                self._tell(error)
                return
            self.refusal = error
            logger.warning("access was not renewed: %s", error.cause)
            self.stop.set()
        except Exception:
            logger.exception("the renewal of access failed; continuing")
        else:
            self._lifetime = self.membership.seconds_left()
            if self._told is not None:
                self.say("access to the run is renewed")
            self._told, self._told_expiry = None, False

    def _tell(self, error: AccessRefusedError) -> None:
        """Say once why renewal does not work now, and once that access has ended."""
        admission = self.membership.read()
        if admission is None:
            return
        grant = admission.grant
        if self._told is not error.cause:
            until = time.strftime("%H:%M:%S", time.localtime(grant.expires))
            self.say(f"access could not be renewed and lasts until {until}: {error}")
            logger.warning("access could not be renewed: %s", error.cause)
        self._told = error.cause
        if grant.seconds_left() <= 0 and not self._told_expiry:
            self._told_expiry = True
            self.say(
                "access has ended: the others reject this peer until it is renewed. If your "
                "connection works, tell the organizers"
            )


@contextmanager
def admitted(
    run: RunFile,
    key: PeerKey,
    folder: Path,
    say: Say,
    stop: threading.Event,
    ask: Callable[[], Admission] | None = None,
) -> Iterator[Membership | None]:
    """Hold access to a run while the block lasts; None where the run has no authority.

    Args:
        key: the peer's. folder: the peer's, where access is kept.
        say: tells the peer's owner. stop: set when renewal is refused.
        ask: gives an admission; else the run's authority is asked with the user's token.

    Raises:
        AccessRefusedError: at the start, or when a renewal was refused at the end.
    """
    if not run.authority:
        yield None
        return
    ask = ask or (lambda: client.ask(run, key, token_for(run.authority)))
    public_key = key.get_public_key().to_bytes().decode()
    membership = Membership(folder, run.name, public_key)
    with Renewal(membership, ask, say, stop) as held:
        yield held
