"""Before Python has started, the scripts compute the same figures as Python."""

import json
import random
from typing import Any

import pytest

from calculator.protocol import handle
from calculator.swarm.attacks import Attack
from templates.pages.how_it_works.context import race_constants
from templates.pages.security.context import constants
from tests.pages.scripts import call

COUNT = 400


def python(method: str, state: dict[str, Any]) -> Any:
    """The answer of Python; None where it refuses the state."""
    return json.loads(handle(json.dumps({"id": 1, "method": method, "params": state}))).get("value")


def flat(value: Any, path: str = "") -> dict[str, Any]:
    """Every number and text of an answer, by its place."""
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        return {k: v for name, one in items for k, v in flat(one, f"{path}/{name}").items()}
    return {path: value}


def assert_alike(found: Any, expected: Any, state: dict[str, Any]) -> None:
    """The same texts, and numbers but for the last digits of floating point."""
    if expected is None:
        assert found is None, state
        return
    one, other = flat(found), flat(expected)
    assert one.keys() == other.keys(), state
    numbers = {k for k, v in other.items() if isinstance(v, float | int) and v is not True}
    assert {k: one[k] for k in numbers} == pytest.approx(
        {k: other[k] for k in numbers}, rel=1e-9, abs=1e-9
    ), state
    texts = other.keys() - numbers
    assert {k: one[k] for k in texts} == {k: other[k] for k in texts}, state


def test_the_race_of_the_script_is_pythons() -> None:
    draw = random.Random(16)
    states: list[dict[str, Any]] = [
        {"speeds": [f"{draw.randrange(0, 41) / 2:g}" for _ in range(3)]} for _ in range(COUNT)
    ]
    states += [{"speeds": speeds.split()} for speeds in ("0 0 0", "0 0 8", "4 4 4", "20 20 20")]
    calls = [[state, race_constants()] for state in states]
    answers = call("demonstration/pace.js", "pace", calls)
    for state, found in zip(states, answers, strict=True):
        assert_alike(found, python("pace", state), state)


def test_the_plane_of_the_script_is_pythons() -> None:
    draw = random.Random(16)
    states: list[dict[str, Any]] = [
        {
            "attack": draw.choice([*Attack, "hand"]),
            "bad": [
                {"left": draw.uniform(1, 99), "top": draw.uniform(1, 99)}
                if draw.random() < 0.5
                else {"x": draw.uniform(-9, 9), "y": draw.uniform(-1e4, 9)}
                for _ in range(draw.randrange(8))
            ],
            "bad_count": str(draw.randrange(11)),
            "radius": f"{draw.randrange(1, 60) / 10:g}",
            "iterations": str(draw.randrange(1, 30)),
            "start": draw.choice(["zero", "median"]),
        }
        for _ in range(COUNT)
    ]
    calls = [[state, constants()] for state in states]
    answers = call("demonstration/aggregate.js", "aggregate", calls)
    for state, found in zip(states, answers, strict=True):
        assert_alike(found, python("aggregate", state), state)
