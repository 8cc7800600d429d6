"""The swarm as a figure: volunteers in a ring around a picture that their model draws.

A disc's area shows a volunteer's contribution; a line joins each pair of volunteers that exchange
parts of gradients. docs/assets/home/swarm.js draws a run in progress by the same rules.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import combinations
from typing import Any

# The visible part of the plane; nothing is ever drawn above TOP.
WIDTH, TOP, HEIGHT = 560, 16, 382
CENTRE = (280.0, 200.0)
RADII = (226.0, 146.0)
# More discs would blur together; the volunteers with the most contributions are drawn.
SHOWN = 24
LARGEST, SMALLEST = 50.0, 7.0
NAMED = 12
NAME_LENGTH = 16
RING = 98


@dataclass(frozen=True, slots=True)
class Disc:
    """A volunteer's place in the figure."""

    peer: dict[str, Any]
    x: float
    y: float
    radius: float

    @property
    def is_there(self) -> bool:
        """True if the volunteer is part of the swarm now."""
        return bool(self.peer["state"] != "left")


def discs(peers: Sequence[dict[str, Any]]) -> list[Disc]:
    """Places in the ring, in order of arrival, for those with the most contributions."""
    most = sorted(peers, key=lambda peer: -peer["samples"])[:SHOWN]
    drawn = sorted(most, key=lambda peer: (peer["first_seen"], peer["id"]))
    perimeter = 2 * math.pi * math.hypot(*RADII) / math.sqrt(2)
    largest = min(LARGEST, 0.42 * perimeter / max(1, len(drawn)))
    top = max((peer["samples"] for peer in drawn), default=0) or 1
    found = []
    for index, peer in enumerate(drawn):
        angle = 2 * math.pi * (index + 0.5) / len(drawn) - math.pi / 2
        radius = max(SMALLEST, largest * math.sqrt(peer["samples"] / top))
        x = CENTRE[0] + RADII[0] * math.cos(angle)
        y = CENTRE[1] + RADII[1] * math.sin(angle)
        found.append(Disc(peer, x, y, radius))
    return found


def chord(first: Disc, second: Disc) -> str:
    """The path between two volunteers, bent towards the middle."""
    x = 0.4 * (first.x + second.x) + 0.2 * CENTRE[0]
    y = 0.4 * (first.y + second.y) + 0.2 * CENTRE[1]
    return f"M{first.x:.1f} {first.y:.1f}Q{x:.1f} {y:.1f} {second.x:.1f} {second.y:.1f}"


def draw_swarm(peers: Sequence[dict[str, Any]], share: float) -> str:
    """The figure as SVG, its middle empty for a picture; `share` of the run is done."""
    placed = discs(peers)
    chords = "".join(
        f'<path class="swarm__chord" data-ends="{escape(a.peer["id"])} {escape(b.peer["id"])}"'
        f'{"" if a.is_there and b.is_there else " data-off"} d="{chord(a, b)}"/>'
        for a, b in combinations(placed, 2)
    )
    x, y = CENTRE
    middle = (
        f'<circle class="swarm__disc" cx="{x:g}" cy="{y:g}" r="{RING}"/>'
        f'<circle class="swarm__done" cx="{x:g}" cy="{y:g}" r="{RING}" pathLength="1" '
        f'stroke-dasharray="{share:.4f} 1" transform="rotate(-90 {x:g} {y:g})"/>'
    )
    volunteers = "".join(_volunteer(disc, named=len(placed) <= NAMED) for disc in placed)
    return (
        f'<svg class="swarm__drawing" viewBox="0 {TOP} {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{escape(in_words(peers))}"><g class="swarm__chords">{chords}</g>'
        f'<g class="swarm__parts"></g>{middle}<g class="swarm__peers">{volunteers}</g></svg>'
    )


def _volunteer(disc: Disc, *, named: bool) -> str:
    peer = disc.peer
    name = peer["name"] if len(peer["name"]) <= NAME_LENGTH else f"{peer['name'][:NAME_LENGTH]}…"
    label = (
        f'<text x="{disc.x:.1f}" y="{disc.y + disc.radius + 16:.1f}">{escape(name)}</text>'
        if named
        else ""
    )
    return (
        f'<g class="swarm__peer" data-id="{escape(peer["id"])}" data-state="{peer["state"]}">'
        f'<circle cx="{disc.x:.1f}" cy="{disc.y:.1f}" r="{disc.radius:.1f}"/>{label}</g>'
    )


def in_words(peers: Sequence[dict[str, Any]]) -> str:
    """A description of the figure for anyone who can't see it."""
    shown = sorted(peers, key=lambda peer: -peer["samples"])[:NAMED]
    each = "; ".join(f"{p['name']}: {p['samples']:,} sequences, {p['state']}" for p in shown)
    return f"The swarm, {len(peers)} volunteers. {each}."


def draw_loss(losses: Sequence[float], width: int = WIDTH, height: int = 64) -> str:
    """The loss over the steps, a line without axes."""
    low, high = min(losses), max(losses)
    across = width / max(1, len(losses) - 1)

    def place(index: int) -> str:
        y = (high - losses[index]) / ((high - low) or 1) * (height - 8) + 4
        return f"{index * across:.1f} {y:.1f}"

    points = [place(index) for index in range(len(losses))]
    line = "L".join(points)
    return (
        f'<svg class="plot swarm__loss" viewBox="0 0 {width} {height}" preserveAspectRatio="none" '
        f'aria-hidden="true"><path class="area" d="M0 {height}L{line}L{width} {height}Z"/>'
        f'<path class="line" d="M{line}"/></svg>'
    )
