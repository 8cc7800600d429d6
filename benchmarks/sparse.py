"""Loss and traffic of sparse exchanges against the synchronous recipe and plain loops.

The smallest recipe's model learns the captioned shapes, each time in one process and from equal
numbers of samples: by one learner alone (AdamW), by the recipe's global steps on the gradients of
all peers (LAMB), and by peers of uneven pace that make local steps and exchange sparse updates as
signed files in a folder. Time is counted in micro-batches; nothing travels over a network. Bytes
of the recipe are those of its gradients in its wire format; those of sparse updates are the
files' own.
"""

import statistics
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from benchmarks.figures import Figure, Table
from tools.console import say

SEEDS = (1, 2, 3)
PACES = (1.5, 1.0, 1.0, 0.5)  # micro-batches of each peer in a unit of time
SAMPLES = 64 * 100
WORKERS = 2  # trainings at once, a thread each
PER = 4096  # samples for which traffic is given: a global step of the 2021 run
LOOKED_AT = 16  # batches
TARGET_RATIO = 1.01  # of the loss to the synchronous recipe's
TARGET_TRAFFIC = 200.0  # times less


@dataclass(frozen=True)
class Trial:
    """Settings of the sparse peers, chosen on another seed than those that are reported.

    Attributes:
        units: of time that a round lasts; everyone makes one local step at least.
        rate: the local AdamW's peak learning rate.
        outer_rate: of the outer step.
    """

    units: float = 1.0
    rate: float = 4e-3
    outer_rate: float = 2.0


@dataclass(frozen=True)
class Outcome:
    """The end of a training: loss, bytes that a peer sent and received."""

    loss: float
    sent: float = 0.0
    received: float = 0.0


def run(quick: bool) -> Table:
    """Train with each way and seed."""
    seeds, samples = (SEEDS[:1], SAMPLES // 10) if quick else (SEEDS, SAMPLES)
    jobs = [(way, seed, samples) for seed in seeds for way in WAYS]
    outcomes: dict[str, list[Outcome]] = {way: [] for way in WAYS}
    with ProcessPoolExecutor(WORKERS, mp_context=get_context("spawn")) as pool:
        for (way, seed, _), outcome in zip(jobs, pool.map(_train, jobs), strict=True):
            outcomes[way].append(outcome)
            say(f"{way}, seed {seed}: {outcome.loss:.3f} nats")
    figures = [figure for way, found in outcomes.items() for figure in _losses(way, found)]
    pairs = zip(outcomes["sparse"], outcomes["synchronous"], strict=True)
    worst = max(ours.loss / theirs.loss for ours, theirs in pairs)
    figures.append(Figure("loss, sparse / synchronous, worst seed", worst, "", TARGET_RATIO))
    figures += _traffic(outcomes["synchronous"][0], outcomes["sparse"][0], samples)
    title = f"{len(PACES)} uneven peers on {samples:,} samples of shapes, seeds {seeds}"
    return Table(title, figures)


def _train(job: tuple[str, int, int]) -> Outcome:
    from training.run.recipes import TINY

    way, seed, samples = job
    return WAYS[way](replace(TINY, seed=seed), samples)


def plain(recipe: Any, samples: int, parts: int = 1, rate: float = Trial.rate) -> Outcome:
    """One learner's AdamW on batches of so many micro-batches."""
    learner = Learner(recipe, 0, rate)
    while learner.samples < samples:
        learner.set_rate(learner.samples / samples)
        for _ in range(parts):
            learner.compute()
        learner.step(parts)
    return Outcome(final_loss(recipe, learner.model))


def synchronous(recipe: Any, samples: int) -> Outcome:
    """The recipe's global steps, without errors of the wire format."""
    from training.averaging.wire import WireCompression, WireFormat, expected_bytes
    from training.model.build import build_model
    from training.optimizer import lamb

    steps = samples // recipe.swarm.target_batch_size
    schedule = replace(recipe.schedule, total_steps=steps, warmup_steps=_warmup(recipe, steps))
    recipe = replace(recipe, schedule=schedule)
    model = build_model(recipe).train()
    optimizer = lamb.build_optimizer(recipe, lamb.parameter_groups(model, recipe))
    scheduler = lamb.build_schedule(recipe, optimizer)
    streams = [batches(recipe, place) for place in range(len(PACES))]
    parts = recipe.swarm.target_batch_size // recipe.swarm.micro_batch_size
    for _ in range(steps):
        optimizer.zero_grad()
        for part in range(parts):
            (model(**next(streams[part % len(streams)])).loss / parts).backward()
        optimizer.step()
        scheduler.step()
    wire = WireCompression(WireFormat.ADAPTIVE, recipe.swarm.compression_threshold)
    # Of n peers each sends what the others average, and its own part's average to the others.
    peers = len(PACES)
    once = 2 * (peers - 1) / peers * expected_bytes(list(model.parameters()), wire)
    return Outcome(final_loss(recipe, model), steps * once, steps * once)


def sparse(recipe: Any, samples: int, trial: Trial = Trial()) -> Outcome:
    """Peers that make local steps for a while, and exchange sparse updates."""
    from hivemind.utils.crypto import RSAPrivateKey

    from training.access.grants import peer_id_of
    from training.sparse.closing import Swarm
    from training.sparse.layout import Layout
    from training.sparse.open_round import OpenRound
    from training.sparse.peer import Peer, published
    from training.sparse.shared import SharedState, load
    from training.sparse.store import FolderStore

    learners = [Learner(recipe, place, trial.rate, pace) for place, pace in enumerate(PACES)]
    first = SharedState.of(learners[0].parameters)
    closer = RSAPrivateKey()
    with tempfile.TemporaryDirectory() as folder:
        swarm = Swarm(
            "benchmark",
            Layout.of(learners[0].parameters),
            FolderStore(Path(folder)),
            {peer_id_of(closer.get_public_key().to_bytes().decode())},
            trial.outer_rate,
        )
        peers = [
            Peer(
                swarm,
                first.copy(),
                learner.parameters,
                learner.optimizer,
                learner.compute,
                RSAPrivateKey(),
                recipe.optimizer.max_gradient_norm,
            )
            for learner in learners
        ]
        while peers[0].state.samples < samples:
            state = peers[0].state
            open_round = OpenRound(swarm, state)
            for learner, peer in zip(learners, peers, strict=True):
                learner.set_rate(state.samples / samples)
                if peer.learn(trial.units, learner.clock) is not None:
                    peer.publish()
            for sha256 in published(swarm.store, state.round):
                open_round.offer(sha256)
            open_round.close(closer)
            for peer in peers:
                peer.follow()
        assert len({peer.state.digest() for peer in peers}) == 1
        load(peers[0].state.weights, learners[0].parameters)
    sent = statistics.fmean(peer.bytes_sent for peer in peers)
    return Outcome(final_loss(recipe, learners[0].model), sent, sent * (len(peers) - 1))


WAYS: dict[str, Callable[[Any, int], Outcome]] = {
    "plain loop, batches of 16": plain,
    "plain loop, batches of 64": partial(plain, parts=4),
    "synchronous": synchronous,
    "sparse": sparse,
}


class Learner:
    """A model, its AdamW and its data, and a clock that counts micro-batches at its pace."""

    def __init__(self, recipe: Any, place: int, rate: float, pace: float = 1.0) -> None:
        import torch

        from training.model.build import build_model
        from training.optimizer import lamb

        self.recipe, self.rate, self.pace = recipe, rate, pace
        self.model = build_model(recipe).train()
        self.parameters = [p for p in self.model.parameters() if p.requires_grad]
        groups = lamb.parameter_groups(self.model, recipe)
        self.optimizer = torch.optim.AdamW(groups, lr=rate, betas=(0.9, 0.95))
        self.samples, self._time = 0, 0.0
        self._batches = batches(recipe, place)

    def clock(self) -> float:
        """The time, in units."""
        return self._time

    def compute(self) -> int:
        """Add the gradients of a micro-batch."""
        batch = next(self._batches)
        self.model(**batch).loss.backward()
        self._time += 1 / self.pace
        self.samples += len(batch["text_ids"])
        return len(batch["text_ids"])

    def step(self, parts: int) -> None:
        """Step on the mean of the gradients of so many micro-batches."""
        import torch

        for parameter in self.parameters:
            parameter.grad /= parts
        torch.nn.utils.clip_grad_norm_(self.parameters, self.recipe.optimizer.max_gradient_norm)
        self.optimizer.step()
        self.optimizer.zero_grad()

    def set_rate(self, done: float) -> None:
        """Rise over the first 5% of the samples, then fall to zero, as the recipe's rate does."""
        factor = min(1.0, (done + 1e-3) / 0.05) if done < 0.05 else (1 - done) / 0.95
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate * max(factor, 0.0)


def batches(recipe: Any, place: int) -> Iterator[Any]:
    """The stream of one peer."""
    import torch

    from training.data import streaming

    torch.set_num_threads(1)
    return iter(streaming.stream(recipe, f"sparse {recipe.seed} {place}".encode(), None))


def final_loss(recipe: Any, model: Any) -> float:
    """The loss on batches of the same pictures, in an order of their own."""
    import torch

    stream = batches(recipe, -1)
    with torch.no_grad():
        losses = [float(model(**next(stream)).loss) for _ in range(LOOKED_AT)]
    return statistics.fmean(losses)


def _warmup(recipe: Any, steps: int) -> int:
    return min(int(recipe.schedule.warmup_steps), steps)


def _losses(name: str, outcomes: list[Outcome]) -> list[Figure]:
    losses = [outcome.loss for outcome in outcomes]
    figures = [Figure(f"{name}: loss, mean", statistics.fmean(losses), "nats")]
    if len(losses) > 1:
        figures += [
            Figure(f"{name}: lowest", min(losses), "nats"),
            Figure(f"{name}: highest", max(losses), "nats"),
        ]
    return figures


def _traffic(recipe: Outcome, ours: Outcome, samples: int) -> list[Figure]:
    """Bytes of the mean peer for 4,096 samples of all, and how many times less they are."""
    figures = []
    for name, one in (("synchronous", recipe), ("sparse", ours)):
        for way, size in (("sent", one.sent), ("received", one.received)):
            figures.append(Figure(f"{name}: {way} by a peer", size * PER / samples / 1e3, "kB"))
    less = recipe.sent / ours.sent
    both = (recipe.sent + recipe.received) / (ours.sent + ours.received)
    return [
        *figures,
        Figure("sent, synchronous / sparse", less, "", TARGET_TRAFFIC, at_least=True),
        Figure("sent and received, synchronous / sparse", both, "", TARGET_TRAFFIC, at_least=True),
    ]
