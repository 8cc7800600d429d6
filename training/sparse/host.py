"""The host of a run's rounds: takes what volunteers upload, and closes the rounds.

Whoever uploads signs the file itself, so that nobody uploads in another's name. A volunteer has
one update in a round, and no file is kept before all of it was checked: that is its quota. In a
run with an authority its grant comes with each upload. Everybody may download.
"""

import random
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from training.access import grants
from training.access.grants import GrantError
from training.access.membership import Membership
from training.access.signatures import PeerKey
from training.run.live import PeerState
from training.sparse import catching_up
from training.sparse import peer as peers
from training.sparse import report as reports
from training.sparse.closing import Taken
from training.sparse.judging import Effect, Judge
from training.sparse.open_round import ClosingPolicy, OpenRound
from training.sparse.panel import Hearing, Panel, folder_of
from training.sparse.payload import PayloadError
from training.sparse.report import Report, ReportError
from training.sparse.shared import SharedState
from training.sparse.store import FolderStore
from training.sparse.swarm import Swarm
from training.sparse.verdict import Finding, VerdictError

SILENT_SECONDS = 35.0  # three reports missed: whoever is silent for longer has left
MOST_REPORTS = 20_000
MOST_OWNERS = 4096  # payloads whose peer is remembered
MORE_HOLDERS = 2  # volunteers beside a payload's own that may have it


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
        liars: judges whose figures were not the host's, noticed in this round.
        believed: updates whose effect is what volunteers measured.
    """

    number: int
    taken: tuple[Taken, ...]
    reports: dict[str, Report]
    left_out: dict[str, str] = field(default_factory=dict)
    liars: frozenset[str] = frozenset()
    believed: int = 0


class Host:
    """The rounds of a run, for any thread.

    Args:
        store: of the swarm, in a folder of this machine.
        state: that the next round begins with.
        membership: our access, where the run has an authority: then uploads need a grant.
        clock: gives seconds.
        judge: of the updates' effects; then `judge_updates` must be called before a round can
            close.
        panel: lets volunteers judge each other's updates, where there is a judge.

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
        policy: ClosingPolicy,
        membership: Membership | None = None,
        clock: Callable[[], float] = time.monotonic,
        judge: Judge | None = None,
        panel: Panel | None = None,
    ) -> None:
        self.swarm, self.store, self.state, self.policy = swarm, store, state, policy
        self.finished = False
        self.refused = self.bytes_in = self.bytes_out = self.bytes_to_newcomers = 0
        self._membership, self._clock, self._judge = membership, clock, judge
        self._panel = panel if judge is not None else None
        self._lock = threading.Lock()
        self._hearing: Hearing | None = None
        self._reports: dict[str, Report] = {}
        self._heard: dict[str, float] = {}
        self._last: frozenset[str] = frozenset()  # whose updates the last round took
        self._owners: dict[str, str] = {}  # of the newest payloads
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
                taken = self._round.take(content, self._clock(), member)
            except PayloadError as error:
                self.refused += 1
                raise NotTakenError(str(error)) from error
            peers.name_payload(self.store, self._round.of.number, taken.sha256)
            self._owners[taken.sha256] = taken.peer
            while len(self._owners) > MOST_OWNERS:
                self._owners.pop(next(iter(self._owners)))
            return taken.sha256

    def expect_payload(self, head: bytes, sha256: str, token: bytes) -> tuple[int, str]:
        """See by its head that a volunteer's update would be taken; gives round and volunteer.

        Raises:
            NotTakenError: with the reason.
        """
        member = self._admit(token)
        with self._lock:
            if self.finished:
                raise NotTakenError("the run is over")
            try:
                peer = self._round.expect(head, sha256, member)
            except PayloadError as error:
                self.refused += 1
                raise NotTakenError(str(error)) from error
            return self._round.of.number, peer

    def take_verdict(self, content: bytes, token: bytes) -> None:
        """Take a judge's verdict on updates of the open round, and publish it.

        Raises:
            NotTakenError: with the reason.
        """
        member = self._admit(token)
        with self._lock:
            self.bytes_in += len(content)
            if self._hearing is None or not self._is_hearing():
                raise NotTakenError("no verdict is waited for")
            try:
                self._hearing.take(content, member)
            except VerdictError as error:
                self.refused += 1
                raise NotTakenError(str(error)) from error
            sha256 = self.store.put(content)
            self.store.point(f"{folder_of(self._hearing.of.number)}/{sha256}", sha256)

    def take_report(self, content: bytes, token: bytes) -> None:
        """Take a volunteer's report in place of its last.

        Raises:
            NotTakenError: with the reason.
        """
        member = self._admit(token)
        try:
            peer, report = reports.read(content, self.swarm.run)
        except ReportError as error:
            raise NotTakenError(str(error)) from error
        if member not in (None, peer):
            raise NotTakenError("signed by another than the grant is for", is_forbidden=True)
        with self._lock:
            before = self._reports.get(peer)
            if before is not None and report.time <= before.time:
                raise NotTakenError("an older report is shown again")
            if before is None and len(self._reports) >= MOST_REPORTS:
                raise NotTakenError("too many volunteers")
            self._reports[peer] = report
            self._heard[peer] = self._clock()

    def taken(self) -> tuple[Taken, ...]:
        """The updates of the open round so far."""
        with self._lock:
            return self._round.taken

    def reports(self) -> dict[str, Report]:
        """The newest report of each volunteer; whoever is silent has left."""
        with self._lock:
            return dict(self._reports)

    def present(self) -> set[str]:
        """Volunteers that have been heard from lately."""
        with self._lock:
            since = self._clock() - SILENT_SECONDS
            return {
                peer
                for peer, report in self._reports.items()
                if report.state != PeerState.LEFT and self._heard[peer] >= since
            }

    def holders(self, sha256: str) -> list[Sequence[str]]:
        """Addresses of volunteers that may have a payload: its owner's, then some others'."""
        present = self.present()
        with self._lock:
            owner = self._owners.get(sha256)
            if owner is None:
                return []
            reachable = {
                peer: report.addresses
                for peer, report in self._reports.items()
                if report.addresses and peer in present
            }
        others = sorted(reachable.keys() - {owner})
        chosen = random.sample(others, min(len(others), MORE_HOLDERS))
        return [reachable[peer] for peer in (owner, *chosen) if peer in reachable]

    def describe(self) -> dict[str, object]:
        """The run's rounds, as anybody may know them."""
        return {
            "run": self.swarm.run,
            "round": self.state.round,
            "finished": self.finished,
            "peers": len(self.present()),
            "judging": self._is_hearing(),
        }

    def judge_updates(self) -> None:
        """Measure the effects of the updates that have come; uploads go on meanwhile.

        Where volunteers judge, this measures a sample, and in the end what they leave open. The
        thread that closes rounds calls it.

        Raises:
            ClosingError: an update can no longer be had.
        """
        if self._judge is None:
            return
        with self._lock:
            here, state, hearing = self._round, self.state, self._hearing
            if hearing is not None:
                hearing.check(self._measured)
            waiting = self._waiting()
        # First what must be measured: that may bring lies to light, and leave more to measure.
        while needed := [one for one in waiting if self._believed(one, hearing) is None]:
            for one in needed:
                effect = self._judge.measure(here.of.number, state.weights, here.read(one))
                with self._lock:
                    self._effects[one.peer] = effect, one.samples
                    self._measured[one.sha256] = effect.finding
                    if hearing is not None:
                        hearing.check(self._measured)
            waiting = [one for one in waiting if one.sha256 not in self._measured]
        for one in waiting:
            found = self._believed(one, hearing)
            assert found is not None
            effect = self._judge.believe(found, here.read(one), len(state.weights))
            with self._lock:
                self._effects[one.peer] = effect, one.samples
            if self._panel is not None and hearing is not None:
                self._panel.believe(hearing, one)

    def close_if_due(self, key: PeerKey) -> Closed | None:
        """Close the open round if it is time to, and open the next.

        Where volunteers judge, a call first announces that, and a later one closes the round.

        Raises:
            ClosingError: an update can no longer be had.
        """
        with self._lock:
            if self.finished or not (self._hearing or self._is_due()):
                return None
            if self._panel is not None and self._hearing is None and self._not_judged():
                self._round.takes_more = False
                self._hearing = self._panel.open(
                    self.swarm, self._round.of, self._round.taken, key, self._clock()
                )
            if self._is_hearing() or self._not_judged():
                return None
            liars = self._note_liars()
            left_out = self._leave_out()
            number, taken = self._round.of.number, self._round.taken
            believed = len(self._effects) - len(self._measured)
            self.state = self._round.close(key)
            self._last = frozenset(one.peer for one in taken) | left_out.keys()
            self._open()
            return Closed(number, taken, dict(self._reports), left_out, liars, believed)

    def finish(self) -> None:
        """Take nothing any more, and say that the run is over."""
        with self._lock:
            self.finished = True

    def note_download(self, sha256: str, size: int) -> None:
        """Count a file that a volunteer downloads."""
        is_checkpoint = sha256 in map(self.store.find, self.store.names(catching_up.FOLDER))
        with self._lock:
            if is_checkpoint:
                self.bytes_to_newcomers += size
            else:
                self.bytes_out += size

    def _open(self) -> None:
        """Open the round of the present state, with updates that came before a restart."""
        self._opened = self._clock()
        self._effects: dict[str, tuple[Effect, int]] = {}
        self._measured: dict[str, Finding] = {}  # by this host itself, by payload
        self._spots: dict[str, bool] = {}  # whether this host measures a payload in any case
        self._hearing = None
        self._round = OpenRound(self.swarm, self.state, self.policy, self._opened)
        for sha256 in peers.published(self.store, self.state.round):
            with suppress(PayloadError):
                self._round.offer(sha256, self._opened)

    def _not_judged(self) -> list[Taken]:
        if self._judge is None:
            return []
        return [one for one in self._round.taken if one.peer not in self._effects]

    def _waiting(self) -> list[Taken]:
        """Updates to be judged now."""
        waiting = self._not_judged()
        if self._panel is None:
            return waiting
        for one in waiting:
            if one.sha256 not in self._spots:
                self._spots[one.sha256] = self._panel.is_spot()
        if self._hearing is None and not self._panel.can_meet(
            self._round.of.number, len(self._known())
        ):
            return waiting
        if self._hearing is None or self._is_hearing():
            return [one for one in waiting if self._spots[one.sha256]]
        return waiting

    def _known(self) -> set[str]:
        """Whoever has an update in the round or is expected to have."""
        return self._expected() | {one.peer for one in self._round.taken}

    def _is_hearing(self) -> bool:
        """True while verdicts are waited for."""
        return self._hearing is not None and not self._hearing.is_over(self._clock())

    def _believed(self, one: Taken, hearing: Hearing | None) -> Finding | None:
        """The figure of an update's judges, if it counts."""
        if hearing is None or self._spots.get(one.sha256, False):
            return None
        return hearing.finding(one.sha256)

    def _note_liars(self) -> frozenset[str]:
        if self._panel is None or self._hearing is None or self._judge is None:
            return frozenset()
        self._judge.forget(self._panel.close(self._hearing, self._measured))
        return frozenset(self._hearing.liars)

    def _leave_out(self) -> dict[str, str]:
        """Leave out what the judge finds bad; gives whose updates, and why."""
        left_out = {} if self._judge is None else self._judge.weigh(self._effects)
        self._round.leave_out(left_out)
        self.refused += len(left_out)
        return left_out

    def _is_due(self) -> bool:
        """True if the round's time has come, or if nobody who was heard is missing."""
        if self._round.is_due(self._clock()):
            return True
        taken, expected = {one.peer for one in self._round.taken}, self._expected()
        return bool(taken and expected) and expected <= taken

    def _expected(self) -> set[str]:
        """Whoever gave an update to the last round or was heard training since then."""
        here = {
            peer
            for peer, report in self._reports.items()
            if report.state == PeerState.TRAINING and self._heard[peer] >= self._opened
        }
        gone = {peer for peer, report in self._reports.items() if report.state == PeerState.LEFT}
        return (here | self._last) - gone

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
        return grant.peer_id
