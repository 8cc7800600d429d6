"""Captioned pictures of shapes, drawn on demand: the rehearsal's and the tests' data set.

Sample i is the same in every process: its random numbers come from (seed, i) alone.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

import numpy as np
from PIL import Image, ImageDraw

from calculator.errors import InputError

COLOURS: dict[str, tuple[int, int, int]] = {
    "red": (214, 48, 49),
    "green": (46, 160, 67),
    "blue": (45, 98, 214),
    "yellow": (242, 190, 34),
}


class Shape(StrEnum):
    """What a picture shows, once or twice."""

    CIRCLE = "circle"
    SQUARE = "square"
    TRIANGLE = "triangle"


RELATIONS: dict[str, tuple[int, int]] = {  # direction from the second shape to the first: x, y
    "above": (0, -1),
    "below": (0, 1),
    "left of": (-1, 0),
    "right of": (1, 0),
}
WORDS = ("a", *COLOURS, *Shape, "above", "below", "left", "right", "of")

_BACKGROUND = (246, 244, 238)
_OVERSAMPLING = 4  # drawn larger and reduced, for smooth edges
_PAIR_SHARE = 2 / 3  # the other pictures show a single shape


@dataclass(frozen=True, slots=True)
class Sample:
    """A picture and what it shows."""

    image: Image.Image
    caption: str


def draw_sample(index: int, pixels: int = 32, seed: int = 0) -> Sample:
    """The data set's picture at `index`.

    Args:
        index: at least 0; every index gives another picture.
        pixels: side of the square picture.
        seed: which of the data sets; held-out pictures use another.

    Raises:
        InputError: a negative index, or a picture too small to see shapes in.
    """
    if index < 0:
        raise InputError("index", index, "must be at least 0")
    if pixels < 16:
        raise InputError("pixels", pixels, "must be at least 16")
    random = np.random.default_rng((seed, index))
    canvas = Image.new("RGB", (pixels * _OVERSAMPLING,) * 2, _BACKGROUND)
    draw = ImageDraw.Draw(canvas)
    if random.random() < _PAIR_SHARE:
        relation = str(random.choice(list(RELATIONS)))
        direction = np.array(RELATIONS[relation])
        centre = 0.5 + random.uniform(-0.04, 0.04, 2)
        first = _draw_shape(draw, random, centre + 0.24 * direction, (0.17, 0.21))
        second = _draw_shape(draw, random, centre - 0.24 * direction, (0.17, 0.21))
        caption = f"{first} {relation} {second}"
    else:
        centre = 0.5 + random.uniform(-0.12, 0.12, 2)
        caption = _draw_shape(draw, random, centre, (0.24, 0.32))
    return Sample(
        _add_noise(canvas.resize((pixels, pixels), Image.Resampling.BOX), random), caption
    )


def _draw_shape(
    draw: ImageDraw.ImageDraw,
    random: np.random.Generator,
    centre: np.ndarray,
    radii: tuple[float, float],
) -> str:
    """Draw a random shape; lengths are in sides of the picture. Returns its name."""
    colour, shape = str(random.choice(list(COLOURS))), Shape(random.choice(list(Shape)))
    side = draw.im.size[0]
    x, y = centre * side
    radius = random.uniform(*radii) * side
    match shape:
        case Shape.CIRCLE:
            draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=COLOURS[colour])
        case Shape.SQUARE:
            half = 0.88 * radius
            draw.rectangle((x - half, y - half, x + half, y + half), fill=COLOURS[colour])
        case Shape.TRIANGLE:
            corners = [(x, y - radius), (x - radius, y + radius), (x + radius, y + radius)]
            draw.polygon(corners, fill=COLOURS[colour])
        case _:
            assert_never(shape)
    return f"a {colour} {shape}"


def _add_noise(image: Image.Image, random: np.random.Generator) -> Image.Image:
    pixels = np.asarray(image, dtype=np.float32) + random.normal(0, 2, (*image.size, 3))
    return Image.fromarray(pixels.clip(0, 255).astype(np.uint8))
