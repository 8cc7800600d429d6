"""`python volunteer.py TARGET plain|join|join-slowly|monitor ...`: a process of the benchmark.

`join` and `monitor` are `python -m training`'s, with the rehearsal's recipe under the name
`benchmark` and another target batch; `join-slowly` pauses before each micro-batch, and `plain` is
the loop without a swarm.
"""

import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from training.__main__ import main
from training.run.recipes import RECIPES, Recipe
from training.volunteer import peer

SECONDS = 40.0
PAUSE_SECONDS = 3.0


def make_recipe(target: int) -> Recipe:
    """Take the rehearsal's recipe with another target batch.

    Batches worth the exchange are stepped as the paper does it: while the next one is computed.
    """
    rehearsal = RECIPES["rehearsal"]
    swarm = replace(rehearsal.swarm, target_batch_size=target, poll_seconds=1.0)
    if target > rehearsal.swarm.target_batch_size:
        swarm = replace(swarm, delayed_step=True, progress_refresh=(0.5, 5.0), poll_seconds=5.0)
    return replace(rehearsal, name="benchmark", swarm=swarm)


def measure_plain_loop(recipe: Recipe, volunteers: int) -> float:
    """Samples a second of computing and stepping alone, each step on one volunteer's share."""
    from training.data import streaming
    from training.model.build import build_model
    from training.optimizer import lamb

    model = build_model(recipe).train()
    optimizer = lamb.build_optimizer(recipe, lamb.parameter_groups(model, recipe))
    stream = streaming.stream(recipe, b"plain")
    share = recipe.swarm.target_batch_size // volunteers
    samples, start = 0, 0.0
    for number, batch in enumerate(stream):
        if number == 3:
            samples, start = 0, time.perf_counter()
        model(**batch).loss.backward()
        samples += recipe.swarm.micro_batch_size
        if samples % share == 0:
            optimizer.step()
            optimizer.zero_grad()
        if start and time.perf_counter() - start > SECONDS:
            break
    return samples / (time.perf_counter() - start)


def slow_down() -> None:
    """Make this process' volunteer pause before each micro-batch."""
    batches = peer.Volunteer._batches

    def pausing(volunteer: peer.Volunteer, stop: threading.Event) -> Iterator[Any]:
        for batch in batches(volunteer, stop):
            stop.wait(PAUSE_SECONDS)
            yield batch

    peer.Volunteer._batches = pausing  # type: ignore[method-assign, assignment]


if __name__ == "__main__":
    target, command, *rest = sys.argv[1:]
    RECIPES["benchmark"] = make_recipe(int(target))
    if command == "plain":
        rate = measure_plain_loop(RECIPES["benchmark"], volunteers=2)
        (Path(rest[rest.index("--folder") + 1]) / "rate").write_text(str(rate))
        raise SystemExit(0)
    if command == "join-slowly":
        slow_down()
        command = "join"
    raise SystemExit(main([command, *rest]))
