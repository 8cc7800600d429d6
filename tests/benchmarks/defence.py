"""What bad peers do to a training run with and without CenteredClip, and what CenteredClip costs.

Nine real averagers on loopback, each with a network daemon of its own, average the gradients of
the smallest recipe's model on captioned shapes, in 16 bits. Two of them send their
values times 1000, or with the sign turned, or both; they aggregate what they receive honestly.
What becomes of training is measured in one process with the same aggregation, without a network.
"""

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.benchmarks.figures import Figure, Table, median
from tools.console import say

PEERS, BAD = 9, 2
BATCH = 16  # sequences of a peer in a step
ROUNDS, STEPS = 5, 40
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
    from calculator.aggregation import Aggregation

    ways = (Aggregation.MEAN, Aggregation.CENTERED_CLIP)
    rounds, steps = (1, 3) if quick else (ROUNDS, STEPS)
    figures: list[Figure] = []
    for way in ways:
        with swarm(way) as group:
            for attack, spoil in ATTACKS.items():
                figures += exchange(group, f"{way.value}, {attack}", spoil, rounds)
                say(f"{figures[-3].name}: {figures[-3].value:.3g}")
    for way in ways:
        for attack, spoil in ATTACKS.items():
            figures.append(train(way, f"{way.value}, {attack}", spoil, steps))
            say(f"{figures[-1].name}: {figures[-1].value:.3f}")
    for way in ways:
        for peers in (PEERS,) if quick else (PEERS, 16):
            figures.append(_time_aggregation(way, peers))
    return Table(f"{PEERS} peers, {BAD} of them bad where not all are honest", figures)


class Group:
    """Nine averagers of one process, each in a process and with a daemon of its own."""

    def __init__(self, averagers: list[Any]) -> None:
        self.averagers = averagers

    def average(self, gradients: list[list[Any]]) -> tuple[list[Any], float, int]:
        """Average once; what an honest peer got, the seconds, the bytes that all sent."""
        import torch

        from training import traffic

        for averager, gradient in zip(self.averagers, gradients, strict=True):
            with averager.get_tensors() as tensors, torch.no_grad():
                for tensor, values in zip(tensors, gradient, strict=True):
                    tensor.copy_(values)
        before, start = traffic.read().sent, time.perf_counter()
        rounds = [
            averager.step(weight=BATCH, wait=False, timeout=60.0) for averager in self.averagers
        ]
        for exchange in rounds:
            exchange.result(60.0)
        seconds, sent = time.perf_counter() - start, traffic.read().sent - before
        with self.averagers[-1].get_tensors() as tensors:
            averaged = [tensor.clone() for tensor in tensors]
        for averager in self.averagers:
            averager.take_rounds()
        return averaged, seconds, sent


@contextmanager
def swarm(way: Any) -> Iterator[Group]:
    """Open the averagers; on leaving, close them."""
    from hivemind.averaging import DecentralizedAverager

    from training import traffic
    from training.aggregation import AggregationRule
    from training.guard import GuardedAverager
    from training.network import Endpoint, Identity, Network
    from training.wire import WireCompression, WireFormat

    assert issubclass(GuardedAverager, DecentralizedAverager)
    traffic.start_counting()
    wire = WireCompression(WireFormat.FLOAT16, threshold=0)
    shapes = [parameter.shape for parameter in _model().parameters()]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        networks: list[Network] = []
        for index in range(PEERS):
            entry = networks[0].addresses() if networks else ()
            identity = Identity.read(folder / str(index))
            local = Endpoint("127.0.0.1")
            networks.append(Network("defence", identity, entry, local, may_be_alone=index == 0))
            stack.callback(networks[-1].close)
        averagers = []
        for network in networks:
            averagers.append(
                GuardedAverager(
                    _zeros(shapes),
                    network.dht,
                    rule=AggregationRule(way),
                    largest_weight=float(BATCH),
                    prefix="defence",
                    target_group_size=PEERS,
                    min_matchmaking_time=20.0,
                    request_timeout=3.0,
                    next_chunk_timeout=30.0,
                    compression=wire,
                    start=True,
                )
            )
            stack.callback(averagers[-1].shutdown)
        yield Group(averagers)


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
        errors.append(_norm(_minus(averaged, wanted)) / _norm(wanted))
        seconds.append(took)
        sent.append(passed)
    return [
        Figure(f"{title}: error of the average", median(errors), "of the honest mean"),
        Figure(f"{title}: exchange", median(seconds), "s"),
        Figure(f"{title}: sent by all", median(sent) / 1e3, "kB"),
    ]


def train(way: Any, title: str, spoil: Callable[[Any], Any], steps: int) -> Figure:
    """Train for some steps, each tensor aggregated by itself; the held-out loss afterwards."""
    from training import lamb
    from training.aggregation import AggregationRule, aggregate
    from training.recipes import TINY

    model, batches = _model(), _batches()
    held_out = [next(batches) for _ in range(8)]
    optimizer = lamb.build_optimizer(TINY, lamb.parameter_groups(model, TINY))
    schedule = lamb.build_schedule(TINY, optimizer)
    rule, weights = AggregationRule(way), [float(BATCH)] * PEERS
    for _ in range(steps):
        gradients = _spoilt(_gradients(model, batches), spoil)
        for parameter, parts in zip(model.parameters(), zip(*gradients, strict=True), strict=True):
            parameter.grad = aggregate(parts, weights, rule)
        optimizer.step()
        schedule.step()
    return Figure(f"{title}: held-out loss after {steps} steps", _loss(model, held_out), "nats")


def _batches() -> Iterator[Any]:
    import torch

    from training import data
    from training.recipes import TINY

    torch.set_num_threads(1)
    return iter(data.stream(TINY, b"defence", None, BATCH))


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
    from training.model import build_model
    from training.recipes import TINY

    return build_model(TINY).train()


def _zeros(shapes: list[Any]) -> list[Any]:
    import torch

    return [torch.zeros(shape) for shape in shapes]


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

    from training.aggregation import AggregationRule, aggregate

    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    parts = [torch.randn(PART) for _ in range(peers)]
    times = []
    for _ in range(7):
        start = time.process_time()  # of this thread alone: other programs do not count
        aggregate(parts, [float(BATCH)] * peers, AggregationRule(way))
        times.append(time.process_time() - start)
    seconds = median(times) * 1e6 / PART
    return Figure(f"{way.value}: a million values of {peers} peers", 1000 * seconds, "ms")
