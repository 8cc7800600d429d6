"""What bad volunteers send, from its definition."""

import math

import pytest

from calculator.aggregation import mean
from calculator.attacks import Attack, attack
from calculator.errors import InputError

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
