"""Training plans: precision, optimizer, checkpointing, offloading, ... -> Plan.

Each option is declared once, at its field in `Plan`; its words are in `words.json`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import Any, Final, Self

from calculator.autograd.dtypes import BFLOAT16, FLOAT16, DType
from calculator.autograd.mode import Attention as Attention
from calculator.autograd.mode import Checkpointing as Checkpointing
from calculator.cards import TODAY, Card
from calculator.choice import Choice
from calculator.configuration import LONGEST_SEQUENCE, MOST_LAYERS
from calculator.elsewhere import in_our_words
from calculator.errors import unknown_name
from calculator.optimizers.registry import Optimizer as Optimizer
from calculator.optimizers.registry import rule_named
from calculator.options import WORDS, Option, choice, flag, integer, names, number, options_of
from calculator.task import Task as Task

LARGEST_BATCH: Final = 65_536
LARGEST_RANK: Final = 4096
LONGEST_NAMES: Final = 400
MOST_GPUS: Final = 16_384
LARGEST_LABELS: Final = 1_000_000


class Precision(Choice):
    """Number formats of weights, gradients and arithmetic."""

    FP32 = "fp32"
    AMP = "amp"
    MIXED = "mixed"
    HALF = "half"


class HalfFormat(Choice):
    """The 16-bit format of weights, of autocast, or of both."""

    BF16 = "bf16"
    FP16 = "fp16"


class Loop(Choice):
    """A training loop, by the time for which it holds the model's outputs beside the loss."""

    TRAINER = "trainer"
    FUNCTION = "function"
    SCRIPT = "script"


class Update(Choice):
    """PyTorch's three implementations of an optimizer's update."""

    FOREACH = "foreach"
    FUSED = "fused"
    LOOP = "loop"


class Offload(Choice):
    """Data kept in RAM instead of GPU memory."""

    NONE = "none"
    OPTIMIZER = "optimizer"


class ChunkedLoss(Choice):
    """Code that computes the output layer and its loss a chunk of tokens at a time."""

    NONE = "none"
    TORCH = "torch"


class ActivationOffload(Choice):
    """RAM that holds the inputs of checkpointed layers until the backward pass."""

    NONE = "none"
    PAGEABLE = "pageable"
    PINNED = "pinned"


class DataParallel(Choice):
    """PyTorch's ways to train one model on several GPUs, each with micro-batches of its own."""

    DDP = "ddp"
    DDP_VIEW = "ddp-view"
    ZERO1 = "zero1"
    ZERO2 = "zero2"
    FSDP = "fsdp"


class PipelineSchedule(Choice):
    """The order in which the micro-batches of a step pass through a pipeline."""

    GPIPE = "gpipe"
    ONE_FORWARD_ONE_BACKWARD = "1f1b"
    INTERLEAVED = "interleaved"


class ContextRotation(Choice):
    """The way in which keys and values go round among GPUs that divide each sequence."""

    ALL_GATHER = "allgather"
    ALL_TO_ALL = "alltoall"


class BaseBits(Choice):
    """Number format of a frozen model's linear layers."""

    NONE = "none"
    NF4 = "nf4"
    NF4_DOUBLE = "nf4-double"
    FP4 = "fp4"
    FP4_DOUBLE = "fp4-double"

    @property
    def is_double(self) -> bool:
        """True if the scales are in 8 bits too."""
        return self in (BaseBits.NF4_DOUBLE, BaseBits.FP4_DOUBLE)


class LoraBias(Choice):
    """Biases that are trained beside LoRA's adapters."""

    NONE = "none"
    ALL = "all"
    LORA_ONLY = "lora_only"


@dataclass(frozen=True)
class Plan:
    """One choice for every option, and the card; None stands for the model's own value.

    `resolve` fills in every None and checks the plan against a model. The types are those of a
    resolved plan, which is what all arithmetic takes.
    """

    batch_size: int = integer(1, LARGEST_BATCH)
    sequence_length: int = integer(None, LONGEST_SEQUENCE)
    target_length: int | None = integer(None, LONGEST_SEQUENCE)
    precision: Precision = choice(Precision.AMP, Precision)
    gradient_scaler: bool = flag(False)
    format: HalfFormat = choice(None, HalfFormat)
    loop: Loop = choice(Loop.TRAINER, Loop)
    optimizer: Optimizer = choice(Optimizer.ADAM, {each: each.label for each in Optimizer})
    optimizer_bits: int = choice(None, (32, 16, 8), technique=True)
    update: Update = choice(Update.FOREACH, Update)
    paged_optimizer: bool = flag(False, technique=True)
    update_in_backward: bool = flag(False, technique=True)
    attention: Attention = choice(Attention.SDPA, Attention)
    checkpointing: Checkpointing = choice(Checkpointing.NONE, Checkpointing, technique=True)
    checkpoint_every: int = integer(1, MOST_LAYERS)
    activation_offload: ActivationOffload = choice(
        ActivationOffload.NONE, ActivationOffload, technique=True, needs="checkpointing"
    )
    chunked_loss: ChunkedLoss = choice(ChunkedLoss.NONE, ChunkedLoss, technique=True)
    offload: Offload = choice(Offload.NONE, Offload, technique=True)
    sharing_groups: int = integer(None, MOST_LAYERS, technique=True)
    reversible: bool = flag(None, technique=True)
    dropout: float = number(None, 1)
    accumulation: int = integer(1, LARGEST_BATCH)
    tied_embeddings: bool = flag(None, negative="untied-embeddings")

    lora: int = integer(0, LARGEST_RANK, minimum=0, technique=True)
    lora_targets: str = names(None, LONGEST_NAMES)
    lora_dropout: float = number(None, 1)

    lora_bias: LoraBias = choice(LoraBias.NONE, LoraBias)
    lora_modules: str = names(None, LONGEST_NAMES)

    quantization: BaseBits = choice(BaseBits.NONE, BaseBits, technique=True, needs="lora")

    gpus: int = integer(1, MOST_GPUS)
    data_parallel: DataParallel = choice(
        DataParallel.DDP, DataParallel, technique=True, needs="gpus"
    )
    cpu_offload: bool = flag(False, technique=True, needs="data_parallel")
    tensor_parallel: int = integer(1, MOST_GPUS, technique=True)
    sequence_parallel: bool = flag(False, technique=True, needs="tensor_parallel")
    expert_parallel: int = integer(1, MOST_GPUS, technique=True)
    context_parallel: int = integer(1, MOST_GPUS, technique=True, needs="gpus")
    context_rotation: ContextRotation = choice(ContextRotation.ALL_GATHER, ContextRotation)
    pipeline_parallel: int = integer(1, MOST_LAYERS, technique=True)
    pipeline_schedule: PipelineSchedule = choice(
        PipelineSchedule.ONE_FORWARD_ONE_BACKWARD, PipelineSchedule
    )
    pipeline_stages: int = integer(None, MOST_LAYERS)
    task: Task = choice(None, Task)
    labels: int = integer(None, LARGEST_LABELS)
    mini_batch_size: int = integer(0, LARGEST_BATCH, minimum=0)
    freeze: str = names(None, LONGEST_NAMES)
    card: Card = field(default=TODAY, hash=False)

    def __post_init__(self) -> None:
        for name in _OPTIONS:
            value = vars(self)[name]
            if value is not None:
                vars(self)[name] = _settled(name, value)

    def on(self, card: Card) -> Self:
        """The same plan for another card, which picks kernels and the 16-bit format."""
        made = object.__new__(type(self))
        vars(made).update({**vars(self), "card": card})
        return made

    @property
    def sequences(self) -> int:
        """Sequences that pass through the model at once."""
        return self.mini_batch_size or self.batch_size

    @property
    def rounds(self) -> int:
        """Micro-batches of a step; with GradCache, mini-batches of each column of pairs."""
        pairs = self.batch_size // 2
        often = -(-pairs // self.mini_batch_size) if self.mini_batch_size else 1
        return self.accumulation * often

    def but(self, **values: object) -> Self:
        """The same plan with other values; those that stay are not parsed again.

        Raises:
            InputError: if a value is out of range.
        """
        made = object.__new__(type(self))
        assert values.keys() <= _OPTIONS.keys()
        settled = {n: None if v is None else _settled(n, v) for n, v in values.items()}
        vars(made).update({**vars(self), **settled})
        return made

    @staticmethod
    def options() -> Mapping[str, Option]:
        """The options by their fields' names, in the fields' order."""
        return _OPTIONS

    @classmethod
    def parse(cls, options: Mapping[str, object]) -> Self:
        """A plan from texts or values by field name; absent, None and '' mean the default.

        Raises:
            InputError: if a field does not exist or a value is out of range.
        """
        for name in options:
            if name not in _OPTIONS:
                raise unknown_name("option", name, _OPTIONS)
        given = {name: value for name, value in options.items() if value not in (None, "")}
        given = in_our_words(given)
        return cls(**given)  # type: ignore[arg-type]  # __post_init__ parses each value

    def changed(self) -> dict[str, object]:
        """The options that differ from the defaults."""
        defaults = {item.name: item.default for item in fields(self)}
        values = {name: getattr(self, name) for name in _OPTIONS}
        return {name: value for name, value in values.items() if value != defaults[name]}

    @property
    def weight_bytes(self) -> int:
        """Bytes of one weight and of one gradient that live on the GPU from step to step.

        FSDP's shards are the fp32 masters themselves.
        """
        if self.is_sharded and self.precision is Precision.MIXED:
            return 4
        return 4 if self.precision in (Precision.FP32, Precision.AMP) else 2

    @property
    def half(self) -> DType:
        """The 16-bit format of a resolved plan's step."""
        return FLOAT16 if self.format is HalfFormat.FP16 else BFLOAT16

    @property
    def is_sharded(self) -> bool:
        """True if each GPU holds a shard of the weights, their gradients and states."""
        return self.replicas > 1 and self.data_parallel in (DataParallel.FSDP, DataParallel.ZERO2)

    @property
    def shares_states(self) -> bool:
        """True if each GPU holds a copy of the weights, and the states of some of them."""
        return self.replicas > 1 and self.data_parallel is DataParallel.ZERO1

    @property
    def divides_layers(self) -> bool:
        """True if several GPUs have shares of every layer, and read one micro-batch."""
        return self.tensor_parallel > 1 or self.expert_parallel > 1

    @property
    def sharing_gpus(self) -> int:
        """GPUs among which a model is divided: by stages, shares of layers, and experts."""
        return self.tensor_parallel * self.expert_parallel * self.pipeline_parallel

    @property
    def replicas(self) -> int:
        """GPUs that each read sequences, or parts of some, of their own, with one part of a model.

        `gpus` is a multiple of the GPUs that share a model, or 1 where nobody set it.
        """
        return max(1, self.gpus // self.sharing_gpus)

    @property
    def all_gpus(self) -> int:
        """GPUs that train the model, each with one process."""
        return self.replicas * self.sharing_gpus

    @property
    def predicted_length(self) -> int:
        """Tokens of a sequence that a resolved plan's loss is of: the decoder's, if it has one."""
        return self.target_length or self.sequence_length

    @property
    def own_stages(self) -> int:
        """Default number of a GPU's stages."""
        several = self.pipeline_schedule is PipelineSchedule.INTERLEAVED
        return 2 if several and self.pipeline_parallel > 1 else 1

    @property
    def all_stages(self) -> int:
        """Stages of a resolved plan's pipeline, on all GPUs."""
        return self.pipeline_parallel * self.pipeline_stages

    @property
    def trained_bytes(self) -> int:
        """Bytes per element that the optimizer updates; adapters are always in 32 bits."""
        return 2 if self.precision is Precision.HALF and not self.lora else 4

    @property
    def trains_adapters_alone(self) -> bool:
        """True if all that is trained is adapters: matrices in 32 bits."""
        return bool(self.lora) and self.lora_bias is LoraBias.NONE and not self.lora_modules

    @property
    def own_bits(self) -> int:
        """Default bits of an optimizer state: those of the tensors that it updates.

        bitsandbytes' have 32, whatever they update.
        """
        rule = rule_named(self.optimizer)
        is_elsewhere = rule.bitsandbytes and not rule.torch
        return 32 if self.paged_optimizer or is_elsewhere else 8 * self.trained_bytes

    @property
    def has_master_weights(self) -> bool:
        """True if the optimizer updates an fp32 copy of 16-bit weights."""
        return self.precision is Precision.MIXED and not self.lora and not self.is_sharded


_OPTIONS: Final = options_of(Plan, WORDS["options"])


def _settled(name: str, value: object) -> Any:
    """The value as `Plan` holds it."""
    if isinstance(value, (str, int, float)):
        return _parsed(name, value)
    return _OPTIONS[name].parse(value)


@lru_cache(maxsize=4096, typed=True)
def _parsed(name: str, value: str | float) -> Any:
    """The value as `Plan` holds it; a search makes hundreds of plans of the same few values."""
    return _OPTIONS[name].parse(value)


def techniques() -> list[Option]:
    """The options that save memory."""
    return [option for option in _OPTIONS.values() if option.technique]
