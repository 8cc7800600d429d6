"""Effects of bad peers on training with and without CenteredClip, and CenteredClip's cost.

Nine real averagers on loopback, each with a network daemon of its own, average the gradients of
the smallest recipe's model on captioned shapes, in 16 bits. Two of them send their
values times 1000, or with the sign turned, or both; they aggregate what they receive honestly.
What becomes of training is measured in one process with the same aggregation, without a network.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from benchmarks.averagers import Group, averagers
from benchmarks.figures import Figure, Table, median
from tools.console import say

PEERS, BAD = 9, 2
BATCH = 16  # sequences of a peer in a step
ROUNDS, STEPS = 5, 300
LOOK = 50  # steps between two looks at the held-out loss
SEED = 7
PART = 2**19  # values of a part of a tensor that travels in 8 bits

ATTACKS: dict[str, Callable[[Any], Any]] = {
    "all honest": lambda gradient: gradient,
    "times 1000": lambda gradient: 1000 * gradient,
    "sign turned": lambda gradient: -gradient,
    "times -1000": lambda gradient: -1000 * gradient,
}


def run(quick: bool) -> Table:
    """Train with each aggregation under each attack, and time one aggregation of large parts."""
    from calculator.swarm.aggregation import Aggregation

    ways = (Aggregation.MEAN, Aggregation.CENTERED_CLIP)
    rounds, steps = (1, 3) if quick else (ROUNDS, STEPS)
    figures: list[Figure] = []
    for way in ways:
        shapes = [parameter.shape for parameter in _model().parameters()]
        with averagers(PEERS, shapes, way, float(BATCH), group_size=PEERS) as group:
            for attack, spoil in ATTACKS.items():
                figures += exchange(group, f"{way.value}, {attack}", spoil, rounds)
                say(f"{figures[-3].name}: {figures[-3].value:.3g}")
    for way in ways:
        for attack, spoil in ATTACKS.items():
            figures += train(way, f"{way.value}, {attack}", spoil, steps)
            say(f"{figures[-1].name}: {figures[-1].value:.3f}")
    for way in ways:
        for peers in (PEERS,) if quick else (PEERS, 16):
            figures.append(_time_aggregation(way, peers))
    return Table(f"{PEERS} peers, {BAD} of them bad where not all are honest", figures)


def exchange(group: Group, title: str, spoil: Callable[[Any], Any], rounds: int) -> list[Figure]:
    """Average gradients of the first weights: how far the average is off, and what it costs."""
    import torch

    model, batches = _model(), _batches()
    errors, seconds, sent = [], [], []
    for _ in range(rounds):
        gradients = _gradients(model, batches)
        honest = gradients if _is_honest(spoil) else gradients[BAD:]
        wanted = [torch.stack(parts).mean(0) for parts in zip(*honest, strict=True)]
        averaged, took, passed = group.average(_spoilt(gradients, spoil))
        errors.append(_norm(_minus(averaged[-1], wanted)) / _norm(wanted))
        seconds.append(took)
        sent.append(passed)
    return [
        Figure(f"{title}: error of the average", median(errors), "of the honest mean"),
        Figure(f"{title}: exchange", median(seconds), "s"),
        Figure(f"{title}: sent by all", median(sent) / 1e3, "kB"),
    ]


def train(way: Any, title: str, spoil: Callable[[Any], Any], steps: int) -> list[Figure]:
    """Train for some steps, each tensor aggregated by itself; the held-out loss on the way."""
    from training.averaging.aggregation import aggregate
    from training.optimizer import lamb
    from training.run.recipes import TINY

    model, batches = _model(), _batches()
    held_out = [next(batches) for _ in range(8)]
    optimizer = lamb.build_optimizer(TINY, lamb.parameter_groups(model, TINY))
    schedule = lamb.build_schedule(replace(TINY, schedule=_schedule(steps)), optimizer)
    weights = [float(BATCH)] * PEERS
    losses = []
    for step in range(1, steps + 1):
        gradients = _spoilt(_gradients(model, batches), spoil)
        for parameter, parts in zip(model.parameters(), zip(*gradients, strict=True), strict=True):
            parameter.grad = aggregate(parts, weights, way)
        optimizer.step()
        schedule.step()
        if step % LOOK == 0 or step == steps:
            loss = _loss(model, held_out)
            losses.append(Figure(f"{title}: held-out loss after {step} steps", loss, "nats"))
    return losses


def _schedule(steps: int) -> Any:
    """The recipe's warm-up, and an end of the schedule with the measurement's."""
    from training.run.recipes import TINY

    warmup = min(TINY.schedule.warmup_steps, steps)
    return replace(TINY.schedule, total_steps=steps, warmup_steps=warmup)


def _batches() -> Iterator[Any]:
    import torch

    from training.data import streaming
    from training.run.recipes import TINY

    torch.set_num_threads(1)
    return iter(streaming.stream(TINY, b"defence", None, BATCH))


def _gradients(model: Any, batches: Iterator[Any]) -> list[list[Any]]:
    """Each peer's gradients of a batch of its own."""
    gradients = []
    for _ in range(PEERS):
        model.zero_grad()
        model(**next(batches)).loss.backward()
        gradients.append([parameter.grad.clone() for parameter in model.parameters()])
    return gradients


def _spoilt(gradients: list[list[Any]], spoil: Callable[[Any], Any]) -> list[list[Any]]:
    return [[spoil(g) for g in own] for own in gradients[:BAD]] + gradients[BAD:]


def _is_honest(spoil: Callable[[Any], Any]) -> bool:
    return bool(spoil(1.0) == 1.0)


def _model() -> Any:
    from training.model.build import build_model
    from training.run.recipes import TINY

    return build_model(TINY).train()


def _minus(left: list[Any], right: list[Any]) -> list[Any]:
    return [a - b for a, b in zip(left, right, strict=True)]


def _norm(tensors: list[Any]) -> float:
    return float(sum(float(tensor.double().square().sum()) for tensor in tensors) ** 0.5)


def _loss(model: Any, batches: list[Any]) -> float:
    import torch

    with torch.no_grad():
        return sum(float(model(**batch).loss) for batch in batches) / len(batches)


def _time_aggregation(way: Any, peers: int) -> Figure:
    """Time one aggregation of parts as large as they travel, on one thread."""
    import torch

    from training.averaging.aggregation import aggregate

    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    parts = [torch.randn(PART) for _ in range(peers)]
    times = []
    for _ in range(7):
        start = time.process_time()  # of this thread alone: other programs do not count
        aggregate(parts, [float(BATCH)] * peers, way)
        times.append(time.process_time() - start)
    seconds = median(times) * 1e6 / PART
    return Figure(f"{way.value}: a million values of {peers} peers", 1000 * seconds, "ms")
