"""A volunteer's work since it started, and the report that it publishes."""

import random
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from hivemind.utils import get_dht_time

from training.averaging.reduction import Round
from training.network.traffic import Traffic
from training.records.owners import contributor_of
from training.records.reports import (
    MOST_SEEN,
    MOST_STEPS,
    RECENT_STEPS,
    PeerReport,
    StepReport,
    Witness,
)
from training.run import milestones
from training.run.live import PeerState

TOLD_SECONDS = 30.0  # a step is told for so long at least: the monitor waits 10 s for the slow


@dataclass
class Contribution:
    """Counts micro-batches towards global steps.

    Attributes:
        name: how the volunteer wants to be called.
        samples: training sequences that went into a global step.
        steps: global steps to which they went.
        pending: samples computed towards the step that is not finished yet.
        rejected: micro-batches left out because their loss was not finite.
        loss: mean loss of the last global step's own micro-batches, None before the first.
        recent: the last steps, in every report.
        untold: steps that the monitor may not have written, in the next report too.
    """

    name: str
    session: float = field(default_factory=get_dht_time)
    samples: int = 0
    steps: int = 0
    rejected: int = 0
    pending: int = 0
    loss: float | None = None
    recent: deque[StepReport] = field(default_factory=lambda: deque(maxlen=RECENT_STEPS))
    untold: deque[StepReport] = field(default_factory=lambda: deque(maxlen=MOST_STEPS))
    _taken: dict[int, float] = field(default_factory=dict)  # when each untold step was first taken
    _loss: float = 0.0
    _mini_steps: int = 0
    _traffic: Traffic = field(default_factory=lambda: Traffic(0, 0))

    def add(self, samples: int, loss: float) -> None:
        """Count a micro-batch towards the next global step."""
        self.pending += samples
        self._loss += loss
        self._mini_steps += 1

    def discard(self) -> None:
        """Forget what was counted towards a step that was made without us."""
        self.pending, self._loss, self._mini_steps = 0, 0.0, 0

    def finish_step(self, step: int, traffic: Traffic, seen: Round | None = None) -> None:
        """Note that a global step was made with what was counted, and the traffic until now.

        `seen` is what this volunteer saw of the averaging, None where there was none.
        """
        if self._mini_steps:
            self.untold.append(self._tell(step, traffic, seen))
            self.samples += self.pending
            self.steps += 1
            self.loss = self._loss / self._mini_steps
        self.discard()

    def witness(self, step: int, seen: Round | None) -> None:
        """Note what whoever averages and computes nothing saw of a step."""
        if seen is not None:
            self._tell(step, self._traffic, seen)

    def _tell(self, step: int, traffic: Traffic, seen: Round | None) -> StepReport:
        report = StepReport(
            step=step,
            time=get_dht_time(),
            samples=self.pending,
            loss=self._loss,
            mini_steps=self._mini_steps,
            bytes_sent=traffic.sent - self._traffic.sent,
            bytes_received=traffic.received - self._traffic.received,
            seen=witnesses(seen) if seen else [],
        )
        self._traffic = traffic
        self.recent.append(report)
        return report

    def report(self, state: PeerState, step: int, samples_per_second: float) -> PeerReport:
        """Make the record to publish."""
        earlier = [step for step in self.untold if step not in self.recent]
        return PeerReport(
            name=self.name,
            state=state.value,
            session=self.session,
            time=get_dht_time(),
            step=step,
            samples=self.samples,
            samples_per_second=samples_per_second,
            steps=self.steps,
            rejected=self.rejected,
            recent=[*earlier, *self.recent][-MOST_STEPS:],
            milestones=milestones.reached(),
        )

    def note_taken(self, steps: Sequence[StepReport], sent: float) -> None:
        """Note that the monitor took a report of these steps, sent at this second of any clock.

        They are told until a later report is taken, `TOLD_SECONDS` after the first that told them:
        a monitor that is killed forgets the steps that it has read and not yet written.
        """
        for step in steps:
            self._taken.setdefault(step.step, sent)
        first = {step.step: self._taken.get(step.step, sent) for step in self.untold}
        untold = (step for step in self.untold if sent - first[step.step] < TOLD_SECONDS)
        self.untold = deque(untold, maxlen=MOST_STEPS)
        self._taken = {step.step: first[step.step] for step in self.untold}

    def note_not_taken(self) -> None:
        """Note that the monitor took no report: it may have forgotten those that it took before."""
        self._taken.clear()


def witnesses(seen: Round) -> list[Witness]:
    """Whom we averaged with, at random where there were many."""
    peers = list(seen.weights)
    chosen = random.sample(peers, min(MOST_SEEN, len(peers)))
    return [Witness(contributor=contributor_of(p), weight=seen.weights[p]) for p in chosen]
