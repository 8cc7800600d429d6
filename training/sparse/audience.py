"""The volunteers that a host hears, by their newest reports."""

from collections.abc import Callable

from training.run.live import PeerState
from training.sparse.report import Report

SILENT_SECONDS = 35.0  # three reports missed: whoever is silent for longer has left
FORGOTTEN_SECONDS = 3600.0  # of silence
MOST_REPORTS = 20_000  # beyond, whoever was silent longest is forgotten


class Audience:
    """Newest reports by identity.

    Args:
        clock: of the host, in seconds; what volunteers say of time counts for nothing.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._reports: dict[str, Report] = {}
        self._heard: dict[str, float] = {}  # the longest silent first

    def hear(self, peer: str, report: Report) -> bool:
        """Take a report in place of the last; False where it is not newer."""
        before = self._reports.get(peer)
        if before is not None and report.time <= before.time:
            return False
        self._forget(peer)
        self._reports[peer], self._heard[peer] = report, self._clock()
        while len(self._heard) > MOST_REPORTS or self._clock() - self._oldest() > FORGOTTEN_SECONDS:
            self._forget(next(iter(self._heard)))
        return True

    def reports(self) -> dict[str, Report]:
        """The newest report of each; whoever is silent has left."""
        return dict(self._reports)

    def present(self) -> set[str]:
        """Whoever was heard lately and did not say goodbye."""
        return self._heard.keys() - self.gone()

    def training(self, since: float) -> set[str]:
        """Whoever was heard to train since a time of the clock."""
        return {
            peer
            for peer, report in self._reports.items()
            if report.state == PeerState.TRAINING and self._heard[peer] >= since
        }

    def gone(self) -> set[str]:
        """Whoever said goodbye, or has become silent: no round waits for a machine that crashed."""
        since = self._clock() - SILENT_SECONDS
        return {
            peer
            for peer, report in self._reports.items()
            if report.state == PeerState.LEFT or self._heard[peer] < since
        }

    def _oldest(self) -> float:
        return next(iter(self._heard.values()))

    def _forget(self, peer: str) -> None:
        self._reports.pop(peer, None)
        self._heard.pop(peer, None)
