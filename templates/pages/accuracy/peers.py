"""Other calculators, as their authors publish them, beside measured steps."""

import statistics
from dataclasses import dataclass
from functools import cache
from typing import Any

from calculator.plan import Attention
from templates.pieces.accuracy import DEVICES, signed_percent
from templates.pieces.comparisons import Recorded, comparisons_on
from templates.pieces.families import by_family
from validation.peers import KERNELS, PEERS, Peer, Score, read_predictions, score


@dataclass(frozen=True, slots=True)
class PeerRow:
    """One calculator's errors in one family, with eager and with fused attention."""

    family: str
    count: int
    measured: int
    medians: list[str]
    worst: list[str]
    too_low: list[int]

    @property
    def cells(self) -> list[object]:
        """A table row, one kernel after another."""
        figures = zip(self.medians, self.worst, self.too_low, strict=True)
        kernels = [figure for kernel in figures for figure in kernel]
        return [self.family, self.count, self.measured, *kernels]


@dataclass(frozen=True, slots=True)
class PeerScore:
    """A calculator, its version and its errors."""

    peer: Peer
    version: str
    rows: list[PeerRow]


@cache
def peer_scores() -> list[PeerScore]:
    """All other calculators, in every family for which they have figures."""
    recorded = zip(PEERS, PEER_SCORES.results(), strict=True)
    return [PeerScore(peer, version, rows) for peer, (_, version, rows) in recorded]


def _scored(peer: Peer) -> tuple[str, str, list[PeerRow]]:
    """Its name and version, and its errors."""
    comparisons = [item for name in DEVICES for item in comparisons_on(name)]
    own = [item for item in read_predictions() if item.calculator == peer.name]
    scores = score(own, comparisons)  # some hundred configurations with two kernels each
    rows = [_peer_row("All", scores)]
    rows += [_peer_row(title, members) for title, members in by_family(scores)]
    return peer.name, own[0].version, rows


def _loaded(found: list[Any]) -> tuple[str, str, list[PeerRow]]:
    name, version, rows = found
    return name, version, [PeerRow(**row) for row in rows]


PEER_SCORES = Recorded("peers", _scored, lambda: PEERS, load=_loaded)


def _peer_row(family: str, scores: list[Score]) -> PeerRow:
    def errors(kernel: Attention) -> list[float]:
        return [item.error(kernel) for item in scores]

    return PeerRow(
        family,
        len(scores),
        sum(any(item.measured.values()) for item in scores),
        [f"{100 * statistics.median(map(abs, errors(k))):.1f}\N{NO-BREAK SPACE}%" for k in KERNELS],
        [signed_percent(max(errors(kernel), key=abs)) for kernel in KERNELS],
        [sum(error < 0 for error in errors(kernel)) for kernel in KERNELS],
    )
