"""What is done to a model to train it: precision, optimizer, checkpointing, offload, ... -> Plan.

`OPTIONS` describes each option once; the command line, the page's form, the page's address and
`Plan` all read it.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Final, Literal, Self

from calculator.architecture import Architecture, Family
from calculator.errors import InputError, unknown_name


class Precision(StrEnum):
    """Number formats of weights, gradients and arithmetic."""

    FP32 = "fp32"
    AMP = "amp"
    MIXED = "mixed"
    HALF = "half"


class Optimizer(StrEnum):
    """Which optimizer's states and update are counted; AdamW counts as Adam."""

    ADAM = "adam"
    LAMB = "lamb"
    SGD = "sgd"
    MOMENTUM = "momentum"
    ADAFACTOR = "adafactor"
    LION = "lion"


class Update(StrEnum):
    """PyTorch's three implementations of an optimizer's update."""

    FOREACH = "foreach"
    FUSED = "fused"
    LOOP = "loop"


class Attention(StrEnum):
    """The attention kernel; `sdpa` is what PyTorch picks on a GPU."""

    EAGER = "eager"
    SDPA = "sdpa"
    FLASH = "flash"
    EFFICIENT = "efficient"
    MATH = "math"


class Checkpointing(StrEnum):
    """What the forward pass throws away and the backward pass computes again."""

    NONE = "none"
    SELECTIVE = "selective"
    FULL = "full"


class Offload(StrEnum):
    """What lives in RAM instead of GPU memory."""

    NONE = "none"
    OPTIMIZER = "optimizer"


Kind = Literal["choice", "integer", "number", "flag"]


@dataclass(frozen=True, slots=True)
class Option:
    """One option: its field in `Plan`, its words for people, and the values it takes."""

    field: str
    label: str
    help: str
    kind: Kind
    choices: tuple[tuple[str, str], ...] = ()
    minimum: float = 1
    maximum: float = 1
    technique: bool = False

    @property
    def flag(self) -> str:
        """The option on the command line, for example ``--batch-size``."""
        return "--" + self.field.replace("_", "-")

    @property
    def negative_flag(self) -> str:
        """A flag's opposite on the command line, for example ``--no-reversible``."""
        return "--untied-embeddings" if self.field == "tied_embeddings" else f"--no-{self.flag[2:]}"

    def parse(self, value: object) -> object:
        """The value as `Plan` holds it, or `InputError`."""
        text = str(value).strip()
        match self.kind:
            case "choice":
                names = [name for name, _ in self.choices]
                if text not in names:
                    raise unknown_name(self.field, value, names)
                return int(text) if text.isdecimal() else text
            case "flag":
                return _parse_flag(self.field, text)
            case "integer":
                return _parse_integer(self, text)
            case "number":
                return _parse_number(self, text)


def _parse_flag(field: str, text: str) -> bool:
    if text.lower() in ("true", "1", "on", "yes"):
        return True
    if text.lower() in ("false", "0", "off", "no"):
        return False
    raise InputError(field, text, "must be true or false")


def _parse_integer(option: Option, text: str) -> int:
    rule = f"must be a whole number from {option.minimum:,.0f} to {option.maximum:,.0f}"
    try:
        number = int(text)
    except ValueError:
        raise InputError(option.field, text, rule) from None
    if not option.minimum <= number <= option.maximum:
        raise InputError(option.field, text, rule)
    return number


def _parse_number(option: Option, text: str) -> float:
    rule = f"must be a number of at least {option.minimum:g} and below {option.maximum:g}"
    try:
        number = float(text)
    except ValueError:
        raise InputError(option.field, text, rule) from None
    if not (math.isfinite(number) and option.minimum <= number < option.maximum):
        raise InputError(option.field, text, rule)
    return number


LARGEST_BATCH: Final = 65_536
LONGEST_SEQUENCE: Final = 1_048_576

OPTIONS: Final[dict[str, Option]] = {
    option.field: option
    for option in (
        Option(
            "batch_size",
            "Micro-batch",
            "Sequences that pass through the model at once.",
            "integer",
            maximum=LARGEST_BATCH,
        ),
        Option(
            "sequence_length",
            "Sequence length",
            "Tokens in a sequence; for T5, of the encoder's input.",
            "integer",
            maximum=LONGEST_SEQUENCE,
        ),
        Option(
            "target_length",
            "Target length",
            "Tokens in a sequence of T5's decoder.",
            "integer",
            maximum=LONGEST_SEQUENCE,
        ),
        Option(
            "precision",
            "Precision",
            "Number formats of weights, gradients and arithmetic.",
            "choice",
            (
                ("fp32", "fp32: everything in 32 bits"),
                ("amp", "amp: 32-bit weights, 16-bit autocast"),
                ("mixed", "mixed: 16-bit weights and gradients, fp32 master weights"),
                ("half", "half: everything in 16 bits"),
            ),
        ),
        Option(
            "optimizer",
            "Optimizer",
            "Its states are kept from step to step.",
            "choice",
            (
                ("adam", "Adam, AdamW"),
                ("lamb", "LAMB"),
                ("sgd", "SGD"),
                ("momentum", "SGD with momentum"),
                ("adafactor", "Adafactor"),
                ("lion", "Lion"),
            ),
        ),
        Option(
            "optimizer_bits",
            "Optimizer bits",
            "Bits of one number in the optimizer's states.",
            "choice",
            (("32", "32 bits"), ("16", "16 bits"), ("8", "8 bits")),
            technique=True,
        ),
        Option(
            "update",
            "Update",
            "PyTorch's implementation of the update; their temporaries differ.",
            "choice",
            (
                ("foreach", "foreach: all tensors at once (PyTorch's default)"),
                ("fused", "fused: one kernel, no temporaries"),
                ("loop", "loop: one tensor after the other"),
            ),
        ),
        Option(
            "attention",
            "Attention",
            "The kernel that computes attention.",
            "choice",
            (
                ("eager", "eager: plain operations"),
                ("sdpa", "sdpa: what PyTorch picks on a GPU"),
                ("flash", "flash"),
                ("efficient", "efficient"),
                ("math", "math"),
            ),
        ),
        Option(
            "checkpointing",
            "Gradient checkpointing",
            "Throw activations away and compute them again in the backward pass.",
            "choice",
            (
                ("none", "none: keep everything"),
                ("selective", "selective: compute attention again"),
                ("full", "full: compute each layer again"),
            ),
            technique=True,
        ),
        Option(
            "offload",
            "Offload",
            "Keep optimizer states in RAM and update there.",
            "choice",
            (("none", "none"), ("optimizer", "optimizer: states and update in RAM")),
            technique=True,
        ),
        Option(
            "sharing_groups",
            "Sharing groups",
            "Distinct layers, used cyclically; as many as the model has layers shares nothing.",
            "integer",
            maximum=1024,
            technique=True,
        ),
        Option(
            "reversible",
            "Reversible layers",
            "Two residual streams whose inputs are computed back from their outputs.",
            "flag",
            technique=True,
        ),
        Option(
            "dropout",
            "Dropout",
            "Probability; above zero each dropout keeps a mask.",
            "number",
            minimum=0,
            maximum=1,
        ),
        Option(
            "accumulation",
            "Gradient accumulation",
            "Micro-steps per update; their gradients stay between them.",
            "integer",
            maximum=LARGEST_BATCH,
        ),
        Option(
            "tied_embeddings",
            "Tied embeddings",
            "The output layer uses the input embedding's weights.",
            "flag",
        ),
    )
}


@dataclass(frozen=True, slots=True)
class Plan:
    """One choice for every option; None stands for the model's own value.

    `resolve` replaces every None and checks the plan against a model.
    """

    batch_size: int = 1
    sequence_length: int | None = None
    target_length: int | None = None
    precision: Precision = Precision.AMP
    optimizer: Optimizer = Optimizer.ADAM
    optimizer_bits: int | None = None
    update: Update = Update.FOREACH
    attention: Attention = Attention.SDPA
    checkpointing: Checkpointing = Checkpointing.NONE
    offload: Offload = Offload.NONE
    sharing_groups: int | None = None
    reversible: bool | None = None
    dropout: float | None = None
    accumulation: int = 1
    tied_embeddings: bool | None = None

    def __post_init__(self) -> None:
        for option in OPTIONS.values():
            value = getattr(self, option.field)
            if value is not None:
                object.__setattr__(self, option.field, _typed(option, value))

    @classmethod
    def parse(cls, options: Mapping[str, object]) -> Self:
        """A plan from texts or values by field name; absent, None and '' mean the default.

        Raises:
            InputError: for a field that does not exist or a value out of its range.
        """
        for name in options:
            if name not in OPTIONS:
                raise unknown_name("option", name, OPTIONS)
        given = {name: value for name, value in options.items() if value not in (None, "")}
        return cls(**given)  # type: ignore[arg-type]  # __post_init__ parses each value

    def changed(self) -> dict[str, object]:
        """The options that differ from the defaults."""
        values = {item.name: (getattr(self, item.name), item.default) for item in fields(self)}
        return {name: value for name, (value, default) in values.items() if value != default}


_ENUMS: Final = {
    "precision": Precision,
    "optimizer": Optimizer,
    "update": Update,
    "attention": Attention,
    "checkpointing": Checkpointing,
    "offload": Offload,
}


def _typed(option: Option, value: object) -> object:
    parsed = option.parse(value)
    return _ENUMS[option.field](str(parsed)) if option.field in _ENUMS else parsed


@dataclass(frozen=True, slots=True)
class ResolvedPlan:
    """A plan with nothing left open, checked against a model."""

    batch_size: int
    sequence_length: int
    target_length: int | None
    precision: Precision
    optimizer: Optimizer
    optimizer_bits: int
    update: Update
    attention: Attention
    checkpointing: Checkpointing
    offload: Offload
    sharing_groups: int
    reversible: bool
    dropout: float
    accumulation: int
    tied_embeddings: bool

    @property
    def weight_bytes(self) -> int:
        """Bytes of one weight and of one gradient on the GPU."""
        return 4 if self.precision in (Precision.FP32, Precision.AMP) else 2

    @property
    def arithmetic_bytes(self) -> int:
        """Bytes of one number in matrix products."""
        return 4 if self.precision is Precision.FP32 else 2

    @property
    def has_master_weights(self) -> bool:
        """Whether an fp32 copy of 16-bit weights is what the optimizer updates."""
        return self.precision is Precision.MIXED


def default_bits(precision: Precision) -> int:
    """Bits of an optimizer state when nothing is asked: those of the weights it updates."""
    return 16 if precision is Precision.HALF else 32


def resolve(architecture: Architecture, plan: Plan) -> ResolvedPlan:
    """Fill in the model's own values and check the plan against the model.

    Raises:
        InputError: for a value that this model cannot have.
    """
    _check_lengths(architecture, plan)
    _check_attention(architecture, plan)
    _check_embeddings(architecture, plan)
    _check_dropout(architecture, plan)
    return ResolvedPlan(
        batch_size=plan.batch_size,
        sequence_length=plan.sequence_length or architecture.sequence_length,
        target_length=plan.target_length or architecture.target_length,
        precision=plan.precision,
        optimizer=plan.optimizer,
        optimizer_bits=_resolve_bits(plan),
        update=_resolve_update(plan),
        attention=plan.attention,
        checkpointing=plan.checkpointing,
        offload=plan.offload,
        sharing_groups=_resolve_groups(architecture, plan),
        reversible=_resolve_reversible(architecture, plan),
        dropout=architecture.dropout if plan.dropout is None else plan.dropout,
        accumulation=plan.accumulation,
        tied_embeddings=(
            architecture.tied_embeddings if plan.tied_embeddings is None else plan.tied_embeddings
        ),
    )


def _check_lengths(architecture: Architecture, plan: Plan) -> None:
    if plan.target_length is not None and architecture.family is not Family.T5:
        rule = f"{architecture.name} has no decoder of its own; only T5 has a target length"
        raise InputError("target_length", plan.target_length, rule)
    fixed = architecture.sequence_length
    if architecture.family is Family.DALLE and plan.sequence_length not in (None, fixed):
        codes = architecture.image_side**2
        rule = (
            f"must be {fixed:,}: {architecture.text_length} text tokens and {codes:,} image codes"
        )
        raise InputError("sequence_length", plan.sequence_length, rule)


def can_untie(architecture: Architecture) -> bool:
    """Whether the model's class has an output layer with weights of its own."""
    return architecture.family not in (Family.T5, Family.DALLE)


def _check_embeddings(architecture: Architecture, plan: Plan) -> None:
    if plan.tied_embeddings is False and not can_untie(architecture):
        rule = f"{architecture.name}'s class always ties its embeddings: must be true"
        raise InputError("tied_embeddings", False, rule)


def _check_dropout(architecture: Architecture, plan: Plan) -> None:
    if plan.dropout and architecture.family is Family.DALLE:
        raise InputError("dropout", plan.dropout, f"{architecture.name} has no dropout: must be 0")


def _check_attention(architecture: Architecture, plan: Plan) -> None:
    allowed = attention_kernels(architecture, plan.precision)
    if plan.attention not in allowed:
        rule = f"{architecture.name} in {plan.precision} has code for: {', '.join(allowed)}"
        raise InputError("attention", plan.attention, rule)


def attention_kernels(architecture: Architecture, precision: Precision) -> list[Attention]:
    """The kernels that a model's class can run.

    `sdpa` is always taken: a class without it (GPT-J) runs its eager code, as a note says. Flash
    wants 16 bits and no mask; T5's position bias and DALL-E's patterns are masks.
    """
    match architecture.family:
        case Family.GPTJ:
            return [Attention.EAGER, Attention.SDPA]
        case Family.T5 | Family.DALLE:
            return [Attention.EAGER, Attention.SDPA, Attention.EFFICIENT, Attention.MATH]
        case Family.BERT | Family.GPT2:
            flash = [] if precision is Precision.FP32 else [Attention.FLASH]
            return [Attention.EAGER, Attention.SDPA, *flash, Attention.EFFICIENT, Attention.MATH]


def _resolve_bits(plan: Plan) -> int:
    bits = plan.optimizer_bits
    if bits is None:
        return default_bits(plan.precision)
    if bits == 8 and plan.optimizer in (Optimizer.ADAFACTOR,):
        rule = "Adafactor's states are factored, not quantised: must be 32 or 16"
        raise InputError("optimizer_bits", bits, rule)
    return bits


def _resolve_update(plan: Plan) -> Update:
    if plan.update is Update.FUSED and plan.optimizer is Optimizer.ADAFACTOR:
        raise InputError("update", plan.update, "PyTorch's Adafactor has foreach and loop only")
    return plan.update


def _resolve_groups(architecture: Architecture, plan: Plan) -> int:
    """Distinct layers of the longest stack; a shorter one has at most its own."""
    layers = max(architecture.shared_layers, architecture.decoder_layers)
    most = max(architecture.layers, architecture.decoder_layers)
    if plan.sharing_groups is not None and plan.sharing_groups > most:
        rule = f"{architecture.name} has {layers} layers to share: must be from 1 to {layers}"
        raise InputError("sharing_groups", plan.sharing_groups, rule)
    return min(plan.sharing_groups or architecture.sharing_groups or most, layers)


def _resolve_reversible(architecture: Architecture, plan: Plan) -> bool:
    return architecture.reversible if plan.reversible is None else plan.reversible


def without_techniques(architecture: Architecture, plan: Plan) -> Plan:
    """The same plan at the plain value of each technique: the page's baseline."""
    plain = {option.field: plain_value(architecture, option.field) for option in techniques()}
    return replace(plan, **plain)  # type: ignore[arg-type]  # field names and values match


def techniques() -> list[Option]:
    """The options that save memory."""
    return [option for option in OPTIONS.values() if option.technique]


def plain_value(architecture: Architecture, field: str) -> object:
    """The value of a technique's option that leaves the technique out."""
    match field:
        case "optimizer_bits":
            return None
        case "sharing_groups":
            return architecture.layers
        case "reversible":
            return False
        case _:
            return {item.name: item.default for item in fields(Plan)}[field]
