r"""Judging updates by their effect on the loss: which ones a round leaves out, and why.

The loss is measured with the shared weights and with the weights that an update alone would make,
on a few batches of the run's data that nobody knew when the update was made. The host measures, or
volunteers do; see `panel`. An update is left out when

- the loss afterwards is not finite;
- it raises the loss, beyond chance: in this round alone or in its peer's rounds so far;
- its peer's updates have gained next to nothing for the samples that they claim, while the
  others' gain;
- it is nearly the same as an update that was taken in this round or in one of the last.

With the mean change m_r of the loss over the batches of round r and the variance v_r of that mean,
a peer's record is

.. math::
    M = \sum_r \lambda^{n-r} m_r, \quad V = \sum_r \lambda^{2(n-r)} v_r, \quad Z = M / \sqrt{V}

so that Z is about normal with variance 1 for updates without effect. Whoever was left out keeps
being judged, and counts again when its record is good again.
"""

import math
import secrets
import statistics
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch.nn import functional

from training.sparse.assignment import Batch
from training.sparse.codec import Update
from training.sparse.shared import load
from training.sparse.verdict import LARGEST, Finding

# Mean loss of each batch with the weights in a flat vector; the number of the round chooses them.
Losses = Callable[[int, torch.Tensor], Sequence[float]]

MEMORY = 0.9  # lambda: about ten rounds count
HARMFUL_NOW = 6.0  # m / sqrt(v) of one round: of few batches, so its tails are heavy
HARMFUL = 4.0  # Z
CERTAIN = -4.0  # Z of the middle peer, from which gains are compared
USELESS = 0.1  # of the middle peer's gain per sample
FIRST_ROUNDS = 10  # of a peer, during which its gain is not compared
COPIED = 0.9  # cosine; the first rounds of honest peers, from the same weights, are alike too
SKETCHES = 1024  # of updates that were taken last
BUCKETS = 4096  # of a sketch: its cosines are off by about 1/64
_SMALLEST_VARIANCE = 1e-16


@dataclass(frozen=True, slots=True)
class Effect:
    """The change of the loss by an update alone.

    Attributes:
        mean: over the batches, in nats; below 0 the update helps.
        variance: of that mean.
        sketch: of the update; see `Sketcher`.
    """

    mean: float
    variance: float
    sketch: torch.Tensor = field(default_factory=lambda: torch.zeros(BUCKETS), compare=False)

    @classmethod
    def of(cls, before: Sequence[float], after: Sequence[float], sketch: torch.Tensor) -> "Effect":
        """The effect from the losses of the same two or more batches."""
        return cls.from_finding(compare(before, after), sketch)

    @classmethod
    def from_finding(cls, found: Finding, sketch: torch.Tensor) -> "Effect":
        """The effect that somebody measured."""
        return cls(found.mean, max(found.variance, _SMALLEST_VARIANCE), sketch)

    @property
    def finding(self) -> Finding:
        """The figures alone."""
        return Finding(self.mean, self.variance)


@dataclass
class Record:
    """A peer's effects so far; older rounds count less and less."""

    rounds: int = 0
    mean: float = 0.0
    variance: float = 0.0
    samples: float = 0.0

    def add(self, effect: Effect, samples: int) -> None:
        """Note another round."""
        self.rounds += 1
        self.mean = MEMORY * self.mean + effect.mean
        self.variance = MEMORY**2 * self.variance + effect.variance
        self.samples = MEMORY * self.samples + samples

    @property
    def certainty(self) -> float:
        """Z: positive when the updates harm."""
        return self.mean / math.sqrt(self.variance)

    @property
    def gain(self) -> float:
        """Fall of the loss per sample that was claimed."""
        return -self.mean / self.samples


def compare(before: Sequence[float], after: Sequence[float]) -> Finding:
    """The finding from the losses of the same two or more batches without and with an update."""
    changes = [b - a for a, b in zip(before, after, strict=True)]
    if not all(abs(change) <= LARGEST for change in changes):
        return Finding(math.inf, math.inf)
    return Finding(statistics.fmean(changes), statistics.variance(changes) / len(changes))


def applied(weights: torch.Tensor, update: Update) -> torch.Tensor:
    """The weights that an update alone would make."""
    after = weights.clone()
    after[update.places] -= update.values
    return after


@torch.no_grad()
def losses_on(
    model: torch.nn.Module, weights: torch.Tensor, batches: Sequence[Batch]
) -> list[float]:
    """Mean loss of each batch with the weights of a flat vector, which the model then holds."""
    parameters = [one for one in model.parameters() if one.requires_grad]
    load(weights, parameters)
    device = parameters[0].device
    moved = ({key: part.to(device) for key, part in batch.items()} for batch in batches)
    return [float(model(**batch).loss) for batch in moved]


class Judge:
    """Measures the effect of updates, and keeps each peer's record."""

    def __init__(self, losses: Losses) -> None:
        self._losses = losses
        self._base: tuple[int, Sequence[float]] | None = None
        self._records: dict[str, Record] = {}
        self._sketcher = Sketcher()
        self._taken: deque[torch.Tensor] = deque(maxlen=SKETCHES)  # sketches, each of norm 1

    @torch.no_grad()
    def measure(self, number: int, weights: torch.Tensor, update: Update) -> Effect:
        """The effect of an update of a round on its shared weights; this takes time."""
        if self._base is None or self._base[0] != number:
            self._base = number, self._losses(number, weights)
        after = self._losses(number, applied(weights, update))
        return Effect.of(self._base[1], after, self._sketcher.draw(update, len(weights)))

    def believe(self, found: Finding, update: Update, elements: int) -> Effect:
        """The effect of an update that volunteers have measured."""
        return Effect.from_finding(found, self._sketcher.draw(update, elements))

    def forget(self, peers: Collection[str]) -> None:
        """Begin the records of some peers again."""
        for peer in peers:
            self._records.pop(peer, None)

    def weigh(self, round_effects: Mapping[str, tuple[Effect, int]]) -> dict[str, str]:
        """Note a round's effects and samples by peer; gives who is left out, and why.

        Of two copies the first in the mapping counts.
        """
        left_out = {}
        for peer, (effect, samples) in round_effects.items():
            if math.isfinite(effect.mean):
                self._records.setdefault(peer, Record()).add(effect, samples)
        idle = self._find_idle([peer for peer in round_effects if peer in self._records])
        for peer, (effect, _) in round_effects.items():
            if why := self._find_fault(peer, effect):
                left_out[peer] = why
            elif peer in idle:
                left_out[peer] = "its updates have hardly any effect on the loss"
            else:
                self._taken.append(effect.sketch)
        return left_out

    def _find_fault(self, peer: str, effect: Effect) -> str:
        """The reason to leave an update out whatever the others do; empty if there is none."""
        if not math.isfinite(effect.mean):
            return "the loss with it is not finite"
        if effect.mean > HARMFUL_NOW * math.sqrt(effect.variance):
            return f"it raises the loss by {effect.mean:.2g}"
        if self._records[peer].certainty > HARMFUL:
            return "its updates raise the loss"
        if any(float(effect.sketch @ other) > COPIED for other in self._taken):
            return "it is a copy of another update"
        return ""

    def _find_idle(self, peers: Sequence[str]) -> set[str]:
        """Those who gain next to nothing while the others do."""
        records = {peer: self._records[peer] for peer in peers}
        middle = statistics.median(one.certainty for one in records.values()) if records else 0.0
        if middle > CERTAIN:
            return set()
        least = USELESS * statistics.median(one.gain for one in records.values())
        return {
            peer for peer, one in records.items() if one.rounds >= FIRST_ROUNDS and one.gain < least
        }


class Sketcher:
    """Makes short vectors whose cosines are nearly those of updates.

    A count sketch: each bucket holds a sum over random places with random signs.
    """

    def __init__(self) -> None:
        self._secret = torch.Generator().manual_seed(secrets.randbits(63))
        self._buckets = self._signs = torch.empty(0)

    def draw(self, update: Update, elements: int) -> torch.Tensor:
        """The sketch of an update, of norm 1, or of zeros where that is."""
        if not len(self._buckets):
            self._buckets = torch.randint(BUCKETS, (elements,), generator=self._secret)
            self._signs = torch.randint(2, (elements,), generator=self._secret) * 2.0 - 1.0
        places = update.places.cpu()
        sketch = torch.zeros(BUCKETS)
        sketch.index_add_(0, self._buckets[places], self._signs[places] * update.values.cpu())
        return functional.normalize(sketch, dim=0)
