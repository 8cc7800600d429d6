from dataclasses import replace
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from calculator.estimate import estimate
from calculator.plan import Plan
from validation.compare import Comparison
from validation.configuration import Configuration
from validation.figure import OTHER_COLOUR, draw

SVG = "{http://www.w3.org/2000/svg}"


def made_up(model: str, error: float) -> Comparison:
    configuration = Configuration(model, Plan())
    report = estimate(configuration.architecture, configuration.plan)
    return Comparison(configuration, {"peak": round(report.gpu.total / (1 + error))}, report)


def test_a_figure_has_a_point_for_each_comparison_and_a_name_for_each_family() -> None:
    drawn = draw([made_up("gpt2-s", 0.0), made_up("gpt2-m", 0.5), made_up("bert-base", 0.0)])
    figure = ElementTree.fromstring(drawn)
    points = [
        circle for circle in figure.iter(f"{SVG}circle") if circle.find(f"{SVG}title") is not None
    ]
    names = [text.text for text in figure.iter(f"{SVG}text")]
    assert len(points) == 3
    assert "gpt2" in names
    assert "bert" in names
    assert "gpt2-m: +50.000 %" in drawn


@pytest.mark.parametrize("largest", ["gpt2-m", "gpt3-175b"])
def test_labels_of_an_axis_do_not_touch(largest: str) -> None:
    small = made_up("gpt2-s", 0.0)
    tiny = replace(small, row={"peak": small.predicted // 500})
    figure = ElementTree.fromstring(draw([small, tiny, made_up(largest, 0.0)]))
    labels = [text for text in figure.iter(f"{SVG}text") if (text.text or "").endswith("iB")]
    places = sorted(
        float(text.get("x", "")) for text in labels if text.get("text-anchor") == "middle"
    )
    assert len(places) >= 3
    assert min(after - before for before, after in pairwise(places)) >= 60


def test_types_without_a_colour_of_their_own_share_one_and_one_name() -> None:
    drawn = draw([made_up("gpt2-s", 0.0), made_up("Qwen/Qwen3-0.6B", 0.0)])
    names = [text.text for text in ElementTree.fromstring(drawn).iter(f"{SVG}text")]
    assert {"gpt2", "other types"} <= set(names)
    assert drawn.count(OTHER_COLOUR) == 2


def test_an_exact_prediction_lies_on_the_diagonal() -> None:
    figure = ElementTree.fromstring(draw([made_up("gpt2-s", 0.0), made_up("gpt3-xl", 0.0)]))
    diagonal = figure.find(f"{SVG}line")
    assert diagonal is not None
    for circle in figure.iter(f"{SVG}circle"):
        if circle.find(f"{SVG}title") is not None:
            along = float(circle.get("cx", "")) - float(diagonal.get("x1", ""))
            up = float(diagonal.get("y1", "")) - float(circle.get("cy", ""))
            assert abs(along - up) < 0.3
