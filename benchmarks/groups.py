"""Averaging in groups drawn again in each round, simulated with 1,000 and 10,000 peers on one core.

Each peer descends a bowl from gradients with noise of its own. Gradients are averaged in the
step's groups, weights after it in other groups, as the trainer does; beside it all in one group,
and groups that never change.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.figures import Figure, Table

SIZE = 16  # weights
RATE, NOISE = 0.1, 1.0
STEPS = 60


def run(quick: bool) -> Table:
    """Simulate a run of each size: how far the peers are apart, and how near to the bowl's foot."""
    from training.averaging.matchmaking import bits_for

    figures = []
    for count in (1_000,) if quick else (1_000, 10_000):
        bits = bits_for(count)
        sizes = sorted(_sizes(count, bits))
        figures += [
            Figure(f"{count:,} peers: smallest group", sizes[0], "peers"),
            Figure(f"{count:,} peers: middle group", sizes[len(sizes) // 2], "peers"),
            Figure(f"{count:,} peers: largest group", sizes[-1], "peers"),
        ]
        ways: dict[str, Callable[[str], Any]] = {
            "one group": _always(_lots(count, "all", 0)),
            "drawn again": partial(_lots, count, bits=bits),
            "never changed": _always(_lots(count, "once", bits)),
        }
        for title, lots in ways.items():
            apart, error = _train(count, lots)
            figures += [
                Figure(f"{count:,} peers, {title}: apart", apart, "of a step"),
                Figure(f"{count:,} peers, {title}: error", error, ""),
            ]
    return Table(f"Groups of peers: {STEPS} steps simulated", figures)


def _lots(count: int, round_name: str, bits: int) -> Any:
    """Each peer's group in a round, as a number."""
    import numpy as np

    from training.averaging.matchmaking import group_of

    lots = (group_of(f"peer {number}", round_name, bits) or "0" for number in range(count))
    return np.fromiter((int(lot, 2) for lot in lots), int, count)


def _always(lots: Any) -> Callable[[str], Any]:
    """The same groups in every round."""
    return lambda _round: lots


def _sizes(count: int, bits: int) -> list[int]:
    import numpy as np

    sizes: list[int] = np.bincount(_lots(count, "step 1", bits)).tolist()
    return [size for size in sizes if size]


def _train(count: int, lots: Callable[[str], Any]) -> tuple[float, float]:
    """The peers' final spread, in lengths of a step, and their mean distance from the minimum."""
    import numpy as np

    random = np.random.default_rng(7)
    weights = np.full((count, SIZE), 10.0)
    length = 1.0
    for step in range(STEPS):
        gradients = weights + NOISE * random.standard_normal(weights.shape)
        before = weights.mean(0)
        weights = weights - RATE * _average(gradients, lots(f"step {step}"))
        length = float(np.linalg.norm(weights.mean(0) - before))
        weights = _average(weights, lots(f"state {step}"))
    apart = np.linalg.norm(weights - weights.mean(0), axis=1).mean()
    error = np.linalg.norm(weights, axis=1).mean()
    return float(apart) / max(length, 1e-12), float(error)


def _average(values: Any, groups: Any) -> Any:
    """Each row replaced by the mean of its group's."""
    import numpy as np

    sums = np.zeros((int(groups.max()) + 1, values.shape[1]))
    np.add.at(sums, groups, values)
    means = sums / np.maximum(1, np.bincount(groups))[:, None]
    return means[groups]
