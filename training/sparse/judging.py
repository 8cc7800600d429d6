r"""Judging updates by their effect on the loss: which ones a round leaves out, and why.

The host measures the loss with the shared weights and with the weights that an update alone would
make, on a few batches of the run's data that no volunteer knows. An update is left out when

- the loss afterwards is not finite;
- it raises the loss, beyond chance: in this round alone or in its peer's rounds so far;
- its peer's updates have gained next to nothing for the samples that they claim, while the
  others' gain;
- it is nearly the same as an update that was taken before, in this round or in one of the last, of
  another peer or of its own: whoever works against the others sends the same again and again.

With the mean change m_r of the loss over the batches of round r and the variance v_r of that mean,
a peer's record is

.. math::
    M = \sum_r \lambda^{n-r} m_r, \quad V = \sum_r \lambda^{2(n-r)} v_r, \quad Z = M / \sqrt{V}

so that Z is about normal with variance 1 for updates without effect. Whoever was left out keeps
being judged, and counts again when its record is good again.

A host that has no time to measure all updates of a round measures those of peers that are new or
were left out last, and of the others a part that nobody can foresee. The rest count as their
peers' records say: whoever begins to send bad updates gets (1 - `SAMPLE`) / `SAMPLE` = 3 through
on average.
"""

import math
import random
import secrets
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import torch
from torch.nn import functional

from training.sparse.codec import Update
from training.sparse.shared import load

# Mean loss of each batch with the weights in a flat vector; the number of the round chooses them.
Losses = Callable[[int, torch.Tensor], Sequence[float]]
Batch = dict[str, torch.Tensor]  # the arguments of the model

MEMORY = 0.9  # lambda: about ten rounds count
HARMFUL_NOW = 6.0  # m / sqrt(v) of one round: of few batches, so its tails are heavy
HARMFUL = 4.0  # Z
CERTAIN = -4.0  # Z of the middle peer, from which gains are compared
USELESS = 0.1  # of the middle peer's gain per sample
FIRST_ROUNDS = 10  # of a peer, during which its gain is not compared and all is measured
SAMPLE = 0.25  # probability with which an update is measured that need not be
LARGEST = 1e3  # nats by which a loss may change; beyond, it is as good as infinite
COPIED = 0.9  # cosine; the first rounds of honest peers, from the same weights, are alike too
SKETCHES = 1024  # of updates that were taken last
BUCKETS = 4096  # of a sketch: its cosines are off by about 1/64
_SMALLEST_VARIANCE = 1e-16


@dataclass(frozen=True, slots=True)
class Effect:
    """The change of the loss by an update alone.

    Attributes:
        mean: over the batches, in nats; below 0 the update helps; infinite where a loss is not
            finite.
        variance: of that mean.
        sketch: of the update; see `Sketcher`.
        is_measured: False where the record of the update's peer stands for the two figures.
    """

    mean: float
    variance: float
    sketch: torch.Tensor = field(default_factory=lambda: torch.zeros(BUCKETS), compare=False)
    is_measured: bool = True

    @classmethod
    def of(cls, before: Sequence[float], after: Sequence[float], sketch: torch.Tensor) -> "Effect":
        """The effect from the losses of the same two or more batches."""
        changes = [b - a for a, b in zip(before, after, strict=True)]
        if not all(abs(change) <= LARGEST for change in changes):
            return cls(math.inf, math.inf, sketch)
        variance = statistics.variance(changes) / len(changes)
        return cls(statistics.fmean(changes), max(variance, _SMALLEST_VARIANCE), sketch)


@dataclass
class Record:
    """A peer's effects so far; older rounds count less and less.

    `left_out` tells of its newest update, `rounds` counts those that were measured.
    """

    rounds: int = 0
    mean: float = 0.0
    variance: float = 0.0
    samples: float = 0.0
    left_out: bool = False

    def add(self, effect: Effect, samples: int) -> None:
        """Note another round."""
        self.rounds += 1
        self.mean = MEMORY * self.mean + effect.mean
        self.variance = MEMORY**2 * self.variance + effect.variance
        self.samples = MEMORY * self.samples + samples

    @property
    def certainty(self) -> float:
        """Z: positive when the updates harm; 0 before one was measured."""
        return self.mean / math.sqrt(self.variance) if self.rounds else 0.0

    @property
    def gain(self) -> float:
        """Fall of the loss per sample that was claimed."""
        return -self.mean / self.samples


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
    """Measures the effect of updates, and keeps each peer's record over a restart.

    Args:
        chooser: of the updates that are measured although they need not be; nobody else knows
            its state.
    """

    def __init__(self, losses: Losses, chooser: random.Random | None = None) -> None:
        self._losses = losses
        self._chooser = chooser or random.SystemRandom()
        self._base: tuple[int, Sequence[float]] | None = None
        self._records: dict[str, Record] = {}
        self._sketcher = Sketcher()
        self._taken = Sketches()

    def must_measure(self, peer: str) -> bool:
        """Decide whether an update of a peer has to be measured."""
        record = self._records.get(peer, Record())
        is_known = record.rounds >= FIRST_ROUNDS and not record.left_out
        return not is_known or self._chooser.random() < SAMPLE

    @torch.no_grad()
    def measure(self, number: int, weights: torch.Tensor, update: Update) -> Effect:
        """The effect of an update of a round on its shared weights; this takes time."""
        if self._base is None or self._base[0] != number:
            self._base = number, self._losses(number, weights)
        after = self._losses(number, applied(weights, update))
        return Effect.of(self._base[1], after, self._sketcher.draw(update, len(weights)))

    def trust(self, update: Update, elements: int) -> Effect:
        """The effect of an update that is not measured: its peer's record decides."""
        return Effect(0.0, 0.0, self._sketcher.draw(update, elements), is_measured=False)

    def weigh(self, round_effects: Mapping[str, tuple[Effect, int]]) -> dict[str, str]:
        """Note a round's effects and samples by peer; gives who is left out, and why.

        Of two copies the first in the mapping counts.
        """
        records = self._records_with(round_effects)
        left_out = self._find_faults(records, round_effects)
        for peer, record in records.items():
            self._records[peer] = replace(record, left_out=peer in left_out)
        for peer, (effect, _) in round_effects.items():
            if peer not in left_out:
                self._taken.add(peer, effect.sketch)
        return left_out

    def foresee(self, round_effects: Mapping[str, tuple[Effect, int]]) -> dict[str, str]:
        """The answer that `weigh` would give; nothing is noted."""
        return self._find_faults(self._records_with(round_effects), round_effects)

    def state(self) -> dict[str, Any]:
        """The records, for a new process to continue from, as JSON."""
        return {peer: asdict(record) for peer, record in self._records.items()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state` gave."""
        self._records = {peer: Record(**record) for peer, record in state.items()}

    def _records_with(self, round_effects: Mapping[str, tuple[Effect, int]]) -> dict[str, Record]:
        records = {peer: replace(self._records.get(peer, Record())) for peer in round_effects}
        for peer, (effect, samples) in round_effects.items():
            if effect.is_measured and math.isfinite(effect.mean):
                records[peer].add(effect, samples)
        return records

    def _find_faults(
        self, records: Mapping[str, Record], round_effects: Mapping[str, tuple[Effect, int]]
    ) -> dict[str, str]:
        idle, here, left_out = _find_idle(records), Sketches(len(round_effects)), {}
        for peer, (effect, _) in round_effects.items():
            alike = self._taken.alike(effect.sketch) | here.alike(effect.sketch)
            if why := _find_fault(peer, records[peer], effect, alike):
                left_out[peer] = why
            elif peer in idle:
                left_out[peer] = "its updates have hardly any effect on the loss"
            else:
                here.add(peer, effect.sketch)
        return left_out


def _find_fault(peer: str, record: Record, effect: Effect, alike: set[str]) -> str:
    """The reason to leave an update out whatever the others do; empty if there is none.

    `alike` are the peers of which nearly the same was taken.
    """
    if not math.isfinite(effect.mean):
        return "the loss with it is not finite"
    if effect.mean > HARMFUL_NOW * math.sqrt(effect.variance):
        return f"it raises the loss by {effect.mean:.2g}"
    if record.certainty > HARMFUL:
        return "its updates raise the loss"
    if alike == {peer}:
        return "it repeats an update that was taken of the same peer"
    return "it is a copy of another peer's update" if alike else ""


def _find_idle(records: Mapping[str, Record]) -> set[str]:
    """Those who gain next to nothing while the others do."""
    known = {peer: record for peer, record in records.items() if record.rounds}
    middle = statistics.median(one.certainty for one in known.values()) if known else 0.0
    if middle > CERTAIN:
        return set()
    least = USELESS * statistics.median(one.gain for one in known.values())
    return {peer for peer, one in known.items() if one.rounds >= FIRST_ROUNDS and one.gain < least}


class Sketches:
    """The newest sketches that were taken, of norm 1, and their peers.

    Their memory is filled at once: a judge that ran out of it after an hour would be no help.
    """

    def __init__(self, most: int = SKETCHES) -> None:
        self._rows = torch.full((most, BUCKETS), 0.0)
        self._peers = [""] * most
        self._count = 0

    def add(self, peer: str, sketch: torch.Tensor) -> None:
        """Take a sketch, in the place of the oldest."""
        place = self._count % len(self._peers)
        self._rows[place], self._peers[place] = sketch, peer
        self._count += 1

    def alike(self, sketch: torch.Tensor) -> set[str]:
        """The peers that have nearly the same."""
        places = (self._rows @ sketch > COPIED).nonzero().flatten()
        return {self._peers[place] for place in places.tolist()}


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
