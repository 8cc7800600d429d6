"""Every number of a run, as data: `training/recipes/` has a file for each recipe in `RECIPES`.

A run file names one of them, or has a table `[recipe]` with a `base` and what differs.

Importing this module is cheap: it loads neither torch nor transformers.
"""

import json
import tomllib
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from calculator.config_file import read_values
from calculator.errors import InputError, unknown_name
from calculator.swarm.aggregation import Aggregation
from training.run import tables

MOST_PAYLOADS = 1024  # in a round with local steps


def _require_positive(settings: object, *names: str) -> None:
    for name in names:
        if not getattr(settings, name) > 0:
            raise InputError(name, getattr(settings, name), "must be more than 0")


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """Shape of the model; `configuration.TextToImageConfig` says what each field means."""

    text_vocabulary_size: int
    text_length: int
    image_vocabulary_size: int
    image_side: int
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    head_size: int
    sharing_groups: int | None
    reversible: bool = True
    feed_forward_multiplier: int = 4
    convolution_kernel: int = 5
    token_shift: bool = True
    image_loss_weight: float = 7.0
    layer_scale: float | None = None


@dataclass(frozen=True, slots=True)
class LanguageSettings:
    """A causal language model of transformers, which begins with new weights.

    Attributes:
        config: what its config.json says; or a repository of the Hub that has one; or, where the
            recipe is in a file, the path of one from there, ending in ``.json``.
        sequence_length: tokens of a training sequence.
    """

    config: dict[str, Any] | str
    sequence_length: int

    def __post_init__(self) -> None:
        _require_positive(self, "sequence_length")

    def values(self) -> dict[str, Any]:
        """The values of its config.json; one that is on the Hub is downloaded.

        Raises:
            InputError: the Hub has none.
        """
        return self.config if isinstance(self.config, dict) else _download(self.config)


@lru_cache
def _download(repository: str) -> dict[str, Any]:
    from huggingface_hub import hf_hub_download

    try:
        content = Path(hf_hub_download(repository, "config.json")).read_text(encoding="utf-8")
        values: dict[str, Any] = json.loads(content)
    except (OSError, ValueError) as error:
        rule = f"must be a model of the Hub ({str(error).splitlines()[0]})"
        raise InputError("config", repository, rule) from error
    return values


@dataclass(frozen=True, slots=True)
class OptimizerSettings:
    """LAMB's settings and how its states are stored (see `lamb.Lamb`)."""

    learning_rate: float
    state_bits: int = 8  # 8: block-wise 8-bit codes; 32: plain
    betas: tuple[float, float] = (0.9, 0.96)
    epsilon: float = 1e-6
    weight_decay: float = 0.045  # matrices only: neither biases, norms nor scales
    max_gradient_norm: float = 4.0
    max_weight_norm: float = 10_000.0
    block_size: int = 4096  # elements that share one 8-bit scale
    smallest_quantised: int = 2**16  # smaller tensors keep 32-bit states
    chunk_size: int = 2**24  # elements updated at a time, bounds the temporaries


@dataclass(frozen=True, slots=True)
class ScheduleSettings:
    """Linear warm-up from zero, then linear decay to zero, in global steps."""

    total_steps: int
    warmup_steps: int


@dataclass(frozen=True, slots=True)
class SwarmSettings:
    """Settings of the volunteers' cooperation; times in seconds.

    Attributes:
        target_batch_size: samples of all peers together in one global step.
        micro_batch_size: samples of one local step, where memory allows it.
        compression_threshold: tensors of at least so many elements travel in 8 bits, smaller
            ones in 16.
        matchmaking_seconds: time to find a group before averaging.
        allreduce_timeout: longest exchange within a group.
        averaging_timeout: longest averaging round, matchmaking included.
        average_state_every: global steps between two averagings of the weights themselves,
            which drift apart a little where gradients travel in 8 bits.
        delayed_step: compute on while the update is made, with gradients one step old.
        progress_refresh: shortest and longest time between two looks at the others' progress.
        state_download_timeout: longest wait for the state from peers before the checkpoint is
            taken instead.
        backup_every: global steps between two local backups.
        checkpoint_every: global steps between two checkpoints of the monitor.
        poll_seconds: how often the monitor looks.
        aggregation: how the group's gradients and weights become one; `CENTERED_CLIP` bounds what
            a minority of liars can do, see `averaging.aggregation`.
    """

    target_batch_size: int
    micro_batch_size: int
    matchmaking_seconds: float = 15.0
    allreduce_timeout: float = 60.0
    averaging_timeout: float = 180.0
    average_state_every: int = 1
    compression_threshold: int = 2**16
    delayed_step: bool = True
    progress_refresh: tuple[float, float] = (0.5, 30.0)
    state_download_timeout: float = 300.0
    backup_every: int = 10
    checkpoint_every: int = 100
    poll_seconds: float = 10.0
    aggregation: Aggregation = Aggregation.MEAN

    def __post_init__(self) -> None:
        names = ("target_batch_size", "micro_batch_size", "checkpoint_every", "backup_every")
        times = ("matchmaking_seconds", "allreduce_timeout", "averaging_timeout", "poll_seconds")
        _require_positive(self, *names, *times, "average_state_every", "state_download_timeout")


@dataclass(frozen=True, slots=True)
class SparseSettings:
    """Settings of a run whose volunteers make local steps and exchange sparse updates.

    Times are in seconds. The local steps are AdamW's.

    Attributes:
        seconds: of local steps in a round, for each volunteer at its own pace.
        learning_rate: of the local steps, at its peak.
        outer_learning_rate: of the step that a round makes.
        quorum: kept updates from which the grace period runs.
        grace: time after the quorum in which updates are still taken.
        longest: time after which a round closes whatever it keeps; without any update it goes on.
        largest_norm: that an update may have; what is longer is refused.
        poll_seconds: how often a volunteer asks whether the round has closed.
        judged: sequences of a round on which the effect of each update is measured.
    """

    seconds: float
    learning_rate: float
    outer_learning_rate: float
    quorum: int
    grace: float
    longest: float
    largest_norm: float
    betas: tuple[float, float] = (0.9, 0.95)
    poll_seconds: float = 2.0
    judged: int = 32

    def __post_init__(self) -> None:
        names = ("seconds", "learning_rate", "largest_norm", "poll_seconds", "judged")
        _require_positive(self, *names)
        if not 1 <= self.quorum <= MOST_PAYLOADS:
            raise InputError("quorum", self.quorum, f"must be from 1 to {MOST_PAYLOADS}")
        for name in ("grace", "longest"):
            if not getattr(self, name) >= 0:
                raise InputError(name, getattr(self, name), "must be at least 0")
        if not 0 < self.outer_learning_rate <= 10:
            rate = self.outer_learning_rate
            raise InputError("outer_learning_rate", rate, "must be above 0, at most 10")


@dataclass(frozen=True, slots=True)
class DataSettings:
    """Training data of the run.

    Attributes:
        source: folder or Hub name of the Parquet files, of encoded shards or of texts; `shapes` and
            `grammar` come with us; None: the run file names it.
        tokenizer: `shapes` for the words of the shapes' captions, `grammar` for those of its
            sentences, else a Hub name or folder.
        text_column: of a language model's data.
        codes: folder or Hub name of the VQ-GAN; `shapes` is the small one that comes with us;
            None: the run file names it.
        image_pixels: side of the pictures that the VQ-GAN reads.
        shuffle_buffer: samples among which the next one is drawn.
        shortest_caption: characters a caption must have.
        largest_aspect_ratio: longest side over shortest.
        allowed_labels: values of the NSFW label that are kept; None keeps pictures without one.
    """

    source: str | None
    tokenizer: str
    codes: str | None = None
    image_pixels: int = 256
    text_column: str = "text"
    shuffle_buffer: int = 8192
    shortest_caption: int = 3
    largest_aspect_ratio: float = 2.0
    allowed_labels: tuple[str | None, ...] = ("UNLIKELY",)


@dataclass(frozen=True, slots=True)
class GenerationSettings:
    """Settings for drawing pictures or writing texts: temperature, top-k, top-p (None: not used).

    Attributes:
        images_per_prompt: pictures or texts drawn of each prompt.
        longest_text: tokens that a language model adds to a prompt.
        keep: as many are kept, those that the scorer likes best; None keeps all.
        scorer: CLIP model of transformers, a folder or Hub name; `shapes` is the small one that
            comes with us.
        prompts: what the monitor draws, or goes on writing, at each checkpoint.
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    images_per_prompt: int = 4
    longest_text: int = 64
    keep: int | None = None
    scorer: str | None = None
    prompts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Recipe:
    """A named configuration of a run.

    Attributes:
        seed: of the first weights, the same at every peer.
        sparse: how volunteers exchange sparse updates; None: they average gradients.
    """

    name: str
    model: ModelSettings | LanguageSettings
    optimizer: OptimizerSettings
    schedule: ScheduleSettings
    swarm: SwarmSettings
    data: DataSettings
    generation: GenerationSettings = field(default_factory=GenerationSettings)
    seed: int = 42
    sparse: SparseSettings | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.schedule.warmup_steps <= self.schedule.total_steps:
            raise InputError("warmup_steps", self.schedule.warmup_steps, "must be in the schedule")
        if self.optimizer.state_bits not in (8, 32):
            raise InputError("state_bits", self.optimizer.state_bits, "must be 8 or 32")


# Sources of data that come with us, in words.
OWN_DATA = {"shapes": "captioned shapes", "grammar": "sentences of a small grammar"}
SHIPPED = ("paper", "paper-local", "rehearsal", "sparse", "tab", "language", "tiny", "tiny-sparse")
_FOLDER = Path(__file__).parents[1] / "recipes"


def _read_table(name: str) -> dict[str, Any]:
    """The table of a recipe that comes with us, with what its base says."""
    table = tomllib.loads((_FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
    base = table.pop("base", None)
    return tables.merge(_read_table(base), table) if base else table


_TABLES = {name: _read_table(name) for name in SHIPPED}
RECIPES: dict[str, Recipe] = {
    name: tables.read(Recipe, table | {"name": name}) for name, table in _TABLES.items()
}
PAPER, PAPER_LOCAL, REHEARSAL, SPARSE, TAB, LANGUAGE, TINY, TINY_SPARSE = (
    RECIPES[name] for name in SHIPPED
)


def find_recipe(name: str) -> Recipe:
    """The recipe of that name, or the one that a TOML file describes (see `describe`).

    Raises:
        InputError: there is none; the message names those there are.
    """
    return derive(*describe(name))


def describe(name: str) -> tuple[str, dict[str, Any]]:
    """The base of a recipe, and what differs: of a name, or of a file, which may be a run file.

    Raises:
        InputError: the file is not there, or is no TOML of a recipe.
    """
    if not name.endswith(".toml"):
        return name, {}
    try:
        values = tomllib.loads(Path(name).read_text(encoding="utf-8"))
    except (OSError, RecursionError, ValueError) as error:
        rule = f"must be the name of a recipe, or a TOML file that describes one ({error})"
        raise InputError("recipe", name, rule) from error
    return split(values.get("recipe", values), Path(name).parent)


def split(value: object, folder: Path | None = None) -> tuple[str, dict[str, Any]]:
    """The base and what differs, of a recipe's name or its table.

    Args:
        folder: of the recipe's file, from which it may name a config.json; None: it has none.

    Raises:
        InputError: it is neither, or the table names no base.
    """
    if isinstance(value, str):
        return value, {}
    if not isinstance(value, dict):
        raise InputError("recipe", value, "must be a name in quotes, or a table")
    if not isinstance(value.get("base"), str):
        raise InputError("recipe.base", value.get("base", ""), "must be the name of a recipe")
    changes = {key: one for key, one in value.items() if key != "base"}
    return value["base"], _with_config(changes, folder)


def _with_config(changes: dict[str, Any], folder: Path | None) -> dict[str, Any]:
    """The changes with the content of a config.json in place of its path: others have no such file.

    Raises:
        InputError: there is no such file, or it is none.
    """
    model = changes.get("model")
    path = model.get("config") if isinstance(model, dict) else None
    if not (isinstance(model, dict) and isinstance(path, str) and path.endswith(".json")):
        return changes
    if folder is None:
        rule = "must be a table or a name on the Hub: volunteers do not have this file"
        raise InputError("recipe.model.config", path, rule)
    config = {key: one for key, one in read_values(folder / path).items() if one is not None}
    return changes | {"model": model | {"config": config}}


def derive(base: str, changes: dict[str, Any]) -> Recipe:
    """The recipe `base` with what differs; it keeps the name.

    Raises:
        InputError: there is no such recipe, or a value is not as it must be.
    """
    known = _TABLES if changes else RECIPES
    if base not in known:
        raise unknown_name("recipe", base, known)
    if not changes:
        return RECIPES[base]
    if "name" in changes:
        raise InputError("recipe.name", changes["name"], "must not be given: it is the base's")
    table = tables.merge(_TABLES[base], changes)
    recipe: Recipe = tables.read(Recipe, table | {"name": base}, "recipe")
    return recipe


def learning_rate_factor(schedule: ScheduleSettings, step: int) -> float:
    """Share of the peak learning rate at global step `step`, counted from 0.

    Rises linearly to 1 over the warm-up, of which the first step already learns, then falls
    linearly to 0 at the end of the schedule.
    """
    if step < schedule.warmup_steps:
        return (step + 1) / schedule.warmup_steps
    decay_steps = max(schedule.total_steps - schedule.warmup_steps, 1)
    return max(schedule.total_steps - step, 0) / decay_steps


def corners(schedule: ScheduleSettings, peak: float) -> list[tuple[int, float]]:
    """The steps, counted from 1, between which the learning rate is a straight line, and its value.

    >>> corners(ScheduleSettings(total_steps=100, warmup_steps=10), 1.0)
    [(1, 0.1), (10, 1.0), (11, 1.0), (101, 0.0)]
    """
    warm_up, end = schedule.warmup_steps, schedule.total_steps + 1
    steps = sorted({1, max(warm_up, 1), min(warm_up + 1, end), end})
    return [(step, peak * learning_rate_factor(schedule, step - 1)) for step in steps]
