"""Data for 'How it works': exchanges, memory by technique, and the race's first state."""

from dataclasses import asdict, dataclass

from calculator.catalog import SOURCES, find_model
from calculator.parameters import parameter_tensors
from calculator.plan import Plan
from calculator.planner.communicate import Connection
from calculator.resolution import resolve
from calculator.swarm import communication, race
from calculator.swarm.pace import Activity
from calculator.units import format_bytes, format_seconds
from templates.pages.calculator.context import ask
from templates.pages.how_it_works import gradient, long_rounds, slow_links, sparse_links, step
from templates.pages.how_it_works.waterfall import SMALL_BATCH, Fall, falls
from templates.pieces.counted import count
from training.run.differences import DIFFERENCES
from training.run.recipes import PAPER

CLUSTER, HOME = 10e9, 50e6  # bit/s
PEERS = 16
ROUND_PEERS, ROUND_MBIT = 8, 20.0  # of the measured rounds, those in the waterfall
MICRO_BATCH = 4

RUN = {"model": "dalle-together", "optimizer": "lamb", "reversible": "false"}
UNSHARED = str(find_model("dalle-together").layers)
GPT2 = {"model": "gpt2-l"}


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


def shown_rounds(rounds: sparse_links.SparseLinks | None) -> list[sparse_links.Round]:
    """The measured rounds, and the one that is too fast for the measurement."""
    if rounds is None:
        return []
    processed, moved = rounds.find(ROUND_PEERS, ROUND_MBIT), rounds.find(4, 50.0)
    more = [sparse_links.simulate(processed, moved)] if processed and moved else []
    return [*rounds.rounds, *more]


def times_less(rounds: sparse_links.SparseLinks | None) -> list[float]:
    """For each way of long-rounds.json, the times that it moves less than the 2021 run."""
    found, alone = (
        rounds.find(peers, ROUND_MBIT) if rounds else None for peers in (ROUND_PEERS, 2)
    )
    if found is None or alone is None:
        return []
    paper = waterfall(rounds)[-3].moved
    # of two volunteers, each downloads one file
    moved = {False: found.sent + found.received, True: alone.sent + alone.received}
    return [paper * length / moved[one_file] for length, one_file in long_rounds.WAYS]


def sharing_factor() -> float:
    """Factor by which sharing shrinks an exchange: all parameters over distinct ones."""
    counts = [count(**RUN, sharing_groups=groups).report.parameters for groups in (UNSHARED, "4")]
    return counts[0] / counts[1]


@dataclass(frozen=True, slots=True)
class Saving:
    """One technique on one model: the peak with it, as a part of the peak without."""

    query: str
    peak: str
    saved: str
    part: float


@dataclass(frozen=True, slots=True)
class Technique:
    """A way to save memory, and its effect on two models; None where it does not apply."""

    label: str
    words: str
    savings: tuple[Saving | None, ...]


TECHNIQUES: tuple[tuple[str, str, dict[str, str]], ...] = (
    (
        "8-bit optimizer states",
        "The values in a block share one scale.",
        {"optimizer_bits": "8"},
    ),
    (
        "Offload",
        "States are kept and updated in CPU memory.",
        {"offload": "optimizer"},
    ),
    (
        "Gradient checkpointing",
        "Keep each layer's input and recompute the rest.",
        {"checkpointing": "full"},
    ),
    (
        "Sharing",
        "Four sets of weights, used in turn. A different model, trained this way from the start.",
        {"sharing_groups": "4"},
    ),
    (
        "Reversible layers",
        "Recompute each layer's input from its output. A different model, too.",
        {"reversible": "true"},
    ),
    (
        "LoRA",
        "Train adapters of rank 16 beside a pretrained model's linear layers, and nothing else.",
        {"lora": "16", "lora_targets": "all-linear"},
    ),
)


def plain_models() -> list[tuple[str, str, dict[str, str]]]:
    """Title, peak without techniques and choices of the two models."""
    found = []
    for choices in (RUN | {"sharing_groups": UNSHARED}, GPT2):
        with_batch = choices | {"batch_size": str(MICRO_BATCH)}
        peak = count(**with_batch).peak
        title = "The run's model" if choices is not GPT2 else find_model(GPT2["model"]).title
        found.append((title, format_bytes(peak), with_batch))
    return found


def techniques() -> list[Technique]:
    """Each technique alone, on both models."""
    models = [choices for _, _, choices in plain_models()]
    return [
        Technique(
            label,
            words,
            # peft adapts transformers' classes, and the run's model is our own
            tuple(
                None if "lora" in added and choices is not models[-1] else _saving(choices, added)
                for choices in models
            ),
        )
        for label, words, added in TECHNIQUES
    ]


def _saving(choices: dict[str, str], added: dict[str, str]) -> Saving:
    without, found = count(**choices).peak, count(**(choices | added))
    return Saving(
        found.query,
        format_bytes(found.peak),
        format_bytes(without - found.peak),
        100 * found.peak / without,
    )


def race_constants() -> dict[str, object]:
    """Settings and texts that the script of the race shares with Python."""
    return {"settings": asdict(race.SETTINGS), "texts": race.TEXTS}


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
        "sharing": sharing_factor(),
        "compression": stairs[1].sent / stairs[2].sent,
        "rare": recipe.swarm.target_batch_size // SMALL_BATCH,
        "links": slow_links.read(),
        "rounds": rounds,
        "shown_rounds": shown_rounds(rounds),
        "falls": waterfall(rounds),
        "round_peers": ROUND_PEERS,
        "round_mbit": ROUND_MBIT,
        "measured_round": rounds.find(ROUND_PEERS, ROUND_MBIT) if rounds else None,
        "pace_seconds": sparse_links.batch_seconds(ROUND_PEERS),
        "long_rounds": long_rounds.read(),
        "less": times_less(rounds),
        "race": ask("pace"),
        "race_constants": race_constants(),
        "race_names": race.NAMES,
        "race_settings": race.SETTINGS,
        "fastest": race.FASTEST,
        "activities": [activity.value for activity in Activity],
        "micro_batch": MICRO_BATCH,
        "models": plain_models(),
        "techniques": techniques(),
        "model": model,
        "recipe": recipe,
        "codes": model.image_side**2,
        "code_bytes": 2 * model.image_side**2,
        "gradient_bytes": f"{stairs[3].sent / 1e6:.0f} MB",
        "differences": DIFFERENCES,
        "sources": SOURCES,
    }
