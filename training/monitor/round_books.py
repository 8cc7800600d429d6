"""The books of a run with local steps: credit by the signed lists of what the rounds took."""

import statistics
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pydantic import TypeAdapter

from training.monitor.accounts import (
    Account,
    Pace,
    Presence,
    Totals,
    count,
    list_contributors,
    note_silence,
)
from training.records.owners import contributor_of
from training.run.live import Contributor, PeerState, ProgressLine, timestamp
from training.sparse.closing import Taken
from training.sparse.report import Report


@dataclass
class Entry(Account):
    """A volunteer.

    Attributes:
        samples, steps: that the lists give it.
        sessions: that it has begun.
        session_sent, session_received: bytes in its newest report, since that session's start.
    """

    samples: int = 0
    steps: int = 0
    sessions: int = 0
    session_sent: int = 0
    session_received: int = 0

    @property
    def credited(self) -> Totals:
        """Samples and steps by the lists of the rounds."""
        return Totals(self.samples, self.steps)

    def hear(self, report: Report, now: float) -> None:
        """Update the account from the volunteer's own report."""
        if report.time != self.told:
            self.told = report.time
            self.presence.hear(now)
        if report.session != self.session or not self.sessions:
            self.session, self.sessions = report.session, self.sessions + 1
            self.session_sent = self.session_received = 0
        self.bytes_sent += report.bytes_sent - self.session_sent
        self.bytes_received += report.bytes_received - self.session_received
        self.session_sent, self.session_received = report.bytes_sent, report.bytes_received
        self.name = report.name
        if self.sessions == 1:
            self.milestones = dict(report.milestones)


@dataclass(frozen=True)
class Traffic:
    """Of a round, as the host counted: bytes to and from volunteers, uploads it did not take."""

    bytes_in: int = 0
    bytes_out: int = 0
    refused: int = 0


class RoundBooks:
    """Counts rounds and contributions; `state` and `restore` carry it over a restart.

    Attributes:
        next_round: the first that has not been booked.
    """

    def __init__(self) -> None:
        self.next_round = 0
        self._entries: dict[str, Entry] = {}
        self._pace = Pace()

    def hear(self, reports: Mapping[str, Report], present: Collection[str], now: float) -> None:
        """Take in what volunteers tell of themselves, by identity; `now` in seconds since 1970.

        Whoever was silent for an hour and earned nothing is forgotten.
        """
        for peer, report in reports.items():
            entry = self._entry(peer, now)
            entry.hear(report, now)
            entry.state = report.state if peer in present else PeerState.LEFT.value
        note_silence(self._entries, now)

    def book(
        self,
        number: int,
        taken: Collection[Taken],
        reports: Mapping[str, Report],
        now: float,
        traffic: Traffic = Traffic(),
    ) -> ProgressLine:
        """Credit what a round took, and give its line; steps are counted from 1."""
        for one in taken:
            entry = self._entry(one.peer, now)
            entry.samples += one.samples
            entry.steps += 1
        self.next_round = number + 1
        samples = sum(one.samples for one in taken)
        entries = self._entries.values()
        return ProgressLine(
            step=number + 1,
            time=timestamp(now),
            loss=_mean_loss(number, taken, reports),
            samples=samples,
            samples_per_second=self._pace.add(number + 1, samples, now),
            training=count(entries, PeerState.TRAINING),
            syncing=count(entries, PeerState.SYNCING),
            left=count(entries, PeerState.LEFT),
            bytes_sent=traffic.bytes_in,
            bytes_received=traffic.bytes_out,
            rejected=traffic.refused,
        )

    def contributors(self) -> list[Contributor]:
        """All volunteers so far, who did most first."""
        return list_contributors(self._entries)

    def state(self) -> dict[str, Any]:
        """State for a new process to continue from, as JSON."""
        entries = {key: asdict(entry) for key, entry in self._entries.items()}
        return {"next_round": self.next_round, "entries": entries}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from what `state` gave."""
        self.next_round = state["next_round"]
        self._entries = TypeAdapter(dict[str, Entry]).validate_python(state["entries"])

    def _entry(self, peer: str, now: float) -> Entry:
        key = contributor_of(peer)
        return self._entries.setdefault(key, Entry(key, Presence(now, now)))


def _mean_loss(
    number: int, taken: Collection[Taken], reports: Mapping[str, Report]
) -> float | None:
    """Mean over the samples of those who told their loss in this round."""
    told = [
        (report.loss, one.samples)
        for one in taken
        if (report := reports.get(one.peer)) is not None
        and report.number == number
        and report.loss is not None
    ]
    if not told:
        return None
    losses, samples = zip(*told, strict=True)
    return statistics.fmean(losses, weights=samples)
