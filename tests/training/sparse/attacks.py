"""Peers that send what they should not, for tests and measurements."""

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from training.sparse import closing, payload
from training.sparse.codec import encode
from training.sparse.peer import Peer


@dataclass(frozen=True)
class Material:
    """Material of which a bad peer makes its update, each a flat vector.

    Attributes:
        own: what an honest peer would send.
        others: an update of another peer that the round before took; zeros where there is none.
        generator: of random numbers.
    """

    own: torch.Tensor
    others: torch.Tensor
    generator: torch.Generator


def garbage(material: Material) -> torch.Tensor:
    """A volunteer's own values, at random places."""
    order = torch.randperm(len(material.own), generator=material.generator)
    return material.own[order]


Attack = Callable[[Material], torch.Tensor]
ATTACKS: dict[str, Attack] = {
    "times 10": lambda material: 10 * material.own,
    "sign turned": lambda material: -material.own,
    "times -10": lambda material: -10 * material.own,
    "garbage": garbage,
    "replay": lambda material: material.others,
    "nothing": lambda material: torch.zeros_like(material.own),
}
# Those of averaging that are not among these.
ABSURD: dict[str, Attack] = {
    "times 1000": lambda material: 1000 * material.own,
    "times -1000": lambda material: -1000 * material.own,
}


class BadPeer(Peer):
    """Learns as others do, and signs something else."""

    def __init__(self, attack: Attack, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._attack, self._generator = attack, torch.Generator().manual_seed(13)

    def learn(self, *arguments: Any, **options: Any) -> str | None:
        if super().learn(*arguments, **options) is None:
            return None
        of, layout = self.swarm.round_of(self.state), self.swarm.layout
        honest = payload.read(self._content, of, layout, math.inf)
        material = Material(
            honest.update.dense(layout.elements), self._find_others(), self._generator
        )
        forged = encode(self._attack(material), layout)
        self._content = payload.write(of, honest.samples, forged, self._key)
        self._published = hashlib.sha256(self._content).hexdigest()
        return self._published

    def _find_others(self) -> torch.Tensor:
        elements = self.swarm.layout.elements
        before = closing.find(self.swarm, self.state.round - 1) if self.state.round else None
        if before is None or not before.taken:
            return torch.zeros(elements)
        one = before.taken[-1]
        return closing.read_payload(self.swarm, before.of, one).update.dense(elements)
