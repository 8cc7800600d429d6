"""Data for 'How it works': exchanges, memory by technique, and what own pace gains."""

from dataclasses import dataclass

from calculator.catalog import SOURCES, find_model
from calculator.parameters import parameter_tensors
from calculator.plan import Plan
from calculator.planner.communicate import Connection
from calculator.resolution import resolve
from calculator.swarm import communication
from calculator.swarm.pace import PaceSettings, Pacing, simulate
from calculator.units import format_seconds
from templates.pages.how_it_works import gradient, step
from templates.pages.measurements import slow_links, sparse_links
from templates.pages.measurements.waterfall import SMALL_BATCH, Fall, falls
from templates.pieces.counted import count
from training.run.recipes import PAPER

CLUSTER, HOME = 10e9, 50e6  # bit/s
PEERS = 16
ROUND_PEERS, ROUND_MBIT = 8, 20.0  # of the measured rounds, those in the waterfall

RUN = {"model": "dalle-together", "optimizer": "lamb", "reversible": "false"}
UNSHARED = str(find_model("dalle-together").layers)


@dataclass(frozen=True, slots=True)
class ExchangeStair:
    """Bytes sent for one batch of the run; each stair adds one technique."""

    label: str
    words: str
    sent: int

    @property
    def on_cluster(self) -> str:
        """Time at the cluster's rate."""
        return format_seconds(communication.transfer_seconds(self.sent, CLUSTER))

    @property
    def at_home(self) -> str:
        """Time at the rate of a home connection."""
        return format_seconds(communication.transfer_seconds(self.sent, HOME))


def exchange_stairs() -> list[ExchangeStair]:
    """From plain data parallelism to the run's own method, for its 4,096 sequences."""
    batch = PAPER.swarm.target_batch_size
    rare = batch // SMALL_BATCH

    def sent(groups: str, bits: int) -> int:
        return communication.all_reduce_bytes(message_bytes(groups, bits), PEERS)

    return [
        ExchangeStair(
            "Plain", f"32 bits, every {SMALL_BATCH} sequences", rare * sent(UNSHARED, 32)
        ),
        ExchangeStair("Large batches", f"every {batch:,} sequences", sent(UNSHARED, 32)),
        ExchangeStair("Compression", "8 bits per element", sent(UNSHARED, 8)),
        ExchangeStair("Sharing", "layers in 4 groups", sent("4", 8)),
    ]


def message_bytes(groups: str, bits: int) -> int:
    """One copy of the gradients of the run's model on the wire."""
    model = find_model(RUN["model"])
    tensors = parameter_tensors(model, resolve(model, Plan.parse({"sharing_groups": groups})))
    return communication.gradient_bytes(tensors, bits)


def waterfall(rounds: sparse_links.SparseLinks | None) -> list[Fall]:
    """From a cluster's method at home to the 2021 run and to the measured rounds."""
    measured = rounds.find(ROUND_PEERS, ROUND_MBIT) if rounds else None
    if measured is None:
        return []
    unshared = (message_bytes(UNSHARED, 32), message_bytes(UNSHARED, 8))
    return falls(unshared, message_bytes("4", 8), measured)


def sharing_factor() -> float:
    """Factor by which sharing shrinks an exchange: all parameters over distinct ones."""
    counts = [count(**RUN, sharing_groups=groups).report.parameters for groups in (UNSHARED, "4")]
    return counts[0] / counts[1]


def uneven() -> str:
    """A sentence on the gain of own pace where three volunteers differ."""
    settings = PaceSettings()
    equal, own = (simulate(step.SPEEDS, pacing, settings).sequences for pacing in Pacing)
    return (
        "Three volunteers that compute {:g}, {:g} and {:g} sequences per second finish {:,} in "
        "{:g} minutes with equal shares and {:,} at their own pace, by our simulation."
    ).format(*step.SPEEDS, equal, settings.window_seconds / 60, own)


def context() -> dict[str, object]:
    """The names that `page.md.j2` uses."""
    stairs = exchange_stairs()
    model, recipe = find_model(RUN["model"]), PAPER
    rounds = sparse_links.read()
    one_step = step.Step(message_bytes("4", 8), Connection(up=HOME, down=HOME))
    return {
        "stairs": stairs,
        "scenes": step.scenes(one_step),
        "step_marks": step.marks(one_step),
        "step_size": (step.WIDTH, step.HEIGHT),
        "gradient": gradient.read(),
        "percent": gradient.percent,
        "home_to_cluster": round(CLUSTER / HOME),
        "peers": PEERS,
        "links": slow_links.read(),
        "falls": waterfall(rounds),
        "round_peers": ROUND_PEERS,
        "round_mbit": ROUND_MBIT,
        "measured_round": rounds.find(ROUND_PEERS, ROUND_MBIT) if rounds else None,
        "uneven": uneven(),
        "model": model,
        "recipe": recipe,
        "codes": model.image_side**2,
        "code_bytes": 2 * model.image_side**2,
        "gradient_bytes": f"{stairs[3].sent / 1e6:.0f} MB",
        "sources": SOURCES,
    }
