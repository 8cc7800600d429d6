"""Published figures of runs over the internet."""

from collections.abc import Iterator

from calculator.catalog import find_model
from calculator.parameters import count_parameters
from calculator.plan import Plan
from calculator.planner.communicate import Connection, Rhythm, Way, exchange_seconds, sparse_bits
from calculator.resolution import resolve
from validation.claims.claim import Claim, Topic

MEGABIT = 1e6


def together() -> Topic:
    """The sizes of the 2021 run."""
    model = find_model("dalle-together")
    unshared, shared = (
        count_parameters(model, resolve(model, Plan(sharing_groups=groups)))
        for groups in (model.layers, 4)
    )
    return Topic(
        "The run of 2021",
        "together",
        "Parameters of the model whose layers share weights, and of the same model unshared.",
        (
            Claim("parameters unshared", "1.1", unshared / 1e9, " billion"),
            Claim(
                "fewer with shared layers",
                "8",
                unshared / shared,
                " times",
                margin=1,
                note="The paper says 8; the layers' own norms and scales are not shared.",
            ),
        ),
    )


def intellect() -> Topic:
    """Computing and exchanging of INTELLECT-1."""
    share = 100 * Rhythm(38 * 60, 8.3 * 60).computing_share
    return Topic(
        "INTELLECT-1, 2024",
        "intellect",
        "38 minutes of computing for each 8.3 of exchanging.",
        (Claim("share of the time that computes", "82.1", share, "%"),),
    )


def covenant() -> Topic:
    """Compression, rhythm and exchange of Covenant-72B."""
    bits = sparse_bits(64, 4096, 2)
    peers = [Connection(110 * MEGABIT, 500 * MEGABIT)] * 20
    seconds = exchange_seconds(72.7e9 * bits / 8, peers, Way.STORE)
    return Topic(
        "Covenant-72B, 2026",
        "covenant",
        "64 of each 4,096 elements in 2 bits with their places; 20 minutes of computing for each "
        "exchange; 20 peers with 110 Mbit/s up and 500 down that load each other's messages from a "
        "store.",
        (
            Claim("times smaller than 32 bits", "146", 32 / bits),
            Claim(
                "share of the time that computes", "94.5",
                100 * Rhythm(20 * 60, 70).computing_share, "%",
            ),
            Claim(
                "an exchange at those rates", "70", seconds, " seconds",
                note="A question to its authors: with those rates for each of a peer's 8 GPUs it "
                f"would be about {seconds / 8:.0f}, or the transfers overlap with computing.",
            ),
        ),
    )  # fmt: skip


def topics() -> Iterator[Topic]:
    """All of this module, the oldest first."""
    yield together()
    yield intellect()
    yield covenant()
