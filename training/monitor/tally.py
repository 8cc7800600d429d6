"""The monitor's books: from the volunteers' reports to global steps and contributions.

No report is taken at its word. Whoever claims samples must have been seen with them by those it
averaged with (`witnesses`); a report that is older than one already taken is a replay.
"""

import logging
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from pydantic import TypeAdapter

from training.averaging.matchmaking import LARGEST
from training.monitor.accounts import (
    SILENCE_SECONDS,
    Account,
    Pace,
    Presence,
    Totals,
    count,
    list_contributors,
    note_silence,
)
from training.monitor.witnesses import Testimony
from training.records.reports import MOST_STEPS, RECENT_STEPS, PeerReport, StepReport
from training.run.live import Contributor, PeerState, ProgressLine, timestamp

logger = logging.getLogger(__name__)

SETTLING_SECONDS = 10.0  # how long a step waits for the reports of the slow
REMEMBERED_STEPS = 32  # for reports that come after their step was written


@dataclass
class Member(Account):
    """A volunteer: `before` are the totals of its earlier sessions, `now` those of this one.

    Attributes:
        step: the newest in its reports.
        looked_at: its newest step whose report was looked at, 0 before the first of a session.
        unseen: the run's unseen steps, `Tally.unseen`, that its claims are accounted for.
        disputed: what of its claims nobody confirmed.
        struck: its newest steps whose claims could not be, by the claims' session: they are
            disputed before the step is written, and once.
        refused: session and time of the report that was refused last.
    """

    step: int = 0
    looked_at: int = 0
    unseen: int = 0
    before: Totals = field(default_factory=Totals)
    now: Totals = field(default_factory=Totals)
    disputed: Totals = field(default_factory=Totals)
    refused: tuple[float, float] = (0.0, 0.0)
    struck: list[tuple[float, int]] = field(default_factory=list)

    @property
    def credited(self) -> Totals:
        """Its claims, without those that nobody confirmed."""
        total, disputed = self.before + self.now, self.disputed
        return Totals(total.samples - disputed.samples, total.steps - disputed.steps)

    def add_traffic(self, report: StepReport) -> None:
        """Count the bytes that it reports with one step."""
        self.bytes_sent += report.bytes_sent
        self.bytes_received += report.bytes_received


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
        self._pace = Pace()
        self.refused = 0
        self.unseen = 0  # steps that were made while nobody looked
        self.ordered_step = 0  # where the moderators' last order sent everybody
        self._looked_at = last_step
        self._unseen_before = 0  # `unseen` at the last look
        self._trained: frozenset[str] = frozenset()  # who was in training at the last look
        self._members: dict[str, Member] = {}
        self._steps: dict[int, Testimony] = {}
        self._written: dict[int, Testimony] = {}
        self._first_seen: dict[int, float] = {}
        self._rejected = 0
        self._apart: tuple[int, int] | None = None  # first and last step in which groups were

    def observe(self, reports: Mapping[str, PeerReport], now: float) -> None:
        """Take in the newest report of each volunteer."""
        ceiling = max(_credible_step(reports), self.ordered_step + RECENT_STEPS)
        self._trained, self._unseen_before = self._training(), self.unseen
        self._note_unseen_steps(reports, ceiling)
        for identity, report in reports.items():
            if self._take(identity, report, now):
                self._take_steps(identity, report, ceiling, now)
        note_silence(self._members, now)

    def refuse(self, count: int) -> None:
        """Count records that were refused before they came here."""
        self.refused += count

    def furthest_step(self) -> int:
        """The furthest step that a present volunteer reports and that is credible."""
        present = [m.step for m in self._members.values() if m.state != PeerState.LEFT.value]
        ceiling = statistics.median_high(present) + RECENT_STEPS if present else 0
        return max([self.last_step, *(step for step in present if step <= ceiling)])

    def finished_lines(self, now: float) -> Iterable[ProgressLine]:
        """Give a line for each step whose reports are all here or have had their time."""
        for step in sorted(self._steps):
            if not self._is_settled(step, now):
                return
            yield self._make_line(step, self._steps.pop(step))

    def contributors(self) -> list[Contributor]:
        """All volunteers so far, who did most first."""
        return list_contributors(self._members)

    def lacks_reports(self, step: int) -> bool:
        """True if a volunteer in training has not yet reported a step that others made."""
        training = [m for m in self._members.values() if m.state == PeerState.TRAINING.value]
        return any(member.looked_at < step for member in training)

    def count(self, state: PeerState) -> int:
        """Count the volunteers in a state."""
        return count(self._members.values(), state)

    def state(self) -> dict[str, Any]:
        """State for a new process to continue from, as JSON."""
        members = {key: asdict(member) for key, member in self._members.items()}
        return {
            "members": members,
            "rejected": self._rejected,
            "refused": self.refused,
            "unseen": self.unseen,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from what `state` gave.

        Steps that were looked at and not yet written were lost with the process, so they are
        looked at again.
        """
        self._members = TypeAdapter(dict[str, Member]).validate_python(state["members"])
        for member in self._members.values():
            member.looked_at = min(member.looked_at, self.last_step)
        self._rejected = state["rejected"]
        self.refused = state["refused"]
        self.unseen = state["unseen"]

    def describe_partition(self) -> str:
        """A sentence on groups that trained apart lately; empty if there were none."""
        if self._apart is None or self._apart[1] <= self.last_step - REMEMBERED_STEPS:
            return ""
        first, last = self._apart
        steps = f"step {first}" if first == last else f"steps {first} to {last}"
        return (
            f"in {steps}, volunteers trained in groups that could not reach each other: the "
            "weights have the work of only one of them"
        )

    def _note_apart(self, step: int, testimony: Testimony) -> None:
        """Note a step that groups of volunteers made apart, where all could be in one group."""
        if len(testimony.reports) > LARGEST or testimony.count_groups() < 2:
            return
        if self._apart is None or self._apart[1] < step - REMEMBERED_STEPS:
            self._apart = step, step
        self._apart = min(self._apart[0], step), max(self._apart[1], step)

    def _take(self, identity: str, report: PeerReport, now: float) -> bool:
        """Take a volunteer's totals; False when there is nothing new or they cannot be."""
        member = self._members.get(identity)
        if member is None:
            member = Member(report.name, Presence(now, now), "", report.session)
            member.step, member.unseen = report.step, self._unseen_before
            self._members[identity] = member
        if report.time == member.told and report.session == member.session:
            return False
        if report.session < member.session or report.time <= member.told:
            self._refuse(member, report, "an older report is shown again")
            return False
        if report.session != member.session:
            member.before, member.now = member.before + member.now, Totals()
            member.session, member.looked_at = report.session, 0
        if report.samples < member.now.samples or report.steps < member.now.steps:
            self._refuse(member, report, "totals do not shrink")
            return False
        self._dispute_untold(member, report)
        member.name, member.state, member.told = report.name, report.state, report.time
        member.presence.hear(now)
        member.step, member.unseen = report.step, self.unseen
        if member.before == Totals():
            member.milestones = dict(report.milestones)
        member.now = Totals(report.samples, report.steps, report.rejected)
        return True

    def _refuse(self, member: Member, report: PeerReport, why: str) -> None:
        if member.refused == (report.session, report.time):
            return  # the same record, still there at the next look
        member.refused = (float(report.session), float(report.time))
        self.refused += 1
        logger.warning("a report of %s was refused: %s", member.name, why)

    def _dispute_untold(self, member: Member, report: PeerReport) -> None:
        """Take back what totals grew by beyond the steps reported and those that nobody saw."""
        told = [step.samples for step in report.recent if step.step > member.looked_at]
        unseen = self.unseen - member.unseen
        samples = report.samples - member.now.samples - sum(told)
        steps = report.steps - member.now.steps - len(told)
        excess = Totals(
            samples=max(0, samples - unseen * self.target_batch_size), steps=max(0, steps - unseen)
        )
        if excess != Totals():
            member.disputed += excess
            self.refused += 1
            words = "%s claims %d samples in %d steps that it does not report"
            logger.warning(words, member.name, excess.samples, excess.steps)

    def _note_unseen_steps(self, reports: Mapping[str, PeerReport], ceiling: int) -> None:
        """Note steps that were made while this monitor was down: their reports are gone.

        One volunteer's word that the run is further is not enough, unless it is the only one and
        known.
        """
        telling = {key: {step.step for step in r.recent} for key, r in reports.items() if r.recent}
        told = Counter(step for steps in telling.values() for step in steps)
        least = 1 if len(telling) == 1 and telling.keys() <= self._members.keys() else 2
        new = [s for s, times in told.items() if self._looked_at < s <= ceiling and times >= least]
        if new:
            known = sum(self._looked_at < s < min(new) for s in {*self._steps, *self._written})
            self.unseen += min(new) - self._looked_at - 1 - known
            self._looked_at = max(new)

    def _take_steps(self, identity: str, report: PeerReport, ceiling: int, now: float) -> None:
        member = self._members[identity]
        for step in report.recent:
            if step.step <= member.looked_at:
                continue
            testimony = self._written.get(step.step) or self._steps.get(step.step)
            present = testimony.reports if testimony else ()
            if (member.session, step.step) in member.struck:
                continue
            if (
                step.step > ceiling
                or step.step <= self.last_step - REMEMBERED_STEPS  # nobody can confirm it any more
                or step.samples > 2 * self.target_batch_size
                or identity in present  # in a session before
            ):
                self._strike(member, step)
            elif step.step <= self.last_step:
                late = self._written.setdefault(step.step, Testimony())
                late.add(identity, step)
                member.add_traffic(step)
                self._note_apart(step.step, late)
                late.credited[identity] = late.credit(identity)
                self._dispute(member, step, late.credited[identity])
                self._confirm(late, step)
            else:
                if step.step not in self._steps:
                    self._steps[step.step] = Testimony(self._trained - {identity})
                    self._first_seen[step.step] = now
                self._steps[step.step].add(identity, step)
        newest = [step.step for step in report.recent if step.step <= ceiling]
        member.looked_at = max([member.looked_at, *newest])

    def _strike(self, member: Member, claim: StepReport) -> None:
        """Take back a claim that cannot be; it may be looked at again, after a restart too."""
        member.struck = [*member.struck, (member.session, claim.step)][-MOST_STEPS:]
        self._dispute(member, claim, 0)

    def _dispute(self, member: Member, claim: StepReport, credited: int) -> None:
        """Take back what a volunteer claims beyond what the others saw."""
        if credited >= claim.samples:
            return
        member.disputed += Totals(samples=claim.samples - credited, steps=int(credited == 0))
        self.refused += 1
        logger.warning(
            "%s claims %d samples in step %d, the others saw %d",
            member.name,
            claim.samples,
            claim.step,
            credited,
        )

    def _confirm(self, written: Testimony, late: StepReport) -> None:
        """Give back what nobody had confirmed before this late report."""
        for other in {str(entry.contributor) for entry in late.seen}:
            samples = written.credit(other) if written.credited.get(other) == 0 else 0
            if samples:
                written.credited[other] = samples
                member = self._members[other]
                member.disputed += Totals(samples=-samples, steps=-1)
                words = "%s is credited late with %d samples in step %d"
                logger.info(words, member.name, samples, late.step)

    def _training(self) -> frozenset[str]:
        """The volunteers in training."""
        state = PeerState.TRAINING.value
        return frozenset(key for key, member in self._members.items() if member.state == state)

    def _is_settled(self, step: int, now: float) -> bool:
        """True if a step can be written: no minority's claim that the run is further.

        Where steps are missing before it, more must have reached it than not; one volunteer alone
        is believed only once the others have had time to report.
        """
        training, reports = self._training(), self._steps[step].reports
        waited = now - self._first_seen[step]
        missing = training - reports.keys()
        if missing and waited <= SETTLING_SECONDS:
            return False
        behind = sum(self._members[key].step < step for key in missing)
        there = len(training | reports.keys()) - behind
        if step <= max(self.last_step, self.ordered_step) + RECENT_STEPS:
            return there >= behind
        return there > behind and (there > 1 or waited > SILENCE_SECONDS)

    def _make_line(self, step: int, testimony: Testimony) -> ProgressLine:
        reports, training = testimony.reports, self._training()
        credited = {identity: testimony.credit(identity, training) for identity in reports}
        testimony.credited = credited
        self._note_apart(step, testimony)
        for identity, report in reports.items():
            self._members[identity].add_traffic(report)
            self._dispute(self._members[identity], report, credited[identity])
        heard = [report for identity, report in reports.items() if credited[identity]]
        time = statistics.median_high([report.time for report in reports.values()])
        time = max(time, self.last_step_time or 0.0)
        samples = sum(credited.values())
        mini_steps = sum(report.mini_steps for report in heard)
        rejected = sum(m.before.rejected + m.now.rejected for m in self._members.values())
        line = ProgressLine(
            step=step,
            time=timestamp(time),
            loss=sum(r.loss for r in heard) / mini_steps if mini_steps else None,
            samples=samples,
            samples_per_second=self._pace.add(step, samples, time),
            training=self.count(PeerState.TRAINING),
            syncing=self.count(PeerState.SYNCING),
            left=self.count(PeerState.LEFT),
            bytes_sent=sum(report.bytes_sent for report in reports.values()),
            bytes_received=sum(report.bytes_received for report in reports.values()),
            rejected=max(0, rejected - self._rejected) + self.refused,
        )
        self._rejected, self.refused = rejected, 0
        self.last_step, self.last_step_time = step, time
        self._looked_at = max(self._looked_at, step)
        self._first_seen.pop(step)
        self._written[step] = testimony
        for old in [number for number in self._written if number <= step - REMEMBERED_STEPS]:
            del self._written[old]
        return line


def _credible_step(reports: Mapping[str, PeerReport]) -> int:
    """No step is believed that is far ahead of the middle of those present."""
    present = [r.step for r in reports.values() if r.state != PeerState.LEFT.value]
    return statistics.median_high(present) + RECENT_STEPS if present else 0
