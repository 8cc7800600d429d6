"""Accounts of volunteers, as both kinds of run keep them in the monitor's books."""

import abc
import operator
from collections.abc import Iterable
from dataclasses import astuple, dataclass, field
from typing import TypeVar

from training.run.live import Contributor, PeerState, timestamp

SILENCE_SECONDS = 35.0  # three reports missed: whoever is silent for longer has left
FORGOTTEN_SECONDS = 3600.0  # of silence, after which whoever earned nothing is forgotten
SHORTEST_STEP_SECONDS = 0.25  # below that, a difference of two volunteers' clocks


@dataclass
class Presence:
    """When the monitor heard a volunteer, by the monitor's own clock in seconds since 1970.

    Attributes:
        first, last: first and newest report.
        seconds: that the volunteer was there: between reports that follow each other closely.
    """

    first: float
    last: float
    seconds: float = 0.0

    def hear(self, now: float) -> None:
        """Note a new report."""
        if 0 < now - self.last <= SILENCE_SECONDS:
            self.seconds += now - self.last
        self.last = now


@dataclass
class Totals:
    """A volunteer's work: sequences, steps, and micro-batches whose loss was not finite."""

    samples: int = 0
    steps: int = 0
    rejected: int = 0

    def __add__(self, other: "Totals") -> "Totals":
        return Totals(*map(operator.add, astuple(self), astuple(other)))


@dataclass
class Account(abc.ABC):
    """A volunteer.

    Attributes:
        presence: when the monitor heard it.
        session: the start of its newest session. told: the time of its newest report; both as it
            says.
        milestones: of its first session.
        bytes_sent, bytes_received: exchanged for its steps, as it reports.
    """

    name: str
    presence: Presence
    state: str = PeerState.SYNCING.value
    session: float = 0.0
    told: float = 0.0
    milestones: dict[str, float] = field(default_factory=dict)
    bytes_sent: int = 0
    bytes_received: int = 0

    @property
    @abc.abstractmethod
    def credited(self) -> Totals:
        """The work that counts."""

    def describe(self, identity: str) -> Contributor:
        """Its entry on the live page."""
        return Contributor(
            id=identity,
            name=self.name,
            samples=self.credited.samples,
            seconds=round(self.presence.seconds, 1),
            first_seen=timestamp(self.presence.first),
            last_seen=timestamp(self.presence.last),
            state=self.state,
            steps=self.credited.steps,
            milestones=self.milestones,
            bytes_sent=self.bytes_sent,
            bytes_received=self.bytes_received,
        )


A = TypeVar("A", bound=Account)


def note_silence(accounts: dict[str, A], now: float) -> None:
    """Whoever is silent has left; after an hour nothing is kept of whoever earned nothing."""
    for identity, account in list(accounts.items()):
        silent = now - account.presence.last
        if silent > SILENCE_SECONDS:
            account.state = PeerState.LEFT.value
        if silent > FORGOTTEN_SECONDS and account.credited == Totals():
            del accounts[identity]


def list_contributors(accounts: dict[str, A]) -> list[Contributor]:
    """All volunteers so far, who did most first."""
    everyone = [account.describe(identity) for identity, account in accounts.items()]
    return sorted(everyone, key=lambda one: (-one.samples, one.first_seen))


def count(accounts: Iterable[Account], state: PeerState) -> int:
    """Count the volunteers in a state."""
    return sum(account.state == state.value for account in accounts)


@dataclass(slots=True)
class Pace:
    """Samples a second of wall-clock time, from one step to the next.

    The volunteers' clocks disagree by a little: where steps seem to follow each other at once, or
    in the wrong order, their samples are counted with the next step that took time.
    """

    _step: int = 0
    _since: float | None = None
    _samples: int = 0
    _rate: float = 0.0

    def add(self, step: int, samples: int, time: float) -> float:
        """The pace at this step; 0 where the step before was not seen."""
        if self._since is None or step != self._step + 1:
            self._since, self._samples, self._rate = time, 0, 0.0
        else:
            self._samples += samples
            if time - self._since >= SHORTEST_STEP_SECONDS:
                self._rate = round(self._samples / (time - self._since), 3)
                self._since, self._samples = time, 0
        self._step = step
        return self._rate
