from collections import Counter

import numpy as np
import pytest
from PIL import Image

from calculator.errors import InputError
from training.shapes.samples import COLOURS, WORDS, Shape, draw_sample


def main_colour(image: Image.Image, box: tuple[float, float, float, float]) -> str:
    """The name of the shapes' colour that fills most of a box: left, top, right, bottom."""
    side = image.width
    pixels = np.asarray(image.crop([int(x * side) for x in box]), dtype=int).reshape(-1, 3)
    counts = {
        name: int((np.abs(pixels - np.array(colour)).sum(axis=1) < 30).sum())
        for name, colour in COLOURS.items()
    }
    assert max(counts.values()) > 20
    return max(counts, key=counts.__getitem__)


def test_samples_are_the_same_in_every_call() -> None:
    first, second = draw_sample(7), draw_sample(7)
    assert first.caption == second.caption
    assert first.image.tobytes() == second.image.tobytes()
    assert draw_sample(7, seed=1).image.tobytes() != first.image.tobytes()


def test_captions_use_known_words_and_name_all_there_is() -> None:
    captions = Counter(draw_sample(index).caption for index in range(1000))
    words = {word for caption in captions for word in caption.split()}
    assert words == set(WORDS)
    singles = {f"a {colour} {shape}" for colour in COLOURS for shape in Shape}
    assert singles <= captions.keys()


def test_pictures_show_what_their_captions_say() -> None:
    top, bottom, left, right = (0, 0, 1, 0.5), (0, 0.5, 1, 1), (0, 0, 0.5, 1), (0.5, 0, 1, 1)
    places = {  # of the first and the second shape
        "above": (top, bottom),
        "below": (bottom, top),
        "left of": (left, right),
        "right of": (right, left),
        "": ((0, 0, 1, 1), (0, 0, 1, 1)),  # one shape is both
    }
    seen = set()
    for index in range(300):
        sample = draw_sample(index, pixels=64)
        words = sample.caption.split()
        seen.add(relation := " ".join(words[3:-3]))
        for place, colour in zip(places[relation], (words[1], words[-2]), strict=True):
            assert main_colour(sample.image, place) == colour, sample.caption
    assert seen == places.keys()


@pytest.mark.parametrize(("index", "pixels", "field"), [(-1, 32, "index"), (0, 8, "pixels")])
def test_impossible_samples_are_refused(index: int, pixels: int, field: str) -> None:
    with pytest.raises(InputError, match=field):
        draw_sample(index, pixels)
