"""Captioned pictures of shapes, drawn on demand: the rehearsal's and the tests' data set.

Sample i is the same in every process: its random numbers come from (seed, i) alone.
"""

from collections.abc import Callable
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
    """A shape; a picture shows one or two."""

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

BACKGROUND = (246, 244, 238)
_OVERSAMPLING = 4  # drawn larger and reduced, for smooth edges
_PAIR_SHARE = 2 / 3  # the other pictures show a single shape


@dataclass(frozen=True, slots=True)
class _Style:
    """Places and sizes of shapes, in sides of the picture.

    Attributes:
        distance: from the middle of a pair to the centre of each.
        pair_shift: draws where the middle of a pair is, given the pair's direction.
        single_shift: draws where a single shape is.
        pair_radius: draws the radius of a shape of a pair.
        single_radius: draws the radius of a single shape.
    """

    distance: float
    pair_shift: Callable[[np.random.Generator, np.ndarray], np.ndarray]
    single_shift: Callable[[np.random.Generator], np.ndarray]
    pair_radius: Callable[[np.random.Generator], float]
    single_radius: Callable[[np.random.Generator], float]


# Places are an eighth apart, as the codes are: equal shapes have equal codes wherever they stand,
# and a small model learns them within minutes.
_PLACES = (-0.125, 0.0, 0.125)
_PLAIN = _Style(
    distance=0.25,
    pair_shift=lambda random, direction: direction[::-1] * random.choice(_PLACES),
    single_shift=lambda random: random.choice(_PLACES, 2),
    pair_radius=lambda random: random.choice((0.16, 0.2)),
    single_radius=lambda random: random.choice((0.25, 0.3125)),
)
_VARIED = _Style(
    distance=0.24,
    pair_shift=lambda random, direction: random.uniform(-0.04, 0.04, 2),
    single_shift=lambda random: random.uniform(-0.12, 0.12, 2),
    pair_radius=lambda random: random.uniform(0.17, 0.21),
    single_radius=lambda random: random.uniform(0.24, 0.32),
)


@dataclass(frozen=True, slots=True)
class Sample:
    """A picture and what it shows."""

    image: Image.Image
    caption: str


def draw_sample(index: int, pixels: int = 32, seed: int = 0, varied: bool = False) -> Sample:
    """The data set's picture at `index`.

    Args:
        index: at least 0; every index gives another picture.
        pixels: side of the square picture.
        seed: which of the data sets; held-out pictures use another.
        varied: shapes of any place and size, and noise, for a VQ-GAN to learn from.

    Raises:
        InputError: a negative index, or a picture too small to see shapes in.
    """
    if index < 0:
        raise InputError("index", index, "must be at least 0")
    if pixels < 16:
        raise InputError("pixels", pixels, "must be at least 16")
    random = np.random.default_rng((seed, index))
    canvas = Image.new("RGB", (pixels * _OVERSAMPLING,) * 2, BACKGROUND)
    draw = ImageDraw.Draw(canvas)
    style = _VARIED if varied else _PLAIN
    if random.random() < _PAIR_SHARE:
        relation = str(random.choice(list(RELATIONS)))
        direction = np.array(RELATIONS[relation])
        centre = 0.5 + style.pair_shift(random, direction)
        first = _draw_shape(draw, random, centre + style.distance * direction, style.pair_radius)
        second = _draw_shape(draw, random, centre - style.distance * direction, style.pair_radius)
        caption = f"{first} {relation} {second}"
    else:
        centre = 0.5 + style.single_shift(random)
        caption = _draw_shape(draw, random, centre, style.single_radius)
    image = canvas.resize((pixels, pixels), Image.Resampling.BOX)
    return Sample(_add_noise(image, random) if varied else image, caption)


def _add_noise(image: Image.Image, random: np.random.Generator) -> Image.Image:
    pixels = np.asarray(image, dtype=np.float32) + random.normal(0, 2, (*image.size, 3))
    return Image.fromarray(pixels.clip(0, 255).astype(np.uint8))


def _draw_shape(
    draw: ImageDraw.ImageDraw,
    random: np.random.Generator,
    centre: np.ndarray,
    radius_of: Callable[[np.random.Generator], float],
) -> str:
    """Draw a shape of random colour, kind and radius; give its name."""
    colour, shape = str(random.choice(list(COLOURS))), Shape(random.choice(list(Shape)))
    side = draw.im.size[0]
    x, y = centre * side
    radius = radius_of(random) * side
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
