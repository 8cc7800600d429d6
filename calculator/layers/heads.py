"""Heads of tasks beside language modeling: layers and a loss on a model's last hidden states.

Source: transformers (modeling_layers.py, loss/loss_utils.py, models/bert/modeling_bert.py,
models/roberta/modeling_roberta.py, models/distilbert/modeling_distilbert.py,
models/deberta_v2/modeling_deberta_v2.py, models/modernbert/modeling_modernbert.py)
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from calculator.autograd import operations as op
from calculator.autograd.dtypes import BOOL, FLOAT32, INT32, INT64
from calculator.autograd.graph import Tensor
from calculator.autograd.mode import SEQUENCE, Mode
from calculator.autograd.sizes import ONE, Shape, constant, size
from calculator.layers.basic import LayerNorm, Linear
from calculator.layers.layer import Layer, Unary
from calculator.parts import Phase
from calculator.task import Task

HIDDEN: Final = size("hidden_size")
LABELS: Final = size("labels")
PROJECTED: Final = size("projected_size")
# names of products that peft adapts in no case
OUTPUTS: Final = ("head.whole", "head.classifier", "head.score", "head.outputs")


@dataclass(eq=False)
class TaskHead(Layer, ABC):
    """The part of a model that one task has, and its loss.

    Of the `saved` parts peft trains a whole copy beside adapters.
    """

    @property
    def saved(self) -> tuple[str, ...]:
        """The names of the modules that peft knows as a task's."""
        return ("classifier",)

    @property
    def is_adapted(self) -> bool:
        """True if peft's `all-linear` adapts a product of which it trains a copy, and stops."""
        return False

    pools_inside = False

    def of_body(self) -> list[Layer]:
        """Its layers that belong to the class's base model."""
        return []

    @abstractmethod
    def logits(self, ids: Tensor, hidden: Tensor, held: list[Tensor]) -> tuple[Tensor, Tensor]:
        """The product that the loss is made of, and its input, which the class holds to the end."""

    def picked(self, ids: Tensor, logits: Tensor, held: list[Tensor]) -> Tensor:
        """The logits that the class returns; what it makes beside them is `held`."""
        return logits

    def loss(self, ids: Tensor, logits: Tensor, labels: Tensor) -> Tensor:
        """The loss of logits that are handed out."""
        held: list[Tensor] = []
        logits = self.picked(ids, logits, held)
        logits.tape.hand_out(logits)
        return op.cross_entropy(logits, labels)

    def targets(self, mode: Mode) -> Sequence[Shape]:
        """Shapes of the labels, all of them whole numbers."""
        return [(mode.batch,)]

    def __call__(
        self, ids: Tensor, hidden: list[Tensor], labels: Tensor, held: list[Tensor]
    ) -> Tensor:
        """The loss of one micro-batch; a pooler inside the base model has its embeddings `held`."""
        if not self.pools_inside:
            held.clear()
        with ids.tape.in_layer("head", 0):
            logits, given = self.logits(ids, hidden[0], held)
        ids.tape.ledger.begin(Phase.LOSS)
        loss = self.loss(ids, logits, labels)
        del given  # held until here
        return loss


@dataclass(eq=False)
class Pooled(Unary):
    """A dense layer and an activation between two dropouts, of the first token."""

    name: str = "head.pooler"
    before: bool = False
    after: bool = True
    activation: str = "tanh"

    def __post_init__(self) -> None:
        self.dense = Linear(HIDDEN, HIDDEN, name=self.name)

    def __call__(self, x: Tensor) -> Tensor:
        """(batch, hidden) -> the same."""
        x = op.dropout(x) if self.before else x
        x = _ACTIVATIONS[self.activation](self.dense(x))
        return op.dropout(x) if self.after else x


@dataclass(eq=False)
class DroppedPooled(Pooled):
    """DistilBERT's, whose dropout has a probability of its own."""

    activation: str = "relu"
    after: bool = False

    def __call__(self, x: Tensor) -> Tensor:
        """(batch, hidden) -> the same."""
        return op.dropout(super().__call__(x))


_ACTIVATIONS: Final = {"tanh": op.tanh, "relu": op.relu, "gelu": op.gelu}


@dataclass(eq=False)
class Predicted(Unary):
    """ModernBERT's prediction head: dense, GELU and norm."""

    dense_biased: bool
    norm_biased: bool

    def __post_init__(self) -> None:
        self.dense = Linear(HIDDEN, HIDDEN, self.dense_biased, name="head.dense")
        self.norm = LayerNorm(HIDDEN, self.norm_biased)

    def __call__(self, x: Tensor) -> Tensor:
        """(..., hidden) -> the same."""
        return self.norm(op.gelu(self.dense(x)))


@dataclass(eq=False)
class FirstToken(TaskHead):
    """A class for each sequence, from its first token; the pooler may be part of the classifier.

    ModernBERT may take the `mean` of all tokens instead.
    """

    pooler: Unary
    whole: bool = False
    inside: bool = False  # whether the pooler is the base model's
    mean: bool = False

    @property
    def saved(self) -> tuple[str, ...]:
        """RoBERTa's class calls both the classifier."""
        return ("pooler", "classifier") if self.whole else ("classifier",)

    @property
    def is_adapted(self) -> bool:
        """DistilBERT's pooler, whose name ends as the classifier's."""
        return isinstance(self.pooler, DroppedPooled)

    def __post_init__(self) -> None:
        self.classifier = Linear(HIDDEN, LABELS, name="head.classifier")
        self.pools_inside = self.inside

    def of_body(self) -> list[Layer]:
        """The pooler, where it is the base model's."""
        return [self.pooler] if self.inside else []

    def logits(self, ids: Tensor, hidden: Tensor, held: list[Tensor]) -> tuple[Tensor, Tensor]:
        """(batch, labels)."""
        first = mean_of(hidden) if self.mean else op.part(hidden, ids.shape[0], HIDDEN)
        pooled = self.pooler(first)
        held.clear()  # the base model returns
        if self.mean:
            held.append(first)  # to the end
        del first  # the pooler's own name for it
        return self.classifier(pooled), pooled


@dataclass(eq=False)
class Averaged(TaskHead):
    """A class for each sequence, from the mean of all places, which are projected first."""

    def __post_init__(self) -> None:
        self.projector = Linear(HIDDEN, PROJECTED, name="projector")
        self.classifier = Linear(PROJECTED, LABELS, name="head.classifier")

    def logits(self, ids: Tensor, hidden: Tensor, held: list[Tensor]) -> tuple[Tensor, Tensor]:
        """(batch, labels)."""
        projected = self.projector(hidden)
        mean = op.mean_of_tokens(projected)
        held.append(projected)
        return self.classifier(mean), mean


def mean_of(hidden: Tensor) -> Tensor:
    """(batch, length, hidden) -> (batch, hidden): the mean of tokens that a mask leaves."""
    t, batch = hidden.tape, hidden.shape[0]
    mask = t.empty((batch, SEQUENCE), BOOL)
    summed = op.sum_of_tokens(t.operation([hidden], hidden.shape, hidden.dtype, saves=[mask]))
    counts = t.empty((batch, ONE), INT64)
    return t.operation([summed], summed.shape, summed.dtype, saves=[counts])


@dataclass(eq=False)
class LastToken(TaskHead):
    """A class for each sequence, from its last token; the logits of all tokens are made."""

    @property
    def saved(self) -> tuple[str, ...]:
        """The product."""
        return ("score",)

    def __post_init__(self) -> None:
        self.score = Linear(HIDDEN, LABELS, biased=False, name="head.score")

    def logits(self, ids: Tensor, hidden: Tensor, held: list[Tensor]) -> tuple[Tensor, Tensor]:
        """(batch, length, labels)."""
        return self.score(hidden), hidden

    def picked(self, ids: Tensor, logits: Tensor, held: list[Tensor]) -> Tensor:
        """Those of the last tokens that are no padding, which are looked for."""
        t, batch = logits.tape, ids.shape[0]
        kept = t.empty(ids.shape, BOOL)
        mask = t.empty(ids.shape, INT32)
        del kept
        places = t.empty((SEQUENCE,), INT32)
        product = t.empty(ids.shape, INT32)
        last = t.empty((batch,), INT64)
        del product
        rows = t.empty((batch,), INT64)
        pooled = t.operation([logits], (batch, LABELS), logits.dtype, saves=[rows, last])
        del rows
        held += (mask, places, last)
        return pooled


@dataclass(eq=False)
class EachToken(TaskHead):
    """A class for each token, from what a class does to all of them first.

    `dropped` is a dropout that the class has whatever its configuration says, and `wide` that it
    widens the logits.
    """

    first: Unary | None = None
    dropped: bool = False
    wide: bool = False
    is_adapted = True

    def __post_init__(self) -> None:
        self.classifier = Linear(HIDDEN, LABELS, name="head.classifier")

    def logits(self, ids: Tensor, hidden: Tensor, held: list[Tensor]) -> tuple[Tensor, Tensor]:
        """(batch, length, labels)."""
        x = hidden if self.first is None else self.first(hidden)
        if self.dropped:
            x = op.always_dropout(x)
        elif self.first is None:  # ModernBERT's classifiers drop nothing out by default
            x = op.dropout(x)
        return self.classifier(x), x

    def loss(self, ids: Tensor, logits: Tensor, labels: Tensor) -> Tensor:
        """Cross-entropy of all tokens."""
        logits.tape.hand_out(logits)
        return op.cross_entropy(op.cast(logits, FLOAT32) if self.wide else logits, labels)

    def targets(self, mode: Mode) -> Sequence[Shape]:
        """A label for each token."""
        return [(mode.batch, SEQUENCE)]


@dataclass(eq=False)
class Span(TaskHead):
    """The beginning and the end of an answer: two numbers for each token."""

    first: Unary | None = None
    dropped: bool = False
    ENDS: ClassVar = constant(2)

    @property
    def saved(self) -> tuple[str, ...]:
        """The product, where a class has it under the usual name."""
        return () if self.first else ("outputs",)

    @property
    def is_adapted(self) -> bool:
        """The product, where it is copied."""
        return bool(self.saved)

    def __post_init__(self) -> None:
        name = "classifier" if self.first else "head.outputs"  # the former is adapted
        self.outputs = Linear(HIDDEN, self.ENDS, name=name)

    def logits(self, ids: Tensor, hidden: Tensor, held: list[Tensor]) -> tuple[Tensor, Tensor]:
        """(batch, length, 2)."""
        x = hidden if self.first is None else self.first(hidden)
        x = op.dropout(x) if self.dropped else x
        return self.outputs(x), x

    def loss(self, ids: Tensor, logits: Tensor, labels: Tensor) -> Tensor:
        """The mean of two cross-entropies over the places of a sequence."""
        t = logits.tape
        views = op.split(logits, ONE, ONE)
        ends = [op.copy(op.view(view, *ids.shape)) for view in views]
        del views
        t.hand_out(*ends)
        clamped = [t.empty(labels.shape, INT64) for _ in ends]
        losses = [op.cross_entropy(end, place) for end, place in zip(ends, clamped, strict=True)]
        total = op.scale(op.add(*losses))
        del clamped, losses, ends  # held until here
        return total

    def targets(self, mode: Mode) -> Sequence[Shape]:
        """A beginning and an end."""
        return [(mode.batch,), (mode.batch,)]


# heads of a type for tasks beside its own, each made for a model
MakeHead = Callable[[Any], TaskHead]
Heads = Mapping[Task, MakeHead]
