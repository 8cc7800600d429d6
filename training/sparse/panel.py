r"""Judging by volunteers: drawing the judges of each round, and counting what they say.

All judges of a round measure on the same sequences, and so does the host, so that honest figures
agree but for rounding. An update's effect is

- the host's own figure, where it has one: it measures every update with the probability `SPOT`,
  decided in secret when the update comes;
- the middle one of its judges' figures, where there are `ENOUGH` and all agree;
- otherwise, when a judge disagrees or too few answered in time, what the host then measures.

Judges measure as far as their share of time goes. Where that is too little for each round, rounds
are heard more rarely, so that all judges can afford the same ones; the host judges the others.

A judge whose figure is not the host's is not drawn again. One honest judge among an update's
judges is therefore enough to bring any lie to light. Where all judges of an update lie together,
each lie is found out with the probability `SPOT`, and ends the part of all who told it: before
that, one such group gets (1 - SPOT) / SPOT = 3 false findings through on average. The records that
they falsified begin again. With the host as the last judge, a run whose volunteers all lie is
judged as one without judges.
"""

import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from training.access.signatures import PeerKey
from training.sparse import assignment, verdict
from training.sparse.assignment import FOLDER, MOST_ASSIGNED, Assignment, name_of
from training.sparse.closing import Taken
from training.sparse.payload import Round
from training.sparse.swarm import Swarm
from training.sparse.verdict import Finding, VerdictError

ENOUGH = 2  # judges of an update that must agree
SPOT = 0.25  # probability with which the host measures an update itself, whatever judges say
AGREED = 0.1  # of the standard error, by which honest figures may differ
ROUNDING = 1e-4  # nats, likewise: devices add up in different orders
COVERED = 0.75  # fraction of updates with enough figures, below which hearings become rarer
LONGEST_PAUSE = 64  # rounds between two hearings
REST = 10  # rounds in which a judge that did not answer is not drawn; twice as many each time

Disclose = Callable[[int], bytes]  # the file of the sequences on which a round is measured
Ban = Callable[[Collection[str]], None]  # told all liars so far


def agree(one: Finding, other: Finding) -> bool:
    """True where two figures for the same update and sequences differ by rounding alone."""
    if one == other:
        return True
    allowed = ROUNDING + AGREED * min(one.error, other.error)
    return abs(one.mean - other.mean) <= allowed and abs(one.error - other.error) <= allowed


@dataclass
class Hearing:
    """The judging of one round, on its way.

    Attributes:
        until: when no verdict is waited for any more.
        liars: judges whose figure is not the host's; none of theirs counts.
    """

    of: Round
    assignment: str
    shares: dict[str, tuple[str, ...]]
    until: float
    liars: set[str] = field(default_factory=set)
    _answers: dict[str, dict[str, Finding]] = field(default_factory=dict)

    def take(self, content: bytes, member: str | None = None) -> str:
        """Take a judge's verdict; gives the judge.

        Args:
            member: identity that it must be of; None: any.

        Raises:
            VerdictError: with the reason, when it does not count.
        """
        judge, findings = verdict.read(content, self.of, self.assignment, self.shares)
        if member not in (None, judge):
            raise VerdictError("signed by another than the grant is for")
        if self._answers.get(judge, findings) != findings:
            raise VerdictError("its judge has answered already")
        self._answers[judge] = findings
        return judge

    def is_over(self, now: float) -> bool:
        """True once all judges have answered, or their time is up."""
        return now >= self.until or self._answers.keys() == self.shares.keys()

    def absent(self) -> set[str]:
        """Judges that have not answered."""
        return self.shares.keys() - self._answers.keys()

    def finding(self, payload: str) -> Finding | None:
        """The middle one of a payload's figures; None where they disagree or are too few."""
        found = sorted(self._of(payload).values(), key=lambda one: one.mean)
        if len(found) < ENOUGH:
            return None
        middle = found[len(found) // 2]
        return middle if all(agree(one, middle) for one in found) else None

    def judges_of(self, payload: str) -> set[str]:
        """Judges whose figures for a payload count."""
        return set(self._of(payload))

    @property
    def covered(self) -> float:
        """Fraction of the updates for which enough judges have figures; 1 without any."""
        counts = dict.fromkeys((one for share in self.shares.values() for one in share), 0)
        for findings in self._answers.values():
            for payload in findings:
                counts[payload] += 1
        return sum(count >= ENOUGH for count in counts.values()) / len(counts) if counts else 1.0

    def check(self, own: Mapping[str, Finding]) -> None:
        """Find the liars, by what the host has measured itself."""
        for judge, findings in self._answers.items():
            both = findings.keys() & own.keys()
            if not all(agree(findings[payload], own[payload]) for payload in both):
                self.liars.add(judge)

    def _of(self, payload: str) -> dict[str, Finding]:
        return {
            judge: findings[payload]
            for judge, findings in self._answers.items()
            if payload in findings and judge not in self.liars
        }


class Panel:
    """Draws judges for each round, and remembers who may not judge.

    Args:
        disclose: gives the sequences of a round away, which are not used again.
        each: judges of an update.
        seconds: for their verdicts.
        chooser: of judges and of the updates that the host measures; nobody else knows its state.
        liars: of before. ban: notes the liars where a new process finds them; if that fails, the
            round stays open, and is tried again.

    Attributes:
        liars: judges that are not drawn again.
    """

    def __init__(
        self,
        disclose: Disclose,
        each: int = 3,
        seconds: float = 30.0,
        chooser: random.Random | None = None,
        liars: Collection[str] = (),
        ban: Ban = lambda _liars: None,
    ) -> None:
        self.liars = set(liars)
        self._disclose, self._each, self._seconds = disclose, each, seconds
        self._ban = ban
        self._chooser = chooser or random.SystemRandom()
        self._rests: dict[str, tuple[int, int]] = {}  # first round after a rest, its length
        self._pause = self._resumes = 0  # rounds between hearings, first round of the next one
        self._believed: dict[str, set[str]] = {}  # by judge, whose updates its figures decided

    def is_spot(self) -> bool:
        """Decide for an update that the host measures it itself."""
        return self._chooser.random() < SPOT

    def can_meet(self, number: int, peers: int) -> bool:
        """True if so many volunteers are enough to judge each other, in a round that is heard."""
        return self._each >= ENOUGH and peers > ENOUGH and number >= self._resumes

    def open(
        self, swarm: Swarm, of: Round, taken: Sequence[Taken], key: PeerKey, now: float
    ) -> Hearing:
        """Draw the judges of a round and announce them; without judges it is over at once."""
        shares = self.draw(of.number, taken)
        if not shares:
            return Hearing(of, "", {}, now)
        sequences = swarm.store.put(self._disclose(of.number))
        announced = assignment.publish(swarm, Assignment(of, sequences, shares), key)
        return Hearing(of, announced, shares, now + self._seconds)

    def draw(self, number: int, taken: Sequence[Taken]) -> dict[str, tuple[str, ...]]:
        """Judges of a round's payloads, with about equal shares; nobody has its own.

        They are volunteers with an update in the round: each has shown that it is there.
        """
        able = [one.peer for one in taken if self._may_judge(one.peer, number)]
        if not self.can_meet(number, len(taken)):
            return {}
        shares: dict[str, list[str]] = {peer: [] for peer in able}
        for one in self._chooser.sample(taken, len(taken)):
            others = [p for p in able if p != one.peer and len(shares[p]) < MOST_ASSIGNED]
            if len(others) < ENOUGH:
                continue
            self._chooser.shuffle(others)
            others.sort(key=lambda peer: len(shares[peer]))
            for peer in others[: self._each]:
                shares[peer].append(one.sha256)
        return {peer: tuple(sorted(share)) for peer, share in shares.items() if share}

    def believe(self, hearing: Hearing, one: Taken) -> None:
        """Note that an update's judges were believed."""
        for judge in hearing.judges_of(one.sha256):
            self._believed.setdefault(judge, set()).add(one.peer)

    def close(self, hearing: Hearing, own: Mapping[str, Finding]) -> set[str]:
        """Note who was absent and who lied, by the host's own figures.

        Gives the volunteers about whom liars were believed before.
        """
        hearing.check(own)
        if hearing.liars:
            self._ban(self.liars | hearing.liars)
        self.liars |= hearing.liars
        if hearing.shares:
            is_enough = hearing.covered >= COVERED
            longer = min(max(2 * self._pause, 1), LONGEST_PAUSE)
            self._pause = max(self._pause - 1, 0) if is_enough else longer
            self._resumes = hearing.of.number + 1 + self._pause
        for judge in hearing.absent():
            _, length = self._rests.get(judge, (0, REST // 2))
            self._rests[judge] = hearing.of.number + 1 + 2 * length, 2 * length
        return {peer for judge in hearing.liars for peer in self._believed.pop(judge, ())}

    def _may_judge(self, peer: str, number: int) -> bool:
        return peer not in self.liars and number >= self._rests.get(peer, (0, 0))[0]


def folder_of(number: int) -> str:
    """The folder with the names of a round's verdicts."""
    return name_of(verdict.FOLDER, number)


def names_of_round(number: int) -> tuple[str, str]:
    """The names of a round's announcement and of its sequences."""
    return name_of(FOLDER, number), name_of(assignment.SEQUENCES_FOLDER, number)
