"""Models: a tree of layers with inputs and a loss, and the abilities of its class."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from calculator.architecture import Architecture
from calculator.autograd.dtypes import FLOAT32, INT64, DType
from calculator.autograd.graph import Made, Parameter, Tensor
from calculator.autograd.mode import (
    NARROW_MULTIPLE,
    SEQUENCE,
    WIDE_MULTIPLE,
    Attention,
    Mode,
)
from calculator.autograd.sizes import Shape
from calculator.configuration import Configuration
from calculator.errors import InputError
from calculator.layers.basic import Embedding
from calculator.layers.chunked_loss import chunked_loss
from calculator.layers.heads import Heads, TaskHead
from calculator.layers.layer import Counted, Layer, walk
from calculator.layers.loss import causal_loss, masked_loss
from calculator.layers.pairs import HEADS
from calculator.layers.stack import Stack
from calculator.models.keys import KEYS
from calculator.task import Task

LLAMAS = "torchtitan's styles, which are counted, are for modules of Llama's names"
NO_SHARES = "transformers has no plan that divides this type's layers"
ALWAYS = "always"  # in place of a flag's name
KERNELS = (Attention.EAGER, Attention.SDPA, Attention.FLASH, Attention.EFFICIENT, Attention.MATH)


@dataclass(eq=False)
class Model(Layer, ABC):
    """A model with its loss.

    Attributes:
        title: the type's name for people.
        counted: transformers' class that is counted; empty where no config.json describes one.
        kernels: what its class has code for; `sdpa` is always taken.
        before_eager: what earlier versions of a class with eager attention alone did.
        can_untie: whether the class has an output layer with weights of its own.
        has_dropout: whether it has dropout at all.
        fixed_length: of what every sequence is made, where all are as long as the model says.
        has_target: whether a decoder reads a sequence of another length.
        plain_layers: the name of its layers, where its class has no gradient checkpointing.
        has_attention_core: whether its attention is a function that can be checkpointed alone.
        has_chunks: whether layers with linear attention cut the sequence into chunks.
        has_reversible_class: whether a real class of it has reversible layers.
        unused: what untied embeddings leave in its class without use, if anything.
        unread_part: the part of its class that no loss reads, if there is one.
        whole_tokens: why a layer between products needs all tokens; empty where it has a share.
        whole_heads: whether tensor parallelism divides no heads, but feed-forward layers alone.
        whole_layers: why no tensor parallelism divides its layers; empty where it does.
        layers_get_mask: whether its layers are called with eager attention's mask, as they are
            with the hidden states.
        is_inner: whether checkpoints on the Hub hold it inside a larger model, which the automatic
            class would load.
        fused_experts: names by which peft adapts its router and the gate, up and down of its
            experts, by adding to the weights; they are those of the modules before transformers 5.
        lora_targets: the layers that peft adapts where it is given none; not inherited.
        side_by_side: the flag by which attention and feed-forward layer read the same input.
        own_task: the task of the class that is counted.
        heads: its heads for other tasks, each with its maker; not inherited.
        language_head: names of the parts that another task's head replaces.
        embedding_parts: names of those that its class has in its embeddings.
        can_freeze: whether frozen parts of it are counted.
        task_head: the head of another task, put there by a change.
    """

    title: ClassVar[str] = ""
    counted: ClassVar[str] = ""
    kernels: ClassVar[tuple[Attention, ...]] = KERNELS
    before_eager: ClassVar[str] = ""
    can_untie: ClassVar[bool] = True
    has_dropout: ClassVar[bool] = True
    fixed_length: ClassVar[str] = ""
    has_target: ClassVar[bool] = False
    plain_layers: ClassVar[str] = ""
    has_attention_core: ClassVar[bool] = True
    has_chunks: ClassVar[bool] = False
    has_reversible_class: ClassVar[bool] = True
    unused: ClassVar[str] = ""
    unread_part: ClassVar[str] = ""
    whole_heads: ClassVar[bool] = False
    whole_layers: ClassVar[str] = NO_SHARES
    whole_tokens: ClassVar[str] = ""
    layers_get_mask: ClassVar[bool] = False
    is_inner: ClassVar[bool] = False
    fused_experts: ClassVar[tuple[str, ...]] = ()
    lora_targets: ClassVar[tuple[str, ...]] = ()
    side_by_side: ClassVar[str] = ""
    own_task: ClassVar[Task] = Task.LANGUAGE
    heads: ClassVar[Heads] = {}
    language_head: ClassVar[tuple[str, ...]] = ()
    embedding_parts: ClassVar[tuple[str, ...]] = (
        *("embeddings", "tokens", "words", "positions", "word_norm"),
    )
    listed_first: ClassVar[tuple[str, ...]] = (
        *("embeddings", "tokens", "words", "positions", "word_norm", "first_norm"),
    )
    can_freeze: ClassVar[bool] = True
    task_head: ClassVar[TaskHead | None] = None  # set where a model is trained for another task

    def __init_subclass__(cls) -> None:
        """Set what `keys.json` says of the type; peft's table and heads are those of no other."""
        super().__init_subclass__()
        own = KEYS.get(cls.__name__, {})
        told = {name: own[name] for name in ("title", "counted") if name in own}
        told["lora_targets"] = tuple(own.get("lora_targets", ()))
        told["heads"] = {Task(name): HEADS[Task(name)] for name in own.get("tasks", ())}
        for name, value in told.items():
            if name not in vars(cls):
                setattr(cls, name, value)

    @classmethod
    def read(cls, c: Configuration, name: str) -> Architecture:
        """The architecture that a config.json describes; every key that matters is asked for.

        Raises:
            InputError: if a value cannot be counted.
        """
        raise InputError("model_type", name, f"{cls.__name__} is not read from a config.json")

    @classmethod
    def values(cls, architecture: Architecture) -> dict[str, Any]:
        """The keys of a config.json for an architecture of the catalog; none by default."""
        return {}

    @classmethod
    @abstractmethod
    def build(cls, architecture: Architecture, tied: bool) -> "Model":
        """The tree for an architecture, its embeddings tied or not."""

    @classmethod
    def kernels_of(
        cls, architecture: Architecture, narrow: bool, length: int
    ) -> Sequence[Attention]:
        """The kernels that run this model at a length, in 16 bits where `narrow`."""
        refused = {
            Attention.FLASH: not narrow,
            Attention.EFFICIENT: not heads_fit(architecture, narrow),
        }
        return [kernel for kernel in cls.kernels if not refused.get(kernel)]

    @classmethod
    def windowed(cls, architecture: Architecture, length: int) -> bool:
        """True if the sequence is long enough that a window masks more than the future."""
        return False

    @classmethod
    def masks_window(cls, architecture: Architecture, length: int) -> bool:
        """True if its class then makes a mask of a window, even where no layer reads it."""
        return cls.windowed(architecture, length)

    @classmethod
    def is_side_by_side(cls, architecture: Architecture) -> bool:
        """True if attention and feed-forward layer read the same input."""
        return has_part(architecture, cls.side_by_side)

    @classmethod
    def check_length(cls, architecture: Architecture, length: int | None) -> None:
        """Refuse a sequence length that the model cannot have; None is its own.

        Raises:
            InputError: naming the lengths that it can.
        """
        fixed = architecture.sequence_length
        if cls.fixed_length and length not in (None, fixed):
            raise InputError("sequence_length", length, f"must be {fixed:,}: {cls.fixed_length}")

    def inputs(self, mode: Mode) -> tuple[Shape, ...]:
        """Shapes of token ids and labels, or what a model reads in their place."""
        head = self.task_head
        return (mode.batch, SEQUENCE), *(
            [(mode.batch, SEQUENCE)] if head is None else head.targets(mode)
        )

    def formats(self, mode: Mode) -> tuple[DType, ...]:
        """The formats of all."""
        return (INT64,) * len(self.inputs(mode))

    def task_loss(
        self, ids: Tensor, hidden: list[Tensor], labels: Tensor, held: list[Tensor] | None = None
    ) -> Tensor:
        """The loss of another task's head on the only `hidden` states, which it may let go of."""
        assert self.task_head is not None
        return self.task_head(ids, hidden, labels, held or [])

    @abstractmethod
    def forward(self, ids: Tensor, labels: Tensor, /) -> Tensor:
        """The loss of one micro-batch."""

    def least(self, mode: Mode) -> tuple[Made, ...]:
        """Tensors that live at the same time in every step: a bound that needs no tape."""
        return ()

    def outside(self) -> list[Parameter]:
        """The weights outside of all stacks, each once."""
        inside = {item for _, stack in self.stacks() for unit in stack.units() for item in unit}
        found = {item: None for item, _ in self.walk() if item not in inside}
        return [item for item in found if isinstance(item, Parameter)]

    def stacks(self) -> Iterator[tuple[str, Stack[Any]]]:
        """The stacks of layers by the names of their fields."""
        for name, value in vars(self).items():
            if isinstance(value, Stack):
                yield name, value


class LanguageModel(Model, ABC):
    """A model with an output layer of all tokens.

    Attributes:
        head: the output layer's table, which may be the token embeddings'.
        head_bias: what the output layer adds.
        head_copy: a trained copy of the output layer's table.
        added_to_logits: the name of a table that its class adds to the logits; empty for none.
        shifted_by: the type whose code makes a decoder's inputs of its labels.
        has_start: whether these begin with a token of the config.json, not with the last label.
    """

    head: Embedding
    head_bias: Parameter | None = None
    head_copy: Parameter | None = None
    language_head: ClassVar[tuple[str, ...]] = (
        *("head", "head_bias", "head_copy", "original_head_bias"),
    )
    added_to_logits: ClassVar[str] = ""
    shifted_by: ClassVar[str] = "bart"
    has_start: ClassVar[bool] = True

    def product(self, x: Tensor) -> Tensor:
        """The output layer's product."""
        with x.tape.in_layer("head", 0):
            return self.head.unembed(x, self.head_bias, self.head_copy)

    def loss_in_chunks(
        self, x: Tensor, labels: Tensor, added: Tensor | None = None, shifts: bool = False
    ) -> Tensor:
        """The loss without all logits, to which a table may be `added`."""
        t = x.tape
        if self.head_bias is not None:
            added = t.weight(self.head_bias)
        weight = t.weight(self.head_copy or self.head.weight)
        return chunked_loss(x, weight, added, labels, shifts)


class CausalModel(LanguageModel, ABC):
    """A model that predicts the next token: hidden states, output layer, loss.

    Attributes:
        before: names of its parts that a pipeline's first stage alone has.
        after: names of those that the last stage alone has.
        is_first: whether it has the former; of a whole model it does.
        is_last: whether it has the latter.
        names_inside: names of the class's own base model, and in that of token embeddings, layers
            and last norm, by which a pipeline's program cuts it.
        positions_inside: name of the module of learned positions, where the class adds them.
        once: names of what else only the first stage does, before the layers.
        last: names of what else only the last stage does, after the norm.
        has_multipliers: whether it multiplies embeddings and divides logits by numbers.
        scales_logits: whether it multiplies or divides logits by a number.
    """

    before: ClassVar[tuple[str, ...]] = ("tokens",)
    after: ClassVar[tuple[str, ...]] = ("norm", "head")
    is_first = is_last = True
    positions_inside: ClassVar[str] = ""
    once: ClassVar[tuple[str, ...]] = ()
    last: ClassVar[tuple[str, ...]] = ()
    has_multipliers: ClassVar[bool] = False
    scales_logits: ClassVar[bool] = False
    names_inside: ClassVar[tuple[str, str, str, str]] = ("model", "embed_tokens", "layers", "norm")

    @classmethod
    def reads_others(cls, stage: Architecture) -> str:
        """Words for what layers of a pipeline's stage read of other stages; empty for nothing."""
        return ""

    def walk(self) -> Counted:
        """The weights and tables of its own stage."""
        after = () if self.is_last else (*self.after, *self.language_head)
        without = (*(() if self.is_first else self.before), *after)
        for name, value in self.listed().items():
            if name not in without:
                yield from walk(value)

    def forward(self, ids: Tensor, labels: Tensor) -> Tensor:
        """The loss of one micro-batch."""
        if self.task_head is not None:
            return self.task_loss(ids, [self.hidden(ids)], labels)
        hidden = self.hidden(ids)
        t = hidden.tape
        if t.mode.chunked_loss:
            x = self.scored(hidden)
            del hidden  # dies here where it is scaled
            shifts = t.mode.context == 1  # else labels were shifted before a sequence was divided
            return self.loss_in_chunks(x, labels, shifts=shifts)
        logits = self.logits(hidden)
        if t.mode.context > 1:  # labels are shifted before a sequence is divided
            return masked_loss(logits, labels, wide=True)
        t.hand_out(logits)
        return causal_loss(logits, labels)

    def least(self, mode: Mode) -> tuple[Made, ...]:
        """The logits in 32 bits and the logarithms of their softmax."""
        if self.task_head is not None:
            return ()
        logits = Made((mode.batch, SEQUENCE, self.head.rows), FLOAT32)
        return () if mode.chunked_loss else (logits, logits)

    @abstractmethod
    def hidden(self, ids: Tensor) -> Tensor:
        """The last hidden states."""

    def begun(self, embed: Callable[[Tensor], Tensor], given: Tensor) -> Tensor:
        """A step before the first layer, which later stages of a pipeline leave out."""
        return embed(given) if self.is_first else given

    def ended(self, norm: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
        """The step after the last layer, which earlier stages leave out."""
        return norm(x) if self.is_last else x

    def scored(self, hidden: Tensor) -> Tensor:
        """Hidden states whose product with the output layer alone makes the logits."""
        return hidden

    def logits(self, hidden: Tensor) -> Tensor:
        """The output layer's product; what a type does to it belongs to the loss."""
        return self.product(hidden)


def has_part(architecture: Architecture, flag: str) -> bool:
    """True for parts that a flag gives, or that all models of the type have."""
    return flag == ALWAYS or architecture.has(flag)


def heads_fit(architecture: Architecture, narrow: bool) -> bool:
    """True if the efficient kernel supports heads of this width, in 16 bits if `narrow`.

    Source: torch (aten/src/ATen/native/transformers/cuda/sdp_utils.cpp)
    """
    return architecture.head_size % (NARROW_MULTIPLE if narrow else WIDE_MULTIPLE) == 0
