"""Vectors of bad volunteers, from their definitions."""

import math
from typing import Any

import pytest

from calculator.errors import InputError
from calculator.swarm.aggregation import mean
from calculator.swarm.attacks import Attack, attack

HONEST = [(3.0, 1.0), (4.0, 2.0), (2.0, 3.0)]


@pytest.mark.parametrize("kind", Attack)
@pytest.mark.parametrize("count", [0, 1, 3, 7])
def test_there_are_as_many_vectors_as_bad_volunteers(kind: Attack, count: int) -> None:
    assert len(attack(kind, HONEST, count, radius=1.0)) == count


@pytest.mark.parametrize(
    ("kind", "factor"), [(Attack.PULL, -2), (Attack.FLIP, -1), (Attack.SCALE, 1000)]
)
def test_a_multiple_is_that_of_the_own_gradient(kind: Attack, factor: float) -> None:
    expected = [[factor * x, factor * y] for x, y in [*HONEST, HONEST[0]]]
    assert attack(kind, HONEST, 4, radius=1.0) == expected


@pytest.mark.parametrize("radius", [0.1, 1.0, 5.0])
def test_who_colludes_is_not_further_from_the_honest_mean_than_the_radius(radius: float) -> None:
    aim = mean(HONEST)
    vectors = attack(Attack.COLLUDE, HONEST, 4, radius)
    for vector in vectors:
        assert 0.8 * radius <= math.dist(vector, aim) <= radius
    middle = mean(vectors)
    across = [middle[0] - aim[0], middle[1] - aim[1]]
    assert aim[0] * across[0] + aim[1] * across[1] == pytest.approx(0.0)


def test_less_than_none_is_refused() -> None:
    with pytest.raises(InputError, match="bad_count"):
        attack(Attack.FLIP, HONEST, -1, radius=1.0)


@pytest.mark.parametrize("kind", Attack)
@pytest.mark.parametrize(
    "honest", [[], [()], [(1.0, 2.0), (1.0,)], [(math.nan, 1.0)], [(math.inf, 1.0)]]
)
def test_what_is_no_set_of_vectors_is_refused(kind: Attack, honest: list[Any]) -> None:
    for count in (0, 2):
        with pytest.raises(InputError, match="vectors"):
            attack(kind, honest, count, radius=1.0)


@pytest.mark.parametrize("size", [1, 3, 17])
def test_to_collude_is_defined_in_a_plane(size: int) -> None:
    vectors = [[float(size)] * size]
    with pytest.raises(InputError, match="two elements"):
        attack(Attack.COLLUDE, vectors, 2, radius=1.0)
    for kind in (Attack.PULL, Attack.FLIP, Attack.SCALE):
        assert len(attack(kind, vectors, 2, radius=1.0)[1]) == size


@pytest.mark.parametrize("radius", [0.0, -1.0, math.nan, math.inf])
def test_a_radius_that_is_none_is_refused_by_those_who_collude(radius: float) -> None:
    with pytest.raises(InputError, match="radius"):
        attack(Attack.COLLUDE, HONEST, 2, radius)
