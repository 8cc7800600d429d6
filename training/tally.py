"""The monitor's books: from the volunteers' reports to global steps and contributions."""

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from training.live import Contributor, PeerState, ProgressLine, timestamp
from training.metrics import RECENT_STEPS, PeerReport, StepReport

SILENCE_SECONDS = 35.0  # three reports missed: whoever is silent for longer has left
SETTLING_SECONDS = 10.0  # how long a step waits for the reports of the slow


@dataclass
class Totals:
    """What a volunteer has done, in sum."""

    samples: int = 0
    seconds: float = 0.0
    steps: int = 0
    rejected: int = 0

    def __add__(self, other: "Totals") -> "Totals":
        mine, theirs = asdict(self), asdict(other)
        return Totals(**{name: mine[name] + theirs[name] for name in mine})


@dataclass
class Member:
    """A volunteer: `before` are the totals of its earlier sessions, `now` those of this one."""

    name: str
    first_seen: float
    last_seen: float
    state: str
    session: float
    step: int
    before: Totals = field(default_factory=Totals)
    now: Totals = field(default_factory=Totals)

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> "Member":
        """Read what `asdict` made."""
        totals = {name: Totals(**value[name]) for name in ("before", "now")}
        return cls(**(value | totals))


class Tally:
    """Counts steps and contributions; `state` and `restore` carry it over a restart.

    Args:
        target_batch_size: samples of a global step: a volunteer who claims more is not counted.
        last_step: the newest step that is already written.
    """

    def __init__(self, target_batch_size: int, last_step: int = 0) -> None:
        self.target_batch_size = target_batch_size
        self.last_step = last_step
        self.last_step_time: float | None = None
        self.refused = 0
        self._members: dict[str, Member] = {}
        self._steps: dict[int, dict[str, StepReport]] = {}
        self._first_seen: dict[int, float] = {}
        self._rejected = 0

    def observe(self, reports: Mapping[str, PeerReport], now: float) -> None:
        """Take in the newest report of each volunteer."""
        for identity, report in reports.items():
            self._take(identity, report)
        for member in self._members.values():
            if now - member.last_seen > SILENCE_SECONDS:
                member.state = PeerState.LEFT.value
        ceiling = self._credible_step()
        for identity, report in reports.items():
            for step in report.recent:
                self._take_step(identity, step, ceiling, now)

    def finished_lines(self, now: float) -> Iterable[ProgressLine]:
        """Give a line for each step whose reports are all here or have had their time."""
        for step in sorted(self._steps):
            if not self._is_settled(step, now):
                return
            yield self._make_line(step, self._steps.pop(step))

    def contributors(self) -> list[Contributor]:
        """All volunteers so far, who did most first."""
        everyone = [_make_contributor(key, member) for key, member in self._members.items()]
        return sorted(everyone, key=lambda entry: (-entry.samples, entry.first_seen))

    def count(self, state: PeerState) -> int:
        """Count the volunteers in a state."""
        return sum(member.state == state.value for member in self._members.values())

    def state(self) -> dict[str, Any]:
        """What a new process needs to go on, as JSON has it."""
        members = {key: asdict(member) for key, member in self._members.items()}
        return {"members": members, "rejected": self._rejected, "refused": self.refused}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from what `state` gave."""
        members = state["members"].items()
        self._members = {key: Member.from_dict(value) for key, value in members}
        self._rejected = state["rejected"]
        self.refused = state["refused"]

    def _take(self, identity: str, report: PeerReport) -> None:
        member = self._members.get(identity)
        if member is None:
            member = Member(report.name, report.session, 0.0, "", report.session, report.step)
            self._members[identity] = member
        if report.time <= member.last_seen:
            return
        if report.session != member.session:
            member.before, member.now = member.before + member.now, Totals()
            member.session, member.step = report.session, report.step
        if not self._is_credible(report, member):
            self.refused += 1
            return
        member.name, member.state, member.last_seen = report.name, report.state, report.time
        member.step = report.step
        member.now = Totals(
            samples=report.samples,
            seconds=float(report.time) - float(report.session),
            steps=report.steps,
            rejected=report.rejected,
        )

    def _is_credible(self, report: PeerReport, member: Member) -> bool:
        """Refuse totals that shrink, or grow faster than whole global steps could."""
        growth = report.samples - member.now.samples
        # a first look comes late: all steps so far may have been this volunteer's alone
        since = 0 if member.last_seen == 0.0 else member.step
        possible = (max(0, report.step - since) + 2) * 2 * self.target_batch_size
        return 0 <= growth <= possible

    def _credible_step(self) -> int:
        """No step is believed that is far ahead of the middle of those present."""
        present = [m.step for m in self._members.values() if m.state != PeerState.LEFT.value]
        return statistics.median_high(present) + RECENT_STEPS if present else 0

    def _take_step(self, identity: str, report: StepReport, ceiling: int, now: float) -> None:
        if report.step <= self.last_step:
            return
        if report.step > ceiling or report.samples > 2 * self.target_batch_size:
            self.refused += 1
            return
        self._steps.setdefault(report.step, {})[identity] = report
        self._first_seen.setdefault(report.step, now)

    def _is_settled(self, step: int, now: float) -> bool:
        training = [key for key, m in self._members.items() if m.state == PeerState.TRAINING.value]
        complete = all(key in self._steps[step] for key in training)
        return complete or now - self._first_seen[step] > SETTLING_SECONDS

    def _make_line(self, step: int, reports: dict[str, StepReport]) -> ProgressLine:
        time = statistics.median_high([report.time for report in reports.values()])
        samples = sum(report.samples for report in reports.values())
        mini_steps = sum(report.mini_steps for report in reports.values())
        rejected = sum(m.before.rejected + m.now.rejected for m in self._members.values())
        line = ProgressLine(
            step=step,
            time=timestamp(time),
            loss=sum(r.loss for r in reports.values()) / mini_steps if mini_steps else None,
            samples=samples,
            samples_per_second=self._rate(step, samples, time),
            training=self.count(PeerState.TRAINING),
            syncing=self.count(PeerState.SYNCING),
            left=self.count(PeerState.LEFT),
            bytes_sent=sum(report.bytes_sent for report in reports.values()),
            bytes_received=sum(report.bytes_received for report in reports.values()),
            rejected=max(0, rejected - self._rejected) + self.refused,
        )
        self._rejected, self.refused = rejected, 0
        self.last_step, self.last_step_time = step, time
        self._first_seen.pop(step)
        return line

    def _rate(self, step: int, samples: int, time: float) -> float:
        """Samples a second of wall-clock time; 0 where the step before was not seen."""
        if self.last_step_time is None or step != self.last_step + 1:
            return 0.0
        return round(samples / max(time - self.last_step_time, 0.001), 3)


def _make_contributor(identity: str, member: Member) -> Contributor:
    total = member.before + member.now
    return Contributor(
        id=identity,
        name=member.name,
        samples=total.samples,
        seconds=round(total.seconds, 1),
        first_seen=timestamp(member.first_seen),
        last_seen=timestamp(member.last_seen),
        state=member.state,
        steps=total.steps,
    )
