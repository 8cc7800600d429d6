"""Judging where the monitor has time for a sample of the updates alone, with a hundred volunteers.

A hundred peers train the smallest recipe's model on captioned shapes in one process, through the
host of a run with local steps. After some honest rounds a fifth of them send what they learned
times -10: the worst case for a sample, since their records are good until then. The monitor
measures all updates, or those alone that it must.
"""

import itertools
import random
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from benchmarks.figures import Figure, Table
from benchmarks.judging import SEED
from benchmarks.sparse import WORKERS, Learner, final_loss
from tools.console import say

PEERS, BAD = 100, 20
ROUNDS, HONEST_ROUNDS = 22, 12
MICRO_BATCH, JUDGED = 4, 16  # sequences: a hundred peers take turns on one core
WAYS = {"all honest": (0, True), "all are measured": (BAD, True), "a sample": (BAD, False)}


@dataclass(frozen=True)
class Outcome:
    """The end of a training.

    Attributes:
        loss: held-out.
        bad_taken: bad updates that rounds took, for each bad volunteer.
        last: round after the first attack in which a bad update was taken for the last time.
        honest_taken: fraction of the honest updates that rounds took.
        measured: fraction of the updates whose effect was measured, once nobody was new.
        seconds: to measure an update.
    """

    loss: float
    bad_taken: float
    last: int
    honest_taken: float
    measured: float
    seconds: float


def run(quick: bool) -> Table:
    """Train in each way."""
    rounds = HONEST_ROUNDS + 2 if quick else ROUNDS
    figures = []
    with ProcessPoolExecutor(WORKERS, mp_context=get_context("spawn")) as pool:
        for way, outcome in zip(WAYS, pool.map(train, WAYS, [rounds] * len(WAYS)), strict=True):
            say(f"{way}: {outcome}")
            figures += [
                Figure(f"{way}: held-out loss", outcome.loss, "nats"),
                Figure(f"{way}: bad updates taken, of each bad volunteer", outcome.bad_taken, ""),
                Figure(f"{way}: rounds until the last of them", outcome.last, ""),
                Figure(f"{way}: honest updates taken", outcome.honest_taken, ""),
                Figure(f"{way}: updates measured", outcome.measured, ""),
            ]
    figures.append(Figure("measuring an update", 1000 * outcome.seconds, "ms"))
    title = f"{PEERS} peers, {BAD} of them bad from round {HONEST_ROUNDS + 1} on, {rounds} rounds"
    return Table(title, figures)


def train(way: str, rounds: int) -> Outcome:
    """Train in a way of `WAYS`."""
    from hivemind.utils.crypto import RSAPrivateKey

    from tests.training.sparse.attacks import ATTACKS, BadPeer
    from training.access.grants import peer_id_of
    from training.monitor.judging import HeldBatches
    from training.run.recipes import TINY, TINY_SPARSE
    from training.sparse.closing import Swarm
    from training.sparse.host import Closed, Host
    from training.sparse.judging import FIRST_ROUNDS, Judge
    from training.sparse.layout import Layout
    from training.sparse.peer import Peer
    from training.sparse.shared import SharedState, load
    from training.sparse.store import FolderStore

    count, measures_all = WAYS[way]
    swarm_settings = replace(TINY.swarm, micro_batch_size=MICRO_BATCH)
    recipe = replace(TINY, seed=SEED, swarm=swarm_settings)
    settings = TINY_SPARSE.sparse
    assert settings is not None
    learners = [Learner(recipe, place, settings.learning_rate, 1.0) for place in range(PEERS)]
    keys = [RSAPrivateKey() for _ in learners]
    identities = [peer_id_of(key.get_public_key().to_bytes().decode()) for key in keys]
    first = SharedState.of(learners[0].parameters)
    held = HeldBatches(recipe, "", JUDGED, secret=b"judging")
    spent: list[float] = []

    class Timed(Judge):
        def measure(self, *arguments: Any) -> Any:
            start = time.perf_counter()
            effect = super().measure(*arguments)
            spent.append(time.perf_counter() - start)
            return effect

        def must_measure(self, peer: str) -> bool:
            return measures_all or super().must_measure(peer)

    with tempfile.TemporaryDirectory() as folder:
        store = FolderStore(Path(folder))
        layout, rate = Layout.of(learners[0].parameters), settings.outer_learning_rate
        swarm = Swarm("benchmark", layout, store, {identities[0]}, rate)
        hasty = replace(settings, seconds=1e-9, quorum=1, grace=0.0, longest=0.0)
        judge = Timed(held, random.Random(SEED))
        host = Host(
            swarm, store, first.copy(), hasty, clock=itertools.count().__next__, judge=judge
        )
        peers: list[Any] = []
        for place, (learner, key) in enumerate(zip(learners, keys, strict=True)):
            rest = (learner.compute, key, recipe.optimizer.max_gradient_norm)
            arguments = (swarm, first.copy(), learner.parameters, learner.optimizer, *rest)
            bad = place < count
            attack = turning(ATTACKS["times -10"])
            peers.append(BadPeer(attack, *arguments) if bad else Peer(*arguments))
        closed: list[Closed] = []
        for number in range(rounds):
            for learner, peer in zip(learners, peers, strict=True):
                learner.set_rate(number / rounds)
                assert peer.learn(1.0, learner.clock) is not None
                host.take_payload(peer._content, b"")
            host.judge_updates()
            one = host.close_if_due(keys[0])
            assert one is not None
            closed.append(one)
            taken = {entry.peer for entry in one.taken}
            for who, peer in zip(identities, peers, strict=True):
                peer.state = host.state.copy()
                peer._settle(was_taken=who in taken)
        load(host.state.weights, learners[-1].parameters)
    bad_ones = set(identities[:count])
    attacks = [sum(entry.peer in bad_ones for entry in one.taken) for one in closed[HONEST_ROUNDS:]]
    honest = sum(entry.peer not in bad_ones for one in closed for entry in one.taken)
    late = closed[FIRST_ROUNDS:]
    return Outcome(
        final_loss(recipe, learners[-1].model),
        sum(attacks) / count if count else 0.0,
        max((place + 1 for place, taken_ in enumerate(attacks) if taken_), default=0),
        honest / (rounds * (PEERS - count)),
        sum(one.measured for one in late) / (PEERS * len(late)),
        sum(spent) / len(spent),
    )


def turning(attack: Any) -> Any:
    """An attack that begins after the honest rounds."""
    numbers: Iterator[int] = iter(range(10**9))

    def turn(material: Any) -> Any:
        return attack(material) if next(numbers) >= HONEST_ROUNDS else material.own

    return turn
