from xml.etree import ElementTree

from calculator.estimate import estimate
from calculator.plan import Plan
from validation.compare import Comparison
from validation.configuration import Configuration
from validation.figure import draw

SVG = "{http://www.w3.org/2000/svg}"


def made_up(model: str, error: float) -> Comparison:
    configuration = Configuration(model, Plan())
    report = estimate(configuration.architecture, configuration.plan)
    return Comparison(configuration, {"peak": round(report.gpu.total / (1 + error))}, report)


def test_a_figure_has_a_point_for_each_comparison_and_a_name_for_each_family() -> None:
    drawn = draw([made_up("gpt2-s", 0.0), made_up("gpt2-m", 0.5), made_up("bert-base", 0.0)])
    figure = ElementTree.fromstring(drawn)
    assert len(figure.findall(f".//{SVG}circle/{SVG}title")) == 3
    assert {"gpt2", "bert"} <= {text.text for text in figure.iter(f"{SVG}text")}
    assert "gpt2-m: +50.000 %" in drawn


def test_an_exact_prediction_lies_on_the_diagonal() -> None:
    figure = ElementTree.fromstring(draw([made_up("gpt2-s", 0.0), made_up("gpt3-xl", 0.0)]))
    diagonal = figure.find(f"{SVG}line")
    for circle in figure.iter(f"{SVG}circle"):
        if circle.find(f"{SVG}title") is not None:
            along = float(circle.get("cx", "")) - float(diagonal.get("x1", ""))
            up = float(diagonal.get("y1", "")) - float(circle.get("cy", ""))
            assert abs(along - up) < 0.3
