"""Parts of a rehearsal in chaos, and its comparison."""

import json
import threading
from dataclasses import replace
from inspect import signature
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks import misbehaving
from benchmarks.chaos import (
    BROKEN_SHARD,
    RECIPE,
    SMOOTHED,
    Calm,
    _loss_at,
    _step_of,
    break_shard,
)
from training.__main__ import make_parser
from training.data import streaming
from training.monitor.monitor import Monitor
from training.rehearsal.command import RehearsalOptions
from training.run.recipes import REHEARSAL, TINY, find_recipe
from training.run.supervisor import COMMAND
from training.volunteer import peer


def test_one_shard_is_broken_and_the_others_are_as_they_were(tmp_path: Path) -> None:
    source = streaming.prepare_shapes(TINY)
    folder = break_shard(TINY, tmp_path / "shards")
    changed = [
        path.name
        for path in sorted(source.glob("*.parquet"))
        if (folder / path.name).read_bytes() != path.read_bytes()
    ]
    assert changed == [sorted(source.glob("*.parquet"))[BROKEN_SHARD].name]
    assert len(list(folder.glob("*.parquet"))) == len(list(source.glob("*.parquet")))


def test_a_poisoner_is_started_as_a_volunteer_is() -> None:
    volunteer, poisoner = (signature(each).parameters for each in (peer.join, misbehaving.poison))
    assert list(poisoner)[1:] == list(volunteer)[1:]
    assert len(poisoner) == len(volunteer)


def test_losses_are_compared_at_the_same_step() -> None:
    lines: list[dict[str, Any]] = [{"step": n, "loss": 100.0 - n} for n in range(1, 60)]
    lines[39]["loss"] = None  # nobody reported one
    expected = [100.0 - n for n in range(40 - SMOOTHED, 40)]
    assert _loss_at(lines, 40) == pytest.approx(sum(expected) / SMOOTHED)
    assert json.dumps(lines)


def test_losses_are_compared_after_the_same_number_of_sequences() -> None:
    lines = [{"step": n, "samples": 0 if n == 3 else 32} for n in range(1, 10)]
    assert [_step_of(lines, count) for count in (1, 32, 33, 64, 65, 256)] == [1, 1, 2, 2, 4, 9]


def test_the_chaotic_recipe_differs_in_the_way_of_averaging_alone() -> None:
    chaos = find_recipe(str(RECIPE))
    assert replace(chaos, swarm=REHEARSAL.swarm) == REHEARSAL
    assert chaos.swarm.aggregation != REHEARSAL.swarm.aggregation


def test_the_calm_run_ends_after_as_many_sequences(tmp_path: Path) -> None:
    options = RehearsalOptions(minutes=10.0, peers=4, folder=tmp_path)
    calm = Calm(options, tmp_path, threading.Event(), sequences=17_216)
    parsed = make_parser().parse_args(calm.monitor.command[len(COMMAND) :])
    assert (parsed.sequences, parsed.minutes) == (17_216, 10.0)


@pytest.mark.parametrize(("counted", "over"), [(17_215, False), (17_216, True)])
def test_the_monitor_ends_a_run_after_so_many_sequences(counted: int, over: bool) -> None:
    monitor: Any = SimpleNamespace(
        step=5,
        samples=counted,
        recipe=TINY,
        options=SimpleNamespace(sequences=17_216, minutes=None),
    )
    assert Monitor.is_over.__get__(monitor) is over
