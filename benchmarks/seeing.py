"""Looks whether a picture shows its caption: by colours, areas and places, without any learning.

It judges what a model draws of the captioned shapes, and the scorer that chooses among them.
"""

from dataclasses import dataclass

import numpy as np
from PIL import Image

from training.shapes.samples import BACKGROUND, COLOURS, RELATIONS, Shape

SMALLEST_AREA = 12  # pixels of 32 x 32: what is smaller is a blot
_FARTHEST = 90.0  # from a colour, in 8-bit steps of red, green and blue
_SQUARE, _CIRCLE = 0.89, 0.66  # share of its bounding box that a shape fills, at least


@dataclass(frozen=True)
class Seen:
    """A patch of one colour: what it is, and its centre in pixels."""

    colour: str
    shape: Shape
    x: float
    y: float

    @property
    def name(self) -> str:
        """As captions call it."""
        return f"a {self.colour} {self.shape}"


def shows(image: Image.Image, caption: str) -> bool:
    """True if a picture shows what a caption says, and nothing else."""
    return fits(look(image), caption)


def fits(seen: list[Seen], caption: str) -> bool:
    """True if the patches of a picture are those of a caption."""
    for relation, direction in RELATIONS.items():
        first, found, second = caption.partition(f" {relation} ")
        if found:
            if len(seen) != 2:
                return False
            return any(
                (one.name, other.name) == (first, second) and _lies(one, other, direction)
                for one, other in (seen, seen[::-1])
            )
    return [patch.name for patch in seen] == [caption]


def look(image: Image.Image) -> list[Seen]:
    """The patches of a picture, each with the shape that its outline is nearest to."""
    pixels = np.asarray(image.convert("RGB"), dtype=np.int32)
    palette = np.array([BACKGROUND, *COLOURS.values()])
    distances = np.sqrt(((pixels[:, :, None] - palette) ** 2).sum(axis=3))
    nearest = distances.argmin(axis=2)
    nearest[distances.min(axis=2) > _FARTHEST] = 0  # red and background mixed look like yellow
    seen = []
    for number, colour in enumerate(COLOURS, start=1):
        for rows, columns in _patches(nearest == number):
            if len(rows) >= SMALLEST_AREA * image.width * image.height / 32**2:
                shape = _name(rows, columns)
                x = (columns.min() + columns.max()) / 2
                seen.append(Seen(colour, shape, float(x), float((rows.min() + rows.max()) / 2)))
    return seen


def _lies(first: Seen, second: Seen, direction: tuple[int, int]) -> bool:
    """True if the first lies in a direction from the second, more than across it."""
    step = np.array((first.x - second.x, first.y - second.y))
    along, across = step @ np.array(direction), step @ np.array(direction[::-1])
    return bool(along > abs(across))


def _name(rows: np.ndarray, columns: np.ndarray) -> Shape:
    box = (np.ptp(rows) + 1) * (np.ptp(columns) + 1)
    filled = len(rows) / box
    if filled >= _SQUARE:
        return Shape.SQUARE
    return Shape.CIRCLE if filled >= _CIRCLE else Shape.TRIANGLE


def _patches(mask: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Rows and columns of each connected patch of a mask."""
    left = {(int(row), int(column)) for row, column in zip(*mask.nonzero(), strict=True)}
    patches = []
    while left:
        edge = [left.pop()]
        patch = []
        while edge:
            row, column = edge.pop()
            patch.append((row, column))
            for near in (
                (row + 1, column),
                (row - 1, column),
                (row, column + 1),
                (row, column - 1),
            ):
                if near in left:
                    left.remove(near)
                    edge.append(near)
        rows, columns = np.array(patch).T
        patches.append((rows, columns))
    return patches
