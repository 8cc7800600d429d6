"""Confirmation of the volunteers' claims for a step by the others."""

import math
import statistics
from collections import defaultdict
from collections.abc import Set

from training.records.reports import StepReport


class Testimony:
    """The reports of one step, and what they say of each other; all is linear in their number.

    Attributes:
        others: the volunteers in training, besides the first to report the step, when it did.
        credited: samples, once the step is written.
    """

    def __init__(self, others: Set[str] = frozenset()) -> None:
        self.others = others
        self.credited: dict[str, int] = {}
        self.reports: dict[str, StepReport] = {}
        self._seen: dict[str, list[float | None]] = defaultdict(list)

    def add(self, identity: str, report: StepReport) -> None:
        """Take in a volunteer's report, its only one of this step."""
        self.reports[identity] = report
        # once each, however often a report names somebody; nobody is a witness of itself
        named = {str(entry.contributor): entry.weight for entry in report.seen}
        named.pop(identity, None)
        for other, weight in named.items():
            self._seen[other].append(weight)

    def credit(self, claimant: str, training: Set[str] = frozenset()) -> int:
        """The samples that a volunteer is credited with, at most those it claims.

        Where others saw its weight, the middle of what they saw counts, so that one who lies
        about another changes little. Where they only saw it in the group, its word is taken.
        Where others made the step without it, or each of them alone, its gradients went nowhere.
        Where nobody else reports the step, its word is taken only if nobody else was there.

        Args:
            training: the volunteers in training now: those who left may have made the step, too.
        """
        claim, told = int(self.reports[claimant].samples), self._seen.get(claimant, [])
        weights = [weight for weight in told if weight is not None]
        if weights:
            seen: int = math.floor(statistics.median_high(weights))
            return min(claim, seen)
        was_alone = len(self.reports) == 1 and self.others.isdisjoint(training)
        return claim if told or was_alone else 0

    def count_groups(self) -> int:
        """The number of groups whose members saw each other, and nobody of another group."""
        groups: list[set[str]] = []
        for identity, report in self.reports.items():
            named = {str(entry.contributor) for entry in report.seen} - {identity}
            if named:
                met = {identity, *named}
                joined = [group for group in groups if group & met]
                groups = [group for group in groups if not group & met]
                groups.append(met.union(*joined))
        return len(groups)
