"""The curve as the page draws it, through the protocol."""

from functools import cache
from itertools import pairwise
from typing import Any

import pytest

from calculator.units import format_bytes
from tests.calculator.plans import ask


@cache
def drawn(**params: str) -> dict[str, Any]:
    return ask("curve", **params)["value"]


def reported(**params: str) -> dict[str, Any]:
    return ask("answer", **params)["value"]["report"]


STATES: list[dict[str, str]] = [
    {},
    {"model": "bert-base", "batch_size": "8", "checkpointing": "full"},
    {"model": "t5-small", "offload": "optimizer", "accumulation": "4"},
    {"model": "gpt3-175b", "gpu": "h100", "precision": "mixed"},
    {"model": "gpt2-s", "sequence_length": "1", "optimizer": "sgd"},
]


@pytest.mark.parametrize("state", STATES)
def test_the_picture_shows_the_reported_peak_and_phases(state: dict[str, str]) -> None:
    found, report = drawn(**state), reported(**state)
    peak = found["points"][found["peak"]]
    assert peak["total"] == format_bytes(report["gpu"]["peak"])
    assert peak["tops"][-1] == max(point["tops"][-1] for point in found["points"])
    for sentence, phase in zip(found["summary"], report["phases"], strict=True):
        assert f"is highest at {format_bytes(phase['gpu'])} (" in sentence
    assert sum("This is the peak." in sentence for sentence in found["summary"]) == 1
    shares_are_in_order_and_within_the_picture(found)


def shares_are_in_order_and_within_the_picture(found: dict[str, Any]) -> None:
    places = [point["x"] for point in found["points"]]
    assert places[0] == 0
    assert places == sorted(places)
    assert places[-1] < 1
    for point in found["points"]:
        assert point["tops"] == sorted(point["tops"])
        assert 0 <= point["tops"][0] <= point["tops"][-1] < 1
        assert 0 <= point["name"] < len(found["names"])
        assert all(0 <= kind < len(found["kinds"]) for kind, _, _ in point["largest"])
    assert all(0 < line["y"] < 1 for line in found["lines"])
    phases = found["phases"]
    assert [phase["name"] for phase in phases] == ["forward", "loss", "backward", "update"]
    assert phases[0]["start"] == 0
    assert phases[-1]["end"] == pytest.approx(1, abs=1e-4)
    assert all(before["end"] == after["start"] for before, after in pairwise(phases))
    assert all(phase["end"] - phase["start"] > 0.05 for phase in phases)


@pytest.mark.parametrize("state", [state for state in STATES if "offload" not in state])
def test_the_width_is_time_with_round_marks(state: dict[str, str]) -> None:
    found = drawn(**state)
    marks = [float(time["text"].split()[0]) for time in found["times"]]
    assert marks[0] == 0
    steps = {round(after - before, 6) for before, after in pairwise(marks)}
    assert len(steps) == 1
    places = [time["x"] for time in found["times"]]
    assert places == sorted(set(places))
    for point in found["points"][1:-1]:
        words, value, unit = point["time"].split()
        assert (words, unit) == ("after", found["times"][0]["text"].split()[1])
        before = [x for x, mark in zip(places, marks, strict=True) if mark < float(value)]
        assert all(x <= point["x"] + 0.01 for x in before)


def test_a_limit_far_above_the_curve_is_left_out() -> None:
    assert drawn(model="gpt2-s", gpu="h100")["limit"] is None
    limit = drawn(model="gpt2-s", gpu_memory="3")["limit"]
    assert limit["text"] == "GPU: 3.00 GiB"
    assert 0 < limit["y"] <= 1
