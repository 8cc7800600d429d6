"""Mean, median and CenteredClip against hand-worked examples, the standard library and theorems."""

import math
import statistics
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calculator.swarm.aggregation import (
    Clipping,
    centered_clip,
    centered_clip_path,
    coordinate_median,
    mean,
)
from tests.calculator.answers import refused
from tests.calculator.plans import examples

Vector = tuple[float, float]
Vectors = list[Vector]
NUMBERS = st.floats(-1e6, 1e6)
PLANE = st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=9)
CLIPPINGS = st.builds(Clipping, st.floats(0.01, 1e3), st.integers(1, 20))


def near(found: list[float], expected: list[float] | tuple[float, ...]) -> bool:
    return all(
        math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-6) for a, b in zip(found, expected, strict=True)
    )


def repeated(vectors: Vectors, counts: list[int]) -> Vectors:
    pairs = zip(vectors, counts, strict=True)
    return [vector for vector, count in pairs for _ in range(count)]


@given(PLANE)
@examples(40)
def test_without_weights_they_are_those_of_the_standard_library(vectors: Vectors) -> None:
    columns = list(zip(*vectors, strict=True))
    assert near(mean(vectors), [statistics.fmean(column) for column in columns])
    assert near(coordinate_median(vectors), [statistics.median(column) for column in columns])


@given(PLANE, CLIPPINGS, st.data())
@examples(40)
def test_a_whole_weight_counts_as_so_many_vectors(
    vectors: Vectors, clipping: Clipping, data: st.DataObject
) -> None:
    counts = data.draw(st.lists(st.integers(0, 3), min_size=len(vectors), max_size=len(vectors)))
    counts[0] += 1
    copies = repeated(vectors, counts)
    assert near(mean(vectors, counts), mean(copies))
    assert near(coordinate_median(vectors, counts), coordinate_median(copies))
    assert near(centered_clip(vectors, clipping, counts), centered_clip(copies, clipping))


@given(PLANE)
@examples(20)
def test_one_iteration_with_a_radius_beyond_all_vectors_is_the_mean(vectors: Vectors) -> None:
    assert near(centered_clip(vectors, Clipping(radius=1e7)), mean(vectors))


@given(PLANE, CLIPPINGS)
@examples(40)
def test_the_centre_never_moves_further_than_the_radius(
    vectors: Vectors, clipping: Clipping
) -> None:
    path = centered_clip_path(vectors, clipping)
    assert len(path) == clipping.iterations + 1
    assert path[0] == [0.0, 0.0]
    for before, after in pairwise(path):
        assert math.dist(before, after) <= clipping.radius * (1 + 1e-9) + 1e-6


@given(PLANE, st.tuples(NUMBERS, NUMBERS), st.tuples(NUMBERS, NUMBERS), st.floats(0.1, 100))
@examples(40)
def test_one_vector_moves_an_iteration_by_twice_its_share_of_the_radius_at_most(
    others: Vectors, one: Vector, instead: Vector, radius: float
) -> None:
    # each of the two terms is at most radius / n long
    results = [centered_clip([*others, vector], Clipping(radius)) for vector in (one, instead)]
    bound = 2 * radius / (len(others) + 1)
    assert math.dist(*results) <= bound * (1 + 1e-9) + 1e-6


@given(PLANE, CLIPPINGS, st.tuples(NUMBERS, NUMBERS))
@examples(40)
def test_where_zero_lies_does_not_matter(
    vectors: Vectors, clipping: Clipping, shift: Vector
) -> None:
    def moved(vector: tuple[float, ...] | list[float]) -> Vector:
        return (vector[0] + shift[0], vector[1] + shift[1])

    shifted = [moved(vector) for vector in vectors]
    assert near(mean(shifted), moved(mean(vectors)))
    assert near(coordinate_median(shifted), moved(coordinate_median(vectors)))
    found = centered_clip(shifted, clipping, start=shift)
    assert math.dist(found, moved(centered_clip(vectors, clipping))) <= 1e-3


@given(st.lists(NUMBERS, min_size=3, max_size=9), st.data())
@examples(40)
def test_a_minority_cannot_move_the_median_out_of_what_the_others_sent(
    honest: list[float], data: st.DataObject
) -> None:
    bad = data.draw(st.lists(st.floats(-1e300, 1e300), max_size=len(honest) - 1))
    (found,) = coordinate_median([[number] for number in honest + bad])
    assert min(honest) <= found <= max(honest)


def test_the_mean_follows_one_volunteer_anywhere_and_the_other_two_do_not() -> None:
    honest = [[1.0, 2.0], [1.2, 1.8], [0.8, 2.2], [1.0, 2.1], [1.0, 1.9]]
    clipping = Clipping(radius=1.0, iterations=50)
    for factor in (1e3, 1e6):
        vectors = [*honest, [factor, -factor]]
        assert math.dist(mean(vectors), mean(honest)) > factor / 6
        assert math.dist(coordinate_median(vectors), mean(honest)) < 0.2
        # at rest one pulls by the radius, five pull back by their distance
        assert math.dist(centered_clip(vectors, clipping), mean(honest)) < 1 / 5 + 1e-6


@pytest.mark.parametrize(
    ("vectors", "weights", "start", "field"),
    [
        *(([], None, None, "vectors"), ([[]], None, None, "vectors")),
        *(([[1.0], [1.0, 2.0]], None, None, "vectors"), ([[math.nan]], None, None, "vectors")),
        *(([[math.inf]], None, None, "vectors"), ([[1.0]], [1, 2], None, "weights")),
        *(([[1.0]], [-1], None, "weights"), ([[1.0]], [math.nan], None, "weights")),
        *(([[1.0]], [0], None, "weights"), ([[1.0]], None, [1.0, 2.0], "start")),
        ([[1.0]], None, [math.inf], "start"),
    ],
)
def test_what_cannot_be_aggregated_is_refused(
    vectors: list[list[float]], weights: list[float] | None, start: list[float] | None, field: str
) -> None:
    with refused(field):
        centered_clip(vectors, Clipping(1.0), weights, start)
    for aggregate in (mean, coordinate_median) if field != "start" else ():
        with refused(field):
            aggregate(vectors, weights)
