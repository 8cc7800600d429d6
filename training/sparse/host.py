"""The host of a run's rounds: takes what volunteers upload, and closes the rounds.

Whoever uploads signs the file itself, so that nobody uploads in another's name. A volunteer has
one update in a round, and no file is kept before all of it was checked: that is its quota. In a
run with an authority its grant comes with each upload. Everybody may download.
"""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from training.access import grants
from training.access.envelope import FileError
from training.access.grants import GrantError
from training.access.membership import Membership
from training.access.signatures import PeerKey
from training.run.recipes import SparseSettings
from training.sparse import catching_up
from training.sparse import peer as peers
from training.sparse import report as reports
from training.sparse.audience import Audience
from training.sparse.closing import Swarm, Taken
from training.sparse.judging import Effect, Judge
from training.sparse.open_round import OpenRound
from training.sparse.report import Report
from training.sparse.shared import SharedState
from training.sparse.store import FolderStore, StoreError
from training.sparse.waiting import Waiting


class NotTakenError(ValueError):
    """An upload that the host does not take; the message says why.

    `is_forbidden` where its sender has no access.
    """

    def __init__(self, message: str, is_forbidden: bool = False) -> None:
        super().__init__(message)
        self.is_forbidden = is_forbidden


@dataclass(frozen=True)
class Closed:
    """A round that was closed.

    Attributes:
        number: counted from 0.
        reports: the newest of each volunteer, by identity.
        left_out: why an update was not taken after all, by identity.
        measured: updates whose effect was measured; the others count as their peers' records say.
    """

    number: int
    taken: tuple[Taken, ...]
    reports: dict[str, Report]
    left_out: dict[str, str] = field(default_factory=dict)
    measured: int = 0


class Host:
    """The rounds of a run, for any thread.

    Args:
        store: of the swarm, in a folder of this machine.
        state: that the next round begins with.
        membership: our access, where the run has an authority: then uploads need a grant.
        clock: gives seconds.
        judge: of the updates' effects; then `judge_updates` must be called before a round can
            close.
        is_banned: True for the identity of a peer from which nothing is taken.

    Attributes:
        state: the newest shared state.
        refused: uploads that were not taken, and updates that were left out.
        bytes_in, bytes_out: of files that volunteers uploaded and downloaded for the rounds.
        bytes_to_newcomers: of checkpoints that they downloaded.
        finished: nothing is taken any more.
    """

    def __init__(
        self,
        swarm: Swarm,
        store: FolderStore,
        state: SharedState,
        settings: SparseSettings,
        membership: Membership | None = None,
        clock: Callable[[], float] = time.monotonic,
        judge: Judge | None = None,
        is_banned: Callable[[str], bool] = lambda _peer: False,
    ) -> None:
        self.swarm, self.store, self.state, self.settings = swarm, store, state, settings
        self.finished = False
        self.refused = self.bytes_in = self.bytes_out = self.bytes_to_newcomers = 0
        self._membership, self._clock, self._judge = membership, clock, judge
        self._is_banned = is_banned
        self._lock = threading.Lock()
        self._audience = Audience(clock)
        self._waiting = Waiting(settings, clock())
        self._effects: dict[str, tuple[Effect, int]] = {}
        self._must: dict[str, bool] = {}  # whether an update has to be measured, by its sum
        self._faults: dict[str, str] | None = None  # of the effects so far; None: not known
        self._open()

    def take_payload(self, content: bytes, token: bytes) -> str:
        """Take a volunteer's update into the open round; gives the file's SHA-256.

        Raises:
            NotTakenError: with the reason.
        """
        member = self._admit(token)
        with self._lock:
            if self.finished:
                raise NotTakenError("the run is over")
            self.bytes_in += len(content)
            try:
                taken = self._round.take(content, member)
            except FileError as error:
                self.refused += 1
                raise NotTakenError(str(error)) from error
            peers.name_payload(self.store, self._round.of.number, taken.sha256)
            return taken.sha256

    def take_report(self, content: bytes, token: bytes) -> None:
        """Take a volunteer's report in place of its last.

        Raises:
            NotTakenError: with the reason.
        """
        member = self._admit(token)
        try:
            peer, report = reports.read(content, self.swarm.run)
        except FileError as error:
            raise NotTakenError(str(error)) from error
        if member not in (None, peer):
            raise NotTakenError("signed by another than the grant is for", is_forbidden=True)
        if self._is_banned(peer):
            raise NotTakenError("its peer is banned from the run", is_forbidden=True)
        with self._lock:
            if not self._audience.hear(peer, report):
                raise NotTakenError("an older report is shown again")

    def taken(self) -> tuple[Taken, ...]:
        """The updates of the open round so far."""
        with self._lock:
            return self._round.taken

    def reports(self) -> dict[str, Report]:
        """The newest report of each volunteer; whoever is silent has left."""
        with self._lock:
            return self._audience.reports()

    def present(self) -> set[str]:
        """Volunteers that have been heard from lately."""
        with self._lock:
            return self._audience.present()

    def describe(self) -> dict[str, object]:
        """The run's rounds, as anybody may know them."""
        return {
            "run": self.swarm.run,
            "round": self.state.round,
            "finished": self.finished,
            "peers": len(self.present()),
            "time": time.time(),
        }

    def judge_updates(self) -> None:
        """Measure the effects of the updates that have come; uploads go on meanwhile.

        Once the round's time has come, only those that must be measured are. The thread that
        closes rounds calls it.

        Raises:
            ClosingError: an update can no longer be had.
        """
        if self._judge is None:
            return
        here, weights = self._round, self.state.weights
        while (found := self._next_to_judge()) is not None:
            one, is_measured = found
            update = here.read(one)
            if is_measured:
                effect = self._judge.measure(here.of.number, weights, update)
            else:
                effect = self._judge.trust(update, len(weights))
            with self._lock:
                self._effects[one.peer] = effect, one.samples
                self._faults = None

    def close_if_due(self, key: PeerKey) -> Closed | None:
        """Close the open round if it is time to, and open the next.

        Raises:
            ClosingError: an update can no longer be had.
        """
        with self._lock:
            if self.finished or not self._is_due() or self._not_judged():
                return None
            left_out = self._leave_out()
            number, taken = self._round.of.number, self._round.taken
            measured = sum(effect.is_measured for effect, _ in self._effects.values())
            expected = self._expected()
            self.state = self._round.close(key)
            self._waiting.close(self._clock(), [one.peer for one in taken], expected)
            self._open()
            return Closed(number, taken, self._audience.reports(), left_out, measured)

    def finish(self) -> None:
        """Take nothing any more, and say that the run is over."""
        with self._lock:
            self.finished = True

    def is_checkpoint(self, sha256: str) -> bool:
        """True if the file with that sum is for newcomers."""
        return sha256 in map(self.store.find, self.store.names(catching_up.FOLDER))

    def note_download(self, size: int, *, is_checkpoint: bool) -> None:
        """Count bytes that a volunteer downloads; the server's thread alone calls it."""
        if is_checkpoint:
            self.bytes_to_newcomers += size
        else:
            self.bytes_out += size

    def _open(self) -> None:
        """Open the round of the present state, with updates that came before a restart."""
        self._opened = self._clock()
        self._effects, self._must, self._faults = {}, {}, None
        largest = self.settings.largest_norm
        self._round = OpenRound(self.swarm, self.state, largest, self._is_banned)
        for sha256 in sorted(peers.published(self.store, self.state.round), key=self.store.came_at):
            with suppress(FileError, StoreError):
                self._round.offer(sha256)

    def _not_judged(self) -> list[Taken]:
        """Updates without an effect, as they came."""
        if self._judge is None:
            return []
        return [one for one in self._round.arrived.values() if one.peer not in self._effects]

    def _next_to_judge(self) -> tuple[Taken, bool] | None:
        """The next update whose effect is wanted, and whether to measure it."""
        assert self._judge is not None
        with self._lock:
            waiting = self._not_judged()
            for one in waiting:
                if one.sha256 not in self._must:
                    self._must[one.sha256] = self._judge.must_measure(one.peer)
            waiting.sort(key=lambda one: not self._must[one.sha256])
            if not waiting:
                return None
            one = waiting[0]
            return one, self._must[one.sha256] or not self._is_due()

    def _leave_out(self) -> dict[str, str]:
        """Leave out what the judge finds bad; gives whose updates, and why."""
        left_out = {} if self._judge is None else self._judge.weigh(self._in_order())
        self._round.leave_out(left_out)
        self.refused += len(left_out)
        return left_out

    def _in_order(self) -> dict[str, tuple[Effect, int]]:
        """The effects, of the update that came first first."""
        return {peer: self._effects[peer] for peer in self._round.arrived if peer in self._effects}

    def _is_due(self) -> bool:
        """True if the round's time has come; then it takes no more."""
        taken = self._round.arrived.keys()
        due = self._waiting.is_due(self._clock(), taken, self._kept(), self._expected())
        self._round.takes_more = not due
        return due

    def _kept(self) -> set[str]:
        """Whoever has an update in the round that would count, by what is known so far."""
        if self._judge is None:
            return set(self._round.arrived)
        if self._faults is None:
            self._faults = self._judge.foresee(self._in_order())
        trusted = {one.peer for one in self._not_judged() if not self._must.get(one.sha256, True)}
        return trusted | (self._effects.keys() - self._faults.keys())

    def _expected(self) -> set[str]:
        return self._waiting.expected(self._audience.training(self._opened), self._audience.gone())

    def _admit(self, token: bytes) -> str | None:
        """The identity for which a grant holds; None in a run without an authority."""
        if self._membership is None:
            return None
        try:
            grant = grants.parse(token)
            self._membership.check(grant)
        except GrantError as error:
            self.refused += 1
            raise NotTakenError(f"no access to the run: {error}", is_forbidden=True) from error
        if self._is_banned(grant.peer_id):
            raise NotTakenError("its peer is banned from the run", is_forbidden=True)
        return grant.peer_id
