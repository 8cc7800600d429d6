"""The books of a run with local steps: credit by the signed lists of what the rounds took."""

import statistics
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from training.monitor.presence import Presence
from training.monitor.tally import Pace
from training.records.owners import contributor_of
from training.run.live import Contributor, PeerState, ProgressLine, timestamp
from training.sparse.closing import Taken
from training.sparse.report import Report


@dataclass
class Session:
    """A volunteer's account of itself since its start: bytes of files."""

    sent: int = 0
    received: int = 0


@dataclass
class Entry:
    """A volunteer; `before` is the account of its earlier sessions, `now` that of this one.

    Attributes:
        presence: when the monitor heard it.
        samples, steps: that the lists give it.
        session: the start of its newest one. told: the time of its newest report; both as it
            says.
        milestones: of its first session.
    """

    name: str
    presence: Presence
    state: str = PeerState.SYNCING.value
    samples: int = 0
    steps: int = 0
    session: float = 0.0
    told: float = 0.0
    milestones: dict[str, float] = field(default_factory=dict)
    before: Session = field(default_factory=Session)
    now: Session = field(default_factory=Session)

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> "Entry":
        """Read what `asdict` made."""
        accounts = {name: Session(**value[name]) for name in ("before", "now")}
        return cls(**(value | accounts | {"presence": Presence(**value["presence"])}))


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
            if report.time != entry.told:
                entry.told = report.time
                entry.presence.hear(now)
            if report.session != entry.session:
                earlier = (asdict(entry.before), asdict(entry.now))
                entry.before = Session(**{k: earlier[0][k] + earlier[1][k] for k in earlier[0]})
                entry.session = report.session
            entry.now = Session(report.bytes_sent, report.bytes_received)
            entry.name = report.name
            entry.state = report.state if peer in present else PeerState.LEFT.value
            if entry.before == Session():
                entry.milestones = dict(report.milestones)
        for key, entry in list(self._entries.items()):
            if entry.presence.is_silent(now):
                entry.state = PeerState.LEFT.value
            if not entry.steps and entry.presence.is_forgotten(now):
                del self._entries[key]

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
        states = [entry.state for entry in self._entries.values()]
        return ProgressLine(
            step=number + 1,
            time=timestamp(now),
            loss=_mean_loss(number, taken, reports),
            samples=samples,
            samples_per_second=self._pace.add(number + 1, samples, now),
            training=states.count(PeerState.TRAINING.value),
            syncing=states.count(PeerState.SYNCING.value),
            left=states.count(PeerState.LEFT.value),
            bytes_sent=traffic.bytes_in,
            bytes_received=traffic.bytes_out,
            rejected=traffic.refused,
        )

    def contributors(self) -> list[Contributor]:
        """All volunteers so far, who did most first."""
        everyone = [_make_contributor(key, entry) for key, entry in self._entries.items()]
        return sorted(everyone, key=lambda one: (-one.samples, one.first_seen))

    def state(self) -> dict[str, Any]:
        """State for a new process to continue from, as JSON."""
        entries = {key: asdict(entry) for key, entry in self._entries.items()}
        return {"next_round": self.next_round, "entries": entries}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from what `state` gave."""
        self.next_round = state["next_round"]
        self._entries = {key: Entry.from_dict(value) for key, value in state["entries"].items()}

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


def _make_contributor(key: str, entry: Entry) -> Contributor:
    return Contributor(
        id=key,
        name=entry.name,
        samples=entry.samples,
        seconds=round(entry.presence.seconds, 1),
        first_seen=timestamp(entry.presence.first),
        last_seen=timestamp(entry.presence.last),
        state=entry.state,
        steps=entry.steps,
        milestones=entry.milestones,
        bytes_sent=entry.before.sent + entry.now.sent,
        bytes_received=entry.before.received + entry.now.received,
    )
