"""Every number of a run, in one place: `RECIPES` has the 2021 run's, a rehearsal's and the tests'.

Importing this module is cheap: it loads neither torch nor transformers.
"""

from dataclasses import dataclass, field, replace

from calculator.errors import InputError, unknown_name
from calculator.swarm.aggregation import Aggregation


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
        group_size: peers in a group, a power of two; None lets all meet in one.
        progress_refresh: shortest and longest time between two looks at the others' progress.
        state_download_timeout: longest wait for the state from peers before the checkpoint is
            taken instead.
        backup_every: global steps between two local backups.
        checkpoint_every: global steps between two checkpoints of the monitor.
        poll_seconds: how often the monitor looks.
        aggregation: how the group's gradients and weights become one; `CENTERED_CLIP` bounds what
            a minority of liars can do, see `aggregation.AggregationRule` for its two settings.
    """

    target_batch_size: int
    micro_batch_size: int
    matchmaking_seconds: float = 15.0
    allreduce_timeout: float = 60.0
    averaging_timeout: float = 180.0
    average_state_every: int = 1
    compression_threshold: int = 2**16
    delayed_step: bool = True
    group_size: int | None = None
    progress_refresh: tuple[float, float] = (0.5, 30.0)
    state_download_timeout: float = 300.0
    backup_every: int = 10
    checkpoint_every: int = 100
    poll_seconds: float = 10.0
    aggregation: Aggregation = Aggregation.MEAN
    clip_radius: float = 1.0
    clip_iterations: int = 3


@dataclass(frozen=True, slots=True)
class SparseSettings:
    """Settings of a run whose volunteers make local steps and exchange sparse updates.

    Times are in seconds. The local steps are AdamW's.

    Attributes:
        seconds: of local steps in a round, for each volunteer at its own pace.
        learning_rate: of the local steps, at its peak.
        outer_learning_rate: of the step that a round makes. momentum: likewise.
        quorum: updates from which the grace period runs.
        grace: time for those who are still missing then.
        longest: time after which a round closes with fewer updates than the quorum.
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
    momentum: float = 0.0
    betas: tuple[float, float] = (0.9, 0.95)
    poll_seconds: float = 2.0
    judged: int = 32

    def __post_init__(self) -> None:
        for name in ("seconds", "learning_rate", "largest_norm", "poll_seconds", "judged"):
            if not getattr(self, name) > 0:
                raise InputError(name, getattr(self, name), "must be more than 0")


@dataclass(frozen=True, slots=True)
class DataSettings:
    """Training data of the run.

    Attributes:
        source: folder or Hub name of the encoded shards; `shapes` makes them on this machine;
            None: the run file names it.
        tokenizer: `shapes` for the words of the shapes' captions, else a Hub name or folder.
        codes: folder or Hub name of the VQ-GAN; `shapes` is the small one that comes with us;
            None: the run file names it.
        image_pixels: side of the pictures that the VQ-GAN reads.
        shuffle_buffer: samples among which the next one is drawn.
        preprocessing_batch: samples filtered at a time.
        shortest_caption: characters a caption must have.
        largest_aspect_ratio: longest side over shortest.
        allowed_labels: values of the NSFW label that are kept; None keeps pictures without one.
    """

    source: str | None
    tokenizer: str
    codes: str | None
    image_pixels: int
    shuffle_buffer: int = 8192
    preprocessing_batch: int = 256
    shortest_caption: int = 3
    largest_aspect_ratio: float = 2.0
    allowed_labels: tuple[str | None, ...] = ("UNLIKELY",)


@dataclass(frozen=True, slots=True)
class GenerationSettings:
    """Settings for drawing pictures: temperature, top-k and top-p (None turns either off).

    Attributes:
        images_per_prompt: pictures drawn of each prompt.
        keep: as many are kept, those that the scorer likes best; None keeps all.
        scorer: CLIP model of transformers, a folder or Hub name; `shapes` is the small one that
            comes with us.
        prompts: what the monitor draws at each checkpoint.
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    images_per_prompt: int = 4
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
    model: ModelSettings
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


PAPER = Recipe(
    name="paper",
    model=ModelSettings(
        text_vocabulary_size=32_100,
        text_length=256,
        image_vocabulary_size=8192,
        image_side=32,
        hidden_size=1024,
        num_hidden_layers=64,
        num_attention_heads=16,
        head_size=64,
        sharing_groups=4,
    ),
    optimizer=OptimizerSettings(learning_rate=2.5e-3),
    schedule=ScheduleSettings(total_steps=31_250, warmup_steps=3_125),
    swarm=SwarmSettings(
        target_batch_size=4096, micro_batch_size=8, aggregation=Aggregation.CENTERED_CLIP
    ),
    # The 2021 data set has been withdrawn, so a run file must name its own.
    data=DataSettings(source=None, tokenizer="google-t5/t5-small", codes=None, image_pixels=256),
    generation=GenerationSettings(
        top_k=256,
        images_per_prompt=128,
        keep=4,
        scorer="openai/clip-vit-base-patch32",
    ),
)

_SHAPES = DataSettings(
    source="shapes",
    tokenizer="shapes",
    codes="shapes",
    image_pixels=32,
    shuffle_buffer=1024,
    allowed_labels=("UNLIKELY",),
)

_SHAPES_DRAWN = GenerationSettings(
    temperature=0.5,
    images_per_prompt=4,
    scorer="shapes",
    prompts=(
        "a red circle",
        "a blue square",
        "a green triangle",
        "a red circle above a blue square",
        "a yellow triangle left of a green circle",
        "a blue circle right of a red square",
    ),
)

REHEARSAL = Recipe(
    name="rehearsal",
    model=ModelSettings(
        text_vocabulary_size=32,
        text_length=10,
        image_vocabulary_size=128,
        image_side=8,
        hidden_size=96,
        num_hidden_layers=4,
        num_attention_heads=3,
        head_size=32,
        sharing_groups=2,
        layer_scale=0.5,
    ),
    # Few global steps fit into minutes, so each goes far: a high rate, a short warm-up.
    optimizer=OptimizerSettings(learning_rate=5e-2),
    schedule=ScheduleSettings(total_steps=300, warmup_steps=10),
    swarm=SwarmSettings(
        target_batch_size=128,
        micro_batch_size=32,
        delayed_step=False,  # at so high a rate old gradients cost more than waiting does
        matchmaking_seconds=2.0,
        allreduce_timeout=20.0,
        averaging_timeout=30.0,
        average_state_every=5,
        progress_refresh=(0.25, 2.0),
        state_download_timeout=60.0,
        checkpoint_every=25,
        poll_seconds=2.0,
    ),
    data=_SHAPES,
    generation=_SHAPES_DRAWN,
)

# The rehearsal's, averaged as strangers must be: a liar among them must not decide the weights.
CHAOS = replace(
    REHEARSAL,
    name="chaos",
    swarm=replace(REHEARSAL.swarm, aggregation=Aggregation.CENTERED_CLIP),
)

# The rehearsal's model and data with local steps and sparse updates in place of averaging.
SPARSE = replace(
    REHEARSAL,
    name="sparse",
    schedule=ScheduleSettings(total_steps=200, warmup_steps=10),
    sparse=SparseSettings(
        seconds=1.0,
        learning_rate=8e-3,
        outer_learning_rate=2.0,
        quorum=2,
        grace=2.0,
        longest=15.0,
        largest_norm=50.0,
        poll_seconds=0.1,
    ),
)

TINY = Recipe(
    name="tiny",
    model=ModelSettings(
        text_vocabulary_size=32,
        text_length=10,
        image_vocabulary_size=128,
        image_side=8,
        hidden_size=32,
        num_hidden_layers=3,
        num_attention_heads=2,
        head_size=16,
        sharing_groups=2,
        convolution_kernel=3,
    ),
    optimizer=OptimizerSettings(
        learning_rate=2e-2, smallest_quantised=2**10, block_size=256, chunk_size=2**12
    ),
    schedule=ScheduleSettings(total_steps=200, warmup_steps=5),
    swarm=SwarmSettings(
        target_batch_size=64,
        micro_batch_size=16,
        matchmaking_seconds=1.5,
        allreduce_timeout=15.0,
        averaging_timeout=20.0,
        average_state_every=5,
        compression_threshold=2**10,
        progress_refresh=(0.2, 1.0),
        state_download_timeout=30.0,
        backup_every=2,
        checkpoint_every=2,
        poll_seconds=0.5,
    ),
    data=_SHAPES,
    generation=_SHAPES_DRAWN,
)

# The same for local steps.
TINY_SPARSE = replace(
    TINY,
    name="tiny-sparse",
    swarm=replace(TINY.swarm, checkpoint_every=20),
    sparse=SparseSettings(
        seconds=0.5,
        learning_rate=8e-3,
        outer_learning_rate=2.0,
        quorum=2,
        grace=2.0,
        longest=10.0,
        largest_norm=50.0,
        poll_seconds=0.1,
    ),
)

RECIPES: dict[str, Recipe] = {
    recipe.name: recipe for recipe in (PAPER, REHEARSAL, CHAOS, SPARSE, TINY, TINY_SPARSE)
}


def find_recipe(name: str) -> Recipe:
    """The recipe of that name.

    Raises:
        InputError: there is none; the message names those there are.
    """
    if name not in RECIPES:
        raise unknown_name("recipe", name, RECIPES)
    return RECIPES[name]
