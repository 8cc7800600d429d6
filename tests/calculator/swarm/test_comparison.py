"""The demonstration's answers are those of the aggregation, drawn where they lie."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calculator.protocol import handle
from calculator.swarm.aggregation import Clipping, centered_clip_path, coordinate_median, mean
from calculator.swarm.attacks import Attack, attack
from calculator.swarm.comparison import compare
from calculator.swarm.plane import (
    HALF_HEIGHT,
    HALF_WIDTH,
    HONEST,
    MOST_BAD,
    answer,
    verdict,
)
from tests.calculator.plans import examples

COORDINATES = st.floats(-1e6, 1e6)


def ask(params: dict[str, Any]) -> dict[str, Any]:
    text = json.dumps({"id": 1, "method": "aggregate", "params": params})
    return json.loads(handle(text))  # type: ignore[no-any-return]


def vector(place: dict[str, Any]) -> tuple[float, float]:
    return (place["x"], place["y"])


@given(
    st.sampled_from(Attack),
    st.integers(0, MOST_BAD),
    st.floats(0.1, 5),
    st.integers(1, 20),
)
@examples(25)
def test_the_page_gets_what_the_aggregation_computes(
    kind: Attack, count: int, radius: float, iterations: int
) -> None:
    value = answer(
        {"attack": kind.value, "bad_count": count, "radius": radius, "iterations": iterations}
    )
    bad = attack(kind, HONEST, count, radius)
    vectors = [*HONEST, *bad]
    assert [list(vector(place)) for place in value["bad"]] == bad
    results = value["results"]
    assert list(vector(results["mean"])) == mean(vectors)
    assert list(vector(results["median"])) == coordinate_median(vectors)
    path = centered_clip_path(vectors, Clipping(radius, iterations))
    assert [list(vector(place)) for place in results["centered-clip"]["path"]] == path
    for result in results.values():
        assert result["error"] == math.dist(vector(result), mean(HONEST))


def test_without_bad_volunteers_the_mean_is_right() -> None:
    value = answer({"bad_count": "0"})
    assert value["results"]["mean"]["error"] == pytest.approx(0.0)
    assert value["figures"]["mean.verdict"] == "close"
    assert "0 bad of 7 volunteers" in value["figures"]["summary"]


def test_two_of_nine_spoil_the_mean_and_neither_median_nor_centered_clip() -> None:
    for kind in ("pull", "flip", "scale"):
        texts = answer({"attack": kind})["figures"]
        assert texts["mean.verdict"] in {"off", "backwards"}
        # the median is one of the honest values, so no better than one honest volunteer
        assert (texts["median.verdict"], texts["centered-clip.verdict"]) == ("fair", "close")
        assert "The median and CenteredClip stay near the honest mean." in texts["finding"]


def test_seven_of_fourteen_by_collusion_are_close_to_nothing() -> None:
    value = answer({"attack": "collude", "bad_count": "7"})
    # by hand: half of all lie 0.92 * 1.5 from the honest mean, around a common middle
    assert value["results"]["mean"]["error"] == pytest.approx(0.92 * 1.5 / 2)
    texts = value["figures"]
    assert "close" not in {texts[f"{name}.verdict"] for name in value["results"]}
    assert texts["finding"].startswith("As many volunteers are bad as honest: no average")
    more = answer({"attack": "collude", "bad_count": "8"})["figures"]
    assert more["finding"].startswith("Most volunteers are bad")


def test_a_verdict_is_relative_to_one_honest_volunteer() -> None:
    honest = [(1.0, 0.0), (1.0, 2.0)]  # each 1 from their mean, (1, 1)
    words = []
    for error in (0.5, 0.51, 1.0, 1.01):
        # a third volunteer moves the mean of all by a third of its distance
        result, *_ = compare(honest, [(1.0 + 3 * error, 1.0)], Clipping(1.0)).results
        assert result.error == pytest.approx(error)
        words.append(verdict(result, 1.0 + 1e-9))
    assert words == ["close", "fair", "fair", "off"]
    behind, *_ = compare(honest, [(-8.0, -8.0)], Clipping(1.0)).results
    assert verdict(behind, 1.0) == "backwards"


@pytest.mark.parametrize(
    ("state", "sentence"),
    [
        ({"bad_count": 0}, "No one is bad, so the mean is exact. The median and CenteredClip stay"),
        ({}, "The bad gradients spoil the mean."),
        ({"bad_count": 4}, "The mean points backward and would undo what the model has learned."),
        ({"attack": "collude", "bad_count": 1}, "The bad gradients hardly move the mean."),
        ({"attack": "collude", "bad_count": 5}, "The bad gradients pull the mean aside."),
        ({"attack": "collude"}, "No bad gradient is clipped, because none is farther away than"),
        ({"iterations": 1}, "CenteredClip is still on its way: it needs more iterations."),
        ({"iterations": 1}, "The median stays near the honest mean, CenteredClip does not."),
    ],
)
def test_a_sentence_says_what_can_be_seen(state: dict[str, Any], sentence: str) -> None:
    texts = answer(state)["figures"]
    assert sentence in texts["finding"]
    assert texts["summary"].endswith(texts["finding"])


def test_who_colludes_within_the_radius_is_not_held_off_better_than_by_the_mean() -> None:
    results = answer({"attack": "collude"})["results"]
    assert results["centered-clip"]["error"] == pytest.approx(results["mean"]["error"], rel=0.05)


def test_from_the_median_with_the_usual_radius_it_arrives_in_three_iterations() -> None:
    near = float(answer({})["figures"]["middle_distance"])
    for kind in Attack:
        value = answer({"attack": kind, "start": "median", "iterations": 3, "radius": near})
        start, *_ = value["results"]["centered-clip"]["path"]
        assert vector(start) == vector(value["results"]["median"])
        assert value["figures"]["centered-clip.verdict"] == "close"


def test_the_circle_of_the_radius_is_drawn_in_the_pictures_own_scale() -> None:
    # SVG: a radius in percent is relative to the root mean square of width and height
    value = answer({"radius": 2.5})
    mean_side = math.sqrt(((2 * HALF_WIDTH) ** 2 + (2 * HALF_HEIGHT) ** 2) / 2)
    assert value["reach"] / 100 * mean_side == pytest.approx(2.5)


def test_an_angle_is_that_between_the_arrows() -> None:
    (result, *_) = compare([(1.0, 0.0)], [(-1.0, 2.0)], Clipping(1.0)).results
    assert (result.vector, result.angle) == ((0.0, 1.0), pytest.approx(90.0))
    (result, *_) = compare([(0.0, 1.0)], [(0.0, -1.0)], Clipping(1.0)).results
    assert result.angle is None


@given(COORDINATES, COORDINATES)
@examples(50)
def test_what_is_in_the_picture_stands_where_it_lies_and_the_rest_at_its_edge(
    x: float, y: float
) -> None:
    (place,) = answer({"attack": "hand", "bad": [{"x": x, "y": y}], "bad_count": 1})["bad"]
    assert vector(place) == (x, y)
    drawn = ((place["left"] - 50) / 50 * HALF_WIDTH, (50 - place["top"]) / 50 * HALF_HEIGHT)
    assert 0 < place["left"] < 100
    assert 0 < place["top"] < 100
    if place["outside"]:
        assert math.isclose(drawn[0] * y, drawn[1] * x, rel_tol=1e-6, abs_tol=1e-3)
    else:
        assert drawn == pytest.approx((x, y))
        at_place = {"left": place["left"], "top": place["top"]}
        (again,) = answer({"attack": "hand", "bad": [at_place], "bad_count": 1})["bad"]
        assert vector(again) == pytest.approx((x, y))


def test_more_bad_volunteers_join_those_that_were_moved_by_hand() -> None:
    points = [{"x": 1.0, "y": 1.0}, {"left": 50, "top": 0}]
    value = answer({"attack": "hand", "bad": points[:1], "bad_count": 3})
    expected = [[1.0, 1.0], *attack(Attack.PULL, HONEST, 3, 1.0)[1:]]
    assert [list(vector(place)) for place in value["bad"]] == expected
    again = answer({"attack": "hand", "bad": value["bad"], "bad_count": 3})
    assert again["bad"] == value["bad"]
    fewer = answer({"attack": "hand", "bad": points, "bad_count": 1})
    assert len(fewer["bad"]) == 1


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"attack": "scall"}, "attack"),
        ({"attack": ["pull"]}, "attack"),
        ({"radius": 0}, "radius"),
        ({"radius": "nan"}, "radius"),
        ({"radius": "wide"}, "radius"),
        ({"radius": [1]}, "radius"),
        ({"iterations": 0}, "iterations"),
        ({"iterations": 2.5}, "iterations"),
        ({"iterations": 1e300}, "iterations"),
        ({"bad_count": -1}, "bad_count"),
        ({"bad_count": 11}, "bad_count"),
        ({"attack": "hand"}, "bad"),
        ({"attack": "hand", "bad": "1,2"}, "bad"),
        ({"attack": "hand", "bad": [[1, 2]]}, "bad"),
        ({"attack": "hand", "bad": [{"x": 1, "top": 2}]}, "bad"),
        ({"attack": "hand", "bad": [{"x": 1, "y": "x"}]}, "bad"),
        ({"attack": "hand", "bad": [{"x": 1, "y": 1e7}]}, "bad"),
        ({"start": "history"}, "start"),
    ],
)
def test_a_bad_value_gets_an_error_that_names_its_field(given: dict[str, Any], field: str) -> None:
    found = ask(given)
    assert (found["kind"], found["error"]["field"]) == ("error", field)


def test_an_answer_is_a_handful_of_numbers_for_the_page() -> None:
    found = ask({})
    assert found["kind"] == "result"
    assert "NaN" not in json.dumps(found)
