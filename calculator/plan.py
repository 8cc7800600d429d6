"""Training plans: precision, optimizer, checkpointing, offloading, ... -> Plan.

Each option is declared once, at its field in `Plan`.
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
from calculator.options import Option, choice, flag, integer, names, number, options_of
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


_SIXTEEN_BITS = (
    "what Trainer calls fp16=True or bf16=True is amp, fp16=True with a gradient scaler; weights "
    "that are themselves in 16 bits are half, or mixed with fp32 masters"
)
_OTHER_MODEL = "changes the model, so pretrained weights do not fit"


@dataclass(frozen=True)
class Plan:
    """One choice for every option, and the card; None stands for the model's own value.

    `resolve` fills in every None and checks the plan against a model. The types are those of a
    resolved plan, which is what all arithmetic takes.
    """

    batch_size: int = integer(
        1, "Micro-batch", "Sequences per forward pass, per GPU.", LARGEST_BATCH
    )
    sequence_length: int = integer(
        None,
        "Sequence length",
        "Tokens per sequence; for T5, in the encoder. Defaults to 2,048, or to the model's "
        "longest if that is shorter.",
        LONGEST_SEQUENCE,
    )
    target_length: int | None = integer(
        None, "Target length", "Tokens per sequence in T5's decoder.", LONGEST_SEQUENCE
    )
    precision: Precision = choice(
        Precision.AMP,
        "Precision",
        "Number formats for weights, gradients and arithmetic; mixed keeps weights and gradients "
        "in 16 bits.",
        {
            Precision.FP32: "fp32: everything in 32 bits",
            Precision.AMP: "amp: 32-bit weights, 16-bit autocast",
            Precision.MIXED: "mixed: 16 bits, fp32 master weights",
            Precision.HALF: "half: everything in 16 bits",
        },
        explained=tuple(
            (typed, _SIXTEEN_BITS)
            for typed in ("fp16", "bf16", "float16", "bfloat16", "16", "16-mixed", "bf16-mixed")
        ),
    )
    gradient_scaler: bool = flag(
        False,
        "Gradient scaler",
        "Autocast to float16 instead of bfloat16, and scale the loss so that small gradients "
        "don't underflow (torch.amp.GradScaler). Used with amp.",
    )
    format: HalfFormat = choice(
        None,
        "16-bit format",
        "Format of 16-bit weights and of autocast. Defaults to bf16; to fp16 on cards without "
        "bf16 (NVIDIA's before Ampere) and with a gradient scaler.",
        {HalfFormat.BF16: "bf16", HalfFormat.FP16: "fp16"},
    )
    loop: Loop = choice(
        Loop.TRAINER,
        "Training loop",
        "How long your code keeps what the model returns besides the loss: a loop with outputs = "
        "model(...) keeps the logits.",
        {
            Loop.TRAINER: "trainer: keeps only the loss",
            Loop.FUNCTION: "function: keeps outputs to its end",
            Loop.SCRIPT: "script: keeps outputs into the next step",
        },
    )
    optimizer: Optimizer = choice(
        Optimizer.ADAM,
        "Optimizer",
        "The rule for updating weights. Most optimizers keep states between steps. Muon and "
        "APOLLO update the matrices of hidden layers; AdamW updates the rest.",
        {each: each.label for each in Optimizer},
    )
    optimizer_bits: int = choice(
        None,
        "Optimizer bits",
        "Bits per element of the optimizer's states.",
        {32: "32 bits", 16: "16 bits", 8: "8 bits"},
        technique=True,
    )
    update: Update = choice(
        Update.FOREACH,
        "Update",
        "PyTorch's implementation of the update; foreach is its default. They differ in temporary "
        "memory.",
        {
            Update.FOREACH: "foreach: all tensors at once",
            Update.FUSED: "fused: one kernel, no temporaries",
            Update.LOOP: "loop: one tensor after another",
        },
    )
    paged_optimizer: bool = flag(
        False,
        "Paged states",
        "Keep large AdamW or Lion states in paged memory: CUDA moves them to RAM when the GPU is "
        "full, and back for the update (bitsandbytes' PagedAdamW and PagedLion).",
        technique=True,
    )
    update_in_backward: bool = flag(
        False,
        "Update in backward",
        "Update each weight as soon as its gradient is ready, then free the gradient. Leaves no "
        "gradients to accumulate or clip.",
        technique=True,
    )
    attention: Attention = choice(
        Attention.SDPA,
        "Attention",
        "The kernel that computes attention.",
        {
            Attention.EAGER: "eager: plain operations",
            Attention.SDPA: "sdpa: PyTorch's choice on a GPU",
            Attention.FLASH: "flash",
            Attention.EFFICIENT: "efficient",
            Attention.MATH: "math",
        },
    )
    checkpointing: Checkpointing = choice(
        Checkpointing.NONE,
        "Gradient checkpointing",
        "Discard activations and recompute them in the backward pass. operations keeps the results "
        "of attention and of every second matrix product in each layer "
        "(create_selective_checkpoint_contexts).",
        {
            Checkpointing.NONE: "none: keep everything",
            Checkpointing.SELECTIVE: "selective: recompute attention",
            Checkpointing.OPERATIONS: "operations: keep costly results",
            Checkpointing.FULL: "full: recompute each layer",
        },
        technique=True,
    )
    checkpoint_every: int = integer(
        1,
        "Checkpoint every n-th layer",
        "Recompute the first layer and every n-th after it; the others keep their activations. "
        "Used with full checkpointing, or by operation.",
        MOST_LAYERS,
    )
    activation_offload: ActivationOffload = choice(
        ActivationOffload.NONE,
        "Activation offload",
        "Keep the inputs of checkpointed layers in RAM (PyTorch's save_on_cpu()) and copy each "
        "back when its layer is recomputed; pinned is save_on_cpu(pin_memory=True), as in "
        "offload_wrapper. Used with full checkpointing.",
        {
            ActivationOffload.NONE: "none",
            ActivationOffload.PAGEABLE: "pageable: in ordinary memory",
            ActivationOffload.PINNED: "pinned: in page-locked memory",
        },
        technique=True,
        needs="checkpointing",
    )
    chunked_loss: ChunkedLoss = choice(
        ChunkedLoss.NONE,
        "Chunked loss",
        "Compute the output layer and the loss together, in chunks of tokens, so that the full "
        "logits never exist: PyTorch's linear_cross_entropy with its default "
        "LinearCrossEntropyOptions.",
        {
            ChunkedLoss.NONE: "none: all logits at once",
            ChunkedLoss.TORCH: "torch: linear_cross_entropy",
        },
        technique=True,
    )
    offload: Offload = choice(
        Offload.NONE,
        "Offload",
        "Keep optimizer states in RAM and update the weights there.",
        {Offload.NONE: "none", Offload.OPTIMIZER: "optimizer: states and update in RAM"},
        technique=True,
    )
    sharing_groups: int = integer(
        None,
        "Sharing groups",
        "Number of distinct layers, used in turn. With as many as the model has, nothing is "
        "shared.",
        MOST_LAYERS,
        technique=True,
        warning=f"Sharing {_OTHER_MODEL}.",
    )
    reversible: bool = flag(
        None,
        "Reversible layers",
        "Two residual streams whose inputs are recomputed from their outputs.",
        technique=True,
        warning=f"Reversibility {_OTHER_MODEL}.",
    )
    dropout: float = number(
        None, "Dropout", "Dropout probability. Above zero, each dropout keeps a mask.", below=1
    )
    accumulation: int = integer(
        1,
        "Gradient accumulation",
        "Micro-batches per update. Gradients stay in memory between them.",
        LARGEST_BATCH,
    )
    tied_embeddings: bool = flag(
        None,
        "Tied embeddings",
        "The output layer uses the input embedding's weights.",
        negative="untied-embeddings",
    )

    lora: int = integer(
        0,
        "LoRA rank",
        "Above zero, the model is frozen and adapters of this rank are trained beside its linear "
        "layers, as in peft.",
        LARGEST_RANK,
        minimum=0,
        technique=True,
        warning="LoRA trains adapters only.",
    )
    lora_targets: str = names(
        None,
        "LoRA targets",
        "Layers that get adapters: all-linear, or module names separated by commas (peft's "
        "target_modules). Used with a LoRA rank.",
        LONGEST_NAMES,
    )
    lora_dropout: float = number(
        None,
        "LoRA dropout",
        "Dropout probability in the adapters; above zero, each keeps a mask. Used with a LoRA "
        "rank.",
        below=1,
    )

    lora_bias: LoraBias = choice(
        LoraBias.NONE,
        "LoRA biases",
        "Biases to train as well (peft's bias). Used with a LoRA rank.",
        {
            LoraBias.NONE: "none",
            LoraBias.ALL: "all: every bias of the model",
            LoraBias.LORA_ONLY: "lora_only: of layers with adapters",
        },
    )
    lora_modules: str = names(
        None,
        "LoRA whole modules",
        "Modules to train in full, as copies (peft's modules_to_save): embed_tokens, lm_head, or "
        "both separated by a comma, for example for new tokens. Used with a LoRA rank.",
        LONGEST_NAMES,
    )

    quantization: BaseBits = choice(
        BaseBits.NONE,
        "Frozen weights",
        "Bits of the frozen linear layers under LoRA; with 4 bits, this is QLoRA.",
        {
            BaseBits.NONE: "none: as the precision has them",
            BaseBits.NF4: "nf4: 4 bits, one scale per 64",
            BaseBits.NF4_DOUBLE: "nf4-double: nf4, scales in 8 bits",
            BaseBits.FP4: "fp4: 4 bits, one scale per 64",
            BaseBits.FP4_DOUBLE: "fp4-double: fp4, scales in 8 bits",
        },
        technique=True,
        needs="lora",
    )

    gpus: int = integer(
        1,
        "GPUs",
        "All GPUs of the run. Numbers are for the busiest GPU.",
        MOST_GPUS,
    )
    data_parallel: DataParallel = choice(
        DataParallel.DDP,
        "Data parallelism",
        "What each GPU holds. ddp: a full copy, whose gradients DistributedDataParallel reduces "
        "in buckets (ddp-view: with gradient_as_bucket_view). zero1: a full copy, but only part "
        "of the states (ZeroRedundancyOptimizer). fsdp: a shard of each layer, whose weights "
        "FSDP2's fully_shard gathers when needed (zero2: once for both passes).",
        {
            DataParallel.DDP: "ddp: a copy on each",
            DataParallel.DDP_VIEW: "ddp-view: gradients in the buckets",
            DataParallel.ZERO1: "zero1: a copy, some states",
            DataParallel.ZERO2: "zero2: a shard, gathered once",
            DataParallel.FSDP: "fsdp: a shard on each",
        },
        technique=True,
        needs="gpus",
    )
    cpu_offload: bool = flag(
        False,
        "Shards in RAM",
        "Keep shards, their gradients and states in RAM, and update them there. Used with zero2 or "
        "fsdp.",
        technique=True,
        needs="data_parallel",
    )
    tensor_parallel: int = integer(
        1,
        "Tensor parallelism",
        "GPUs that split each layer of one micro-batch; each has its share of the heads and of "
        "the feed-forward width (ColwiseParallel, RowwiseParallel).",
        MOST_GPUS,
        technique=True,
    )
    sequence_parallel: bool = flag(
        False,
        "Sequence parallelism",
        "In norms and between layers, each of these GPUs holds only its share of the tokens "
        "(SequenceParallel). Used with tensor parallelism.",
        technique=True,
        needs="tensor_parallel",
    )
    expert_parallel: int = integer(
        1,
        "Expert parallelism",
        "GPUs that read one micro-batch and split the experts of every layer; each sends its "
        "share of the tokens to the GPUs of their experts and gets the results back "
        "(transformers' ep_size).",
        MOST_GPUS,
        technique=True,
    )
    context_parallel: int = integer(
        1,
        "Context parallelism",
        "GPUs that split each sequence; each holds a part of the tokens, and attention sees the "
        "keys and values of all (context_parallel). Must divide the number of GPUs; gradients and "
        "shards span all GPUs.",
        MOST_GPUS,
        technique=True,
        needs="gpus",
    )
    context_rotation: ContextRotation = choice(
        ContextRotation.ALL_GATHER,
        "Context rotation",
        "How keys and values reach the other GPUs: all at once, or from one GPU to the next "
        "(set_rotate_method). Used with context parallelism.",
        {
            ContextRotation.ALL_GATHER: "allgather: all at once",
            ContextRotation.ALL_TO_ALL: "alltoall: one GPU's after another's",
        },
    )
    pipeline_parallel: int = integer(
        1,
        "Pipeline",
        "GPUs that each hold consecutive layers and pass on the micro-batches of gradient "
        "accumulation; numbers are for the busiest stage (PipelineStage).",
        MOST_LAYERS,
        technique=True,
    )
    pipeline_schedule: PipelineSchedule = choice(
        PipelineSchedule.ONE_FORWARD_ONE_BACKWARD,
        "Pipeline schedule",
        "The order of the micro-batches in a pipeline. 1f1b keeps fewer of them in memory; "
        "interleaved leaves GPUs idle less, but keeps more.",
        {
            PipelineSchedule.GPIPE: "gpipe: all forward, then all backward",
            PipelineSchedule.ONE_FORWARD_ONE_BACKWARD: "1f1b: forward and backward in turn",
            PipelineSchedule.INTERLEAVED: "interleaved: several stages per GPU",
        },
    )
    pipeline_stages: int = integer(
        None,
        "Stages per GPU",
        "Stages per GPU in an interleaved pipeline, each of consecutive layers. Defaults to 2.",
        MOST_LAYERS,
    )
    task: Task = choice(
        None,
        "Task",
        "The head and loss to train with. Defaults to those of the class that config.json names; "
        "for models in the catalog, to the language model.",
        {
            Task.LANGUAGE: "lm: language model",
            Task.SEQUENCE: "sequence: a class per sequence",
            Task.TOKENS: "tokens: a class per token",
            Task.QUESTIONS: "questions: the span of an answer",
            Task.REWARD: "reward: the better of two",
            Task.EMBEDDING: "embedding: pairs of sequences",
            Task.IMAGE: "image: a class per image",
            Task.AUDIO: "audio: a class per recording",
        },
    )
    labels: int = integer(
        None,
        "Labels",
        "Number of classes of a sequence, token or audio classifier. Defaults to that in "
        "config.json, or 2.",
        LARGEST_LABELS,
    )
    freeze: str = names(
        None,
        "Frozen parts",
        "Parts that are not trained, separated by commas: embeddings, layers such as 0-11, or "
        "body (all but the head).",
        LONGEST_NAMES,
    )
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
    def own_stages(self) -> int:
        """Default number of a GPU's stages."""
        several = self.pipeline_schedule is PipelineSchedule.INTERLEAVED
        return 2 if several and self.pipeline_parallel > 1 else 1

    @property
    def all_stages(self) -> int:
        """Stages of a resolved plan's pipeline, on all GPUs."""
        return self.pipeline_parallel * self.pipeline_stages

    @property
    def arithmetic_bytes(self) -> int:
        """Bytes of one element in matrix products."""
        return 4 if self.precision is Precision.FP32 else 2

    @property
    def trained_bytes(self) -> int:
        """Bytes per element that the optimizer updates; adapters are always in 32 bits."""
        return 2 if self.precision is Precision.HALF and not self.lora else 4

    @property
    def own_bits(self) -> int:
        """Default bits of an optimizer state: those of the tensors that it updates.

        Paged ones have 32, whatever they update.
        """
        return 32 if self.paged_optimizer else 8 * self.trained_bytes

    @property
    def has_master_weights(self) -> bool:
        """True if the optimizer updates an fp32 copy of 16-bit weights."""
        return self.precision is Precision.MIXED and not self.lora and not self.is_sharded


_OPTIONS: Final = options_of(Plan)


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
