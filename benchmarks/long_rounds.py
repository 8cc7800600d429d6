"""Loss after longer rounds of local steps, and with one file for all, at equal samples.

The peers, model and data are those of `sparse`; a round lasts as long as so many of the synchronous
recipe's steps. With one file, the host adds up a round's updates, keeps of the sum what fits into
one update, and adds the rest to the next round's, as a peer does with its own: everybody then
downloads as much as it uploads, however many take part. That is a simulation: no run does it yet.
"""

import statistics
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from typing import Any

from benchmarks.figures import Figure, Table
from benchmarks.sparse import PACES, SEEDS, WORKERS, Learner, Trial, final_loss, synchronous
from tools.console import say

SAMPLES = 64 * 200
SYNCHRONOUS = "synchronous"
# Length of a round in synchronous steps, one file for all, and the outer learning rate, which was
# chosen on another seed than those that are reported.
TRIALS = ((1, False, 2.0), (8, False, 4.0), (1, True, 2.0), (2, True, 2.0))


def run(quick: bool) -> Table:
    """Train with rounds of each length and each way of exchange."""
    seeds, samples = (SEEDS[:1], SAMPLES // 40) if quick else (SEEDS, SAMPLES)
    ways: list[tuple[str, Trial | None, bool]] = [(SYNCHRONOUS, None, False)]
    for steps, one_file, rate in TRIALS:
        trial = Trial(units=steps, outer_rate=rate)
        ways.append((name_of(steps, one_file), trial, one_file))
    jobs = [(trial, one_file, seed, samples) for _, trial, one_file in ways for seed in seeds]
    with ProcessPoolExecutor(WORKERS, mp_context=get_context("spawn")) as pool:
        losses = list(pool.map(train, jobs))
    figures = []
    theirs = losses[: len(seeds)]
    for number, (name, _, _) in enumerate(ways):
        ours = losses[number * len(seeds) : (number + 1) * len(seeds)]
        figures += [
            Figure(f"{name}: loss, mean", statistics.fmean(ours), "nats"),
            Figure(f"{name}: lowest", min(ours), "nats"),
            Figure(f"{name}: highest", max(ours), "nats"),
        ]
        if name != SYNCHRONOUS:
            worst = max(a / b for a, b in zip(ours, theirs, strict=True))
            figures.append(Figure(f"{name}: loss / synchronous, worst seed", worst, "", 1.01))
    title = f"{len(PACES)} uneven peers on {samples:,} samples of shapes, seeds {seeds}"
    return Table(title, figures)


def name_of(steps: int, one_file: bool) -> str:
    """The name of a way, with the length of its rounds in synchronous steps."""
    return f"rounds of {steps}" + (", one file" if one_file else "")


def train(job: tuple[Trial | None, bool, int, int]) -> float:
    """The loss after training one way."""
    from training.run.recipes import TINY

    trial, one_file, seed, samples = job
    recipe = replace(TINY, seed=seed)
    if trial is None:
        loss = synchronous(recipe, samples).loss
    else:
        loss = in_rounds(recipe, samples, trial, one_file)
    say(f"{trial}, {'one file' if one_file else ''}, seed {seed}: {loss:.3f} nats")
    return loss


def in_rounds(recipe: Any, samples: int, trial: Trial, one_file: bool) -> float:
    """The loss after rounds of local steps, whose updates travel as in a run."""
    import torch

    from training.sparse.codec import decode
    from training.sparse.layout import Layout
    from training.sparse.peer import ErrorFeedback, train_locally
    from training.sparse.shared import Contribution, SharedState, load

    learners = [Learner(recipe, place, trial.rate, pace) for place, pace in enumerate(PACES)]
    state = SharedState.of(learners[0].parameters)
    layout = Layout.of(learners[0].parameters)
    feedbacks = [ErrorFeedback(layout) for _ in learners]
    common = ErrorFeedback(layout)
    while state.samples < samples:
        contributions = []
        for learner, feedback in zip(learners, feedbacks, strict=True):
            learner.set_rate(state.samples / samples)
            difference, computed = train_locally(
                state.weights - feedback.residual,
                learner.parameters,
                learner.optimizer,
                learner.compute,
                trial.units,
                recipe.optimizer.max_gradient_norm,
                learner.clock,
            )
            update = decode(feedback.offer(difference), layout)
            feedback.settle(was_taken=True)
            contributions.append(Contribution.of(computed, update))
        if one_file:
            total = sum(one.samples for one in contributions)
            parts = [one.read().dense(layout.elements) * one.samples for one in contributions]
            update = decode(common.offer(torch.stack(parts).sum(0) / total), layout)
            common.settle(was_taken=True)
            contributions = [Contribution.of(total, update)]
        state.step(contributions, trial.outer_rate)
    load(state.weights, learners[0].parameters)
    return final_loss(recipe, learners[0].model)
