"""What of a volunteer's claim for a step the others confirm."""

import math
import statistics
from collections.abc import Mapping

from training.metrics import StepReport


def credit(claimant: str, reports: Mapping[str, StepReport]) -> int:
    """The samples of a step that a volunteer is credited with, at most those it claims.

    Where others saw its weight, the middle of what they saw counts, so that one who lies about
    another changes little. Where they only saw it in the group, its word is taken. Where others
    averaged without it, its gradients went nowhere. Where nobody averaged, it made the step alone.

    Args:
        claimant: a contributor's identity.
        reports: of the step, by identity; the claimant's among them.
    """
    claim = int(reports[claimant].samples)
    others = [report for identity, report in reports.items() if identity != claimant]
    told = [entry for report in others for entry in report.seen if entry.contributor == claimant]
    weights = [entry.weight for entry in told if entry.weight is not None]
    if weights:
        seen: int = math.floor(statistics.median_high(weights))
        return min(claim, seen)
    if told or not any(report.seen for report in others):
        return claim
    return 0
