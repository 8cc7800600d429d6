"""Effects of lying judges on training with sparse exchanges, where volunteers judge the updates.

Nine peers train as in `judging`, with a host in the same process. Two of them send something else
than what they learned; they and their accomplices judge falsely, as far as they dare: they praise
the two and slander all others.
"""

import random
import statistics
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from tests.benchmarks.figures import Figure, Table
from tests.benchmarks.judging import BAD, PACES, SEED
from tests.benchmarks.sparse import WORKERS, Learner, Trial, final_loss
from tools.console import say

ROUNDS = 20
MINORITY, MAJORITY = 4, 6  # of the nine


@dataclass(frozen=True)
class Scene:
    """A training to make.

    Attributes:
        attack: of the bad peers.
        liars: among the judges; None: the host judges alone.
        is_careful: they lie only where nobody contradicts them.
    """

    attack: str = "times -10"
    liars: int | None = 0
    is_careful: bool = False


# The attacks of `defence`, then lying judges.
SCENES = {
    "times 1000": Scene("times 1000"),
    "sign turned": Scene("sign turned"),
    "times -1000": Scene("times -1000"),
    "the monitor judges alone": Scene(liars=None),
    "no liars": Scene(),
    f"{BAD} always lie": Scene(liars=BAD),
    f"{MINORITY} lie where nobody contradicts": Scene(liars=MINORITY, is_careful=True),
    f"{MAJORITY} always lie": Scene(liars=MAJORITY),
    f"{MAJORITY} lie where nobody contradicts": Scene(liars=MAJORITY, is_careful=True),
    "all lie": Scene(liars=len(PACES)),
}


@dataclass(frozen=True)
class Outcome:
    """The end of a training.

    Attributes:
        loss: held-out.
        bad_taken, honest_taken: fractions of the updates that rounds took.
        refused: fraction of the bad updates that the host refused by their norm.
        lies: false findings that were told.
        caught: liars that were noticed.
        last: round in which the last of them was; 0 without any, else counted from 1.
        believed: fraction of the updates that the host did not measure.
        seconds: to measure an update, median. micro_batch: to train on a micro-batch, median.
    """

    loss: float
    bad_taken: float
    honest_taken: float
    refused: float
    lies: int
    caught: int
    last: int
    believed: float
    seconds: float
    micro_batch: float


def run(quick: bool) -> Table:
    """Train with each number of lying judges."""
    jobs = [(scene, 3 if quick else ROUNDS) for scene in SCENES]
    figures = []
    with ProcessPoolExecutor(WORKERS, mp_context=get_context("spawn")) as pool:
        for (scene, _), outcome in zip(jobs, pool.map(train, jobs), strict=True):
            say(f"{scene}: {outcome}")
            figures += [
                Figure(f"{scene}: held-out loss", outcome.loss, "nats"),
                Figure(f"{scene}: bad updates taken", outcome.bad_taken, ""),
                Figure(f"{scene}: bad updates refused", outcome.refused, ""),
                Figure(f"{scene}: honest updates taken", outcome.honest_taken, ""),
                Figure(f"{scene}: false findings told", outcome.lies, ""),
                Figure(f"{scene}: liars noticed", outcome.caught, ""),
                Figure(f"{scene}: round of the last", outcome.last, ""),
                Figure(f"{scene}: not measured by the monitor", outcome.believed, ""),
            ]
            cost = outcome.seconds, outcome.micro_batch
    figures += [
        Figure("measuring an update", 1000 * cost[0], "ms"),
        Figure("training on a micro-batch", 1000 * cost[1], "ms"),
    ]
    title = f"{len(PACES)} peers, {BAD} of them bad, volunteers judge, {jobs[0][1]} rounds"
    return Table(title, figures)


def train(job: tuple[str, int]) -> Outcome:
    """Train with two peers that make an attack, and judges that lie."""
    from hivemind.utils.crypto import RSAPrivateKey

    from tests.training.sparse.attacks import ABSURD, ATTACKS, BadPeer
    from tests.training.sparse.jury import Jury, Manner
    from training.access.grants import peer_id_of
    from training.monitor.judging import HeldBatches
    from training.run.recipes import TINY, TINY_SPARSE
    from training.sparse.codec import Update
    from training.sparse.host import Host, NotTakenError
    from training.sparse.judging import Judge
    from training.sparse.layout import Layout
    from training.sparse.open_round import ClosingPolicy
    from training.sparse.panel import Panel
    from training.sparse.peer import Peer
    from training.sparse.shared import OuterSettings, SharedState, load
    from training.sparse.store import FolderStore
    from training.sparse.swarm import Swarm
    from training.sparse.verdict import Finding

    scene, rounds = SCENES[job[0]], job[1]
    settings, recipe, trial = TINY_SPARSE.sparse, replace(TINY, seed=SEED), Trial()
    assert settings is not None
    learners = [
        Learner(recipe, place, settings.learning_rate, pace) for place, pace in enumerate(PACES)
    ]
    keys = [RSAPrivateKey() for _ in PACES]
    identities = [peer_id_of(key.get_public_key().to_bytes().decode()) for key in keys]
    bad = set(identities[:BAD])
    first = SharedState.of(learners[0].parameters)
    held = HeldBatches(recipe, "", settings.judged, secret=b"judging")
    panel = None
    if scene.liars is not None:
        panel = Panel(held.disclose, settings.judges, chooser=random.Random(SEED))
    spent: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        store = FolderStore(Path(folder))
        outer = OuterSettings(settings.outer_learning_rate, settings.momentum)
        swarm = Swarm("benchmark", Layout.of(learners[0].parameters), store, set(identities), outer)
        policy = ClosingPolicy(1, grace=0.0, largest_norm=settings.largest_norm)
        host = Host(
            swarm, store, first.copy(), policy, clock=lambda: 0.0, judge=Judge(held), panel=panel
        )
        volunteers = Judge(held)

        def measure(update: Update) -> Finding:
            start = time.perf_counter()
            found = volunteers.measure(host.state.round, host.state.weights, update).finding
            spent.append(time.perf_counter() - start)
            return found

        jury = Jury(keys, measure, friends=bad)
        jury.accomplices = set(identities[: scene.liars or 0])
        jury.manner = Manner.ALONE if scene.is_careful else Manner.ALWAYS
        peers: list[Any] = []
        for learner, key, who in zip(learners, keys, identities, strict=True):
            kind = (BadPeer, (ATTACKS | ABSURD)[scene.attack]) if who in bad else (Peer,)
            peers.append(
                kind[0](
                    *kind[1:],
                    swarm,
                    first.copy(),
                    learner.parameters,
                    learner.optimizer,
                    learner.compute,
                    key,
                    trial.decay,
                    recipe.optimizer.max_gradient_norm,
                )
            )
        closed, trained, refused = [], 0.0, 0
        for number in range(rounds):
            start = time.perf_counter()
            for learner, peer in zip(learners, peers, strict=True):
                learner.set_rate(number / rounds)
                assert peer.learn(trial.units, learner.clock) is not None
            trained += time.perf_counter() - start
            for peer in peers:
                try:
                    host.take_payload(peer._content, b"")
                except NotTakenError:  # by its norm; only a bad one has such
                    refused += 1
            closed.append(_close(host, jury, keys[0]))
            for peer in peers:
                peer.follow()
        held.close()
        load(host.state.weights, learners[-1].parameters)
    taken = [one.peer in bad for round_ in closed for one in round_.taken]
    made = rounds * BAD, rounds * (len(PACES) - BAD)
    return Outcome(
        final_loss(recipe, learners[-1].model),
        taken.count(True) / made[0],
        taken.count(False) / made[1],
        refused / made[0],
        jury.lies,
        len(panel.liars) if panel is not None else 0,
        max((one.number + 1 for one in closed if one.liars), default=0),
        sum(one.believed for one in closed) / (rounds * len(PACES)),
        statistics.median(spent) if spent else 0.0,
        trained / sum(learner.samples / recipe.swarm.micro_batch_size for learner in learners),
    )


def _close(host: Any, jury: Any, key: Any) -> Any:
    """Let the judges speak, and close the round."""
    while True:
        host.judge_updates()
        if (closed := host.close_if_due(key)) is not None:
            return closed
        if host.describe()["judging"]:
            jury.answer(host)
