import pytest
import torch

from calculator.swarm import aggregation as formulas
from calculator.swarm.aggregation import Aggregation
from training.averaging.aggregation import aggregate, centered_clip, coordinate_median, mean
from training.run.recipes import RECIPES

CLIP = RECIPES["paper"].swarm.aggregation  # CenteredClip


def make_vectors(count: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(count, 6, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("count", [1, 2, 3, 8, 9, 40])
def test_the_formulas_are_the_calculators(count: int) -> None:
    vectors = make_vectors(count)
    vectors[0] *= 1000
    weights = torch.rand(count, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    rows = vectors.tolist()
    start = make_vectors(1, seed=2)[0]
    assert mean(vectors, weights).tolist() == pytest.approx(
        formulas.mean(rows, weights.tolist()), abs=1e-9
    )
    assert coordinate_median(vectors).tolist() == pytest.approx(
        formulas.coordinate_median(rows), abs=1e-9
    )
    for iterations in (1, 7):
        expected = formulas.centered_clip(
            rows, formulas.Clipping(1.5, iterations), weights.tolist(), start.tolist()
        )
        ours = centered_clip(vectors, 1.5, iterations, weights, start)
        assert ours.tolist() == pytest.approx(expected, abs=1e-9)


def test_the_mean_of_parts_is_weighted_and_keeps_their_shape() -> None:
    parts = [torch.ones(2, 3), 4 * torch.ones(2, 3)]
    averaged = aggregate(parts, [2.0, 1.0], Aggregation.MEAN)
    assert averaged.equal(2 * torch.ones(2, 3))  # (2 * 1 + 1 * 4) / 3


@pytest.mark.parametrize("way", list(Aggregation))
def test_whoever_has_no_weight_is_not_heard_unless_nobody_has_any(way: Aggregation) -> None:
    parts = [torch.ones(4), 1e9 * torch.ones(4), torch.ones(4)]
    assert aggregate(parts, [3.0, 0.0, 1.0], way).equal(torch.ones(4))
    averaged = aggregate([torch.ones(4), torch.zeros(4)], [0.0, 0.0], way)
    assert averaged.equal(0.5 * torch.ones(4))


def test_one_of_two_cannot_turn_the_result_against_the_other() -> None:
    averaged = aggregate([torch.ones(3), -torch.ones(3)], [3.0, 1.0], CLIP)
    assert averaged.equal(0.5 * torch.ones(3))  # the weighted mean: (3 * 1 - 1 * 1) / 4
    honest = make_vectors(1)[0]
    averaged = aggregate([honest, -1000 * honest], [1.0, 1.0], CLIP)
    assert averaged.norm() <= 1e-9 * honest.norm()  # it can undo the other's work, no more


@pytest.mark.parametrize("factor", [-1000.0, -10.0, 1000.0])
def test_one_of_three_far_from_the_others_is_left_out(factor: float) -> None:
    first, second = make_vectors(2)
    averaged = aggregate([first, second, factor * (first + second)], [1.0, 1.0, 1.0], CLIP)
    between = (averaged - (first + second) / 2).norm()
    assert between <= 0.51 * (first - second).norm()
    assert averaged @ (first + second) > 0


@pytest.mark.parametrize("factor", [1000.0, -1.0, -1000.0])
def test_centered_clip_stays_with_seven_honest_of_nine(factor: float) -> None:
    truth = torch.linspace(-1, 1, 500)
    noise = torch.randn(9, 500, generator=torch.Generator().manual_seed(3))
    vectors = truth + 0.5 * noise
    honest = vectors[2:].mean(0)
    vectors[:2] *= factor
    weights = [16.0] * 9
    clipped = aggregate(list(vectors), weights, CLIP)
    averaged = aggregate(list(vectors), weights, Aggregation.MEAN)
    # each of the two pulls with two medians' length against seven: less than the noise of one
    radius = float((vectors[2:] - vectors.median(dim=0).values).norm(dim=1).median())
    assert (clipped - honest).norm() < 2 / 7 * 2 * radius
    assert (clipped - honest).norm() < (averaged - honest).norm()


def test_no_weight_buys_a_peer_the_result_of_centered_clip() -> None:
    vectors = [torch.full((4,), value) for value in (0.9, 1.0, 1.1, 1.05, 0.95)]
    bought = aggregate([*vectors, torch.full((4,), 1e6)], [1.0] * 5 + [1e6], CLIP)
    assert bought.max() < 1.2


@pytest.mark.parametrize("recipe", ["paper", "rehearsal"])
@pytest.mark.parametrize("count", [2, 3, 8])
def test_one_value_of_1e30_does_not_pass(recipe: str, count: int) -> None:
    swarm = RECIPES[recipe].swarm
    honest = [torch.randn(500, generator=torch.Generator().manual_seed(i)) for i in range(count)]
    spoilt = [part.clone() for part in honest]
    spoilt[-1][7] = 1e30
    result = aggregate(spoilt, [1.0] * count, swarm.aggregation)
    assert result.norm() <= 10 * max(part.norm() for part in honest)


def test_parts_that_most_have_no_gradients_for_are_kept() -> None:
    word = torch.ones(4)  # in the captions of one peer alone
    result = aggregate([torch.zeros(4), torch.zeros(4), word], [1.0] * 3, Aggregation.MEAN)
    torch.testing.assert_close(result, word / 3)
