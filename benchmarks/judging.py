"""Effects of bad peers on training with sparse exchanges, with and without judging of updates.

Nine peers train the smallest recipe's model on captioned shapes in one process, with local steps
and signed files in a folder, as in `sparse`; two of them send something else than what they
learned. The updates are judged as the monitor does it.
"""

import tempfile
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from benchmarks.figures import Figure, Table
from benchmarks.sparse import WORKERS, Learner, Trial, final_loss
from tools.console import say

PACES = (1.5, 1.0, 1.5, 0.5, 1.0, 1.0, 0.5, 1.0, 1.0)  # micro-batches in a unit of time
BAD = 2  # the first ones
ROUNDS = 30
SEED = 4
HONEST = "all honest"


@dataclass(frozen=True)
class Outcome:
    """The end of a training.

    Attributes:
        loss: held-out.
        bad_taken, honest_taken: fractions of the updates that rounds took; 1 without any.
    """

    loss: float
    bad_taken: float
    honest_taken: float


def run(quick: bool) -> Table:
    """Train under each attack, with and without judging."""
    from tests.training.sparse.attacks import ATTACKS

    rounds = 3 if quick else ROUNDS
    jobs = [(a, judged, rounds) for a in (HONEST, *ATTACKS) for judged in (False, True)]
    figures = []
    with ProcessPoolExecutor(WORKERS, mp_context=get_context("spawn")) as pool:
        for (attack, judged, _), outcome in zip(jobs, pool.map(train, jobs), strict=True):
            title = f"{attack}, {'judged' if judged else 'not judged'}"
            say(f"{title}: {outcome}")
            figures.append(Figure(f"{title}: held-out loss", outcome.loss, "nats"))
            if judged:
                figures += [
                    Figure(f"{title}: bad updates taken", outcome.bad_taken, ""),
                    Figure(f"{title}: honest updates taken", outcome.honest_taken, ""),
                ]
    title = f"{len(PACES)} peers, {BAD} of them bad where not all are honest, {rounds} rounds"
    return Table(title, figures)


def train(job: tuple[str, bool, int]) -> Outcome:
    """Train with two peers that make an attack, or none."""
    from hivemind.utils.crypto import RSAPrivateKey

    from tests.training.sparse.attacks import ATTACKS, BadPeer
    from training.access.envelope import FileError
    from training.access.grants import peer_id_of
    from training.monitor.judging import HeldBatches
    from training.run.recipes import TINY, TINY_SPARSE
    from training.sparse import closing
    from training.sparse.closing import Swarm
    from training.sparse.judging import Judge
    from training.sparse.layout import Layout
    from training.sparse.open_round import OpenRound
    from training.sparse.peer import Peer, published
    from training.sparse.shared import SharedState, load
    from training.sparse.store import FolderStore

    attack, judged, rounds = job
    recipe, trial, settings = replace(TINY, seed=SEED), Trial(), TINY_SPARSE.sparse
    assert settings is not None
    learners = [
        Learner(recipe, place, settings.learning_rate, pace) for place, pace in enumerate(PACES)
    ]
    first = SharedState.of(learners[0].parameters)
    keys = [RSAPrivateKey() for _ in PACES]
    identities = [peer_id_of(key.get_public_key().to_bytes().decode()) for key in keys]
    judge = Judge(HeldBatches(recipe, "", settings.judged, secret=b"judging"))
    counts = {True: [0, 0], False: [0, 0]}  # of bad and honest peers: published, taken
    bad = set() if attack == HONEST else set(identities[:BAD])
    with tempfile.TemporaryDirectory() as folder:
        swarm = Swarm(
            "benchmark",
            Layout.of(learners[0].parameters),
            FolderStore(Path(folder)),
            {identities[0]},
            settings.outer_learning_rate,
        )
        peers: list[Any] = []
        for learner, key, who in zip(learners, keys, identities, strict=True):
            arguments = (swarm, first.copy(), learner.parameters, learner.optimizer)
            rest = (learner.compute, key, recipe.optimizer.max_gradient_norm)
            if who in bad:
                peers.append(BadPeer(ATTACKS[attack], *arguments, *rest))
            else:
                peers.append(Peer(*arguments, *rest))
        for number in range(rounds):
            state = peers[-1].state
            open_round = OpenRound(swarm, state, settings.largest_norm)
            for learner, peer in zip(learners, peers, strict=True):
                learner.set_rate(number / rounds)
                peer.learn(trial.units, learner.clock)
                peer.publish()
            for sha256 in published(swarm.store, number):
                try:
                    open_round.offer(sha256)
                except FileError:  # by its norm; only a bad one has such
                    counts[True][0] += 1
            offered = open_round.taken
            if judged:
                effects = {
                    one.peer: (
                        judge.measure(number, state.weights, open_round.read(one)),
                        one.samples,
                    )
                    for one in offered
                }
                open_round.leave_out(judge.weigh(effects).keys())
            open_round.close(keys[0])
            found = closing.find(swarm, number)
            assert found is not None
            taken = {one.peer for one in found.taken}
            for one in offered:
                count = counts[one.peer in bad]
                count[0] += 1
                count[1] += one.peer in taken
            for peer in peers:
                peer.follow()
        load(peers[-1].state.weights, learners[-1].parameters)
    shares = {is_bad: taken / made if made else 1.0 for is_bad, (made, taken) in counts.items()}
    return Outcome(final_loss(recipe, learners[-1].model), shares[True], shares[False])
