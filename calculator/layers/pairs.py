"""Heads whose losses compare sequences: a reward model's, and an embedding model's.

The first half of a micro-batch are the sequences preferred, or asked; the second half stands in the
same order. A reward is a classifier's single number, and the loss is of the difference of two. An
embedding is the mean of a base model's last hidden states, of length 1; the loss is the
cross-entropy of its products with all of the other half.

Source: trl (trainer/reward_trainer.py, compute_loss), sentence_transformers (models/Pooling.py,
losses/MultipleNegativesRankingLoss.py)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from calculator.autograd import operations as op
from calculator.autograd.dtypes import FLOAT32, INT64
from calculator.autograd.graph import Made, Tensor
from calculator.autograd.mode import BATCH, SEQUENCE, Mode
from calculator.autograd.sizes import ONE, Shape, divided
from calculator.layers.basic import Linear
from calculator.layers.heads import (
    HIDDEN,
    EachToken,
    Heads,
    LastToken,
    MakeHead,
    Span,
    TaskHead,
)
from calculator.layers.layer import Layer, parameters_of
from calculator.parts import Phase
from calculator.task import Task

HALF: Final = divided(BATCH, 2)


@dataclass(eq=False)
class Idle(Layer):
    """A pooler that the base model runs and no loss reads: its weights get no gradient."""

    def __post_init__(self) -> None:
        self.dense = Linear(HIDDEN, HIDDEN, name="pooler.dense")
        for parameter in parameters_of(self.dense):
            parameter.trained, parameter.idle = False, True

    def __call__(self, x: Tensor, held: list[Tensor]) -> None:
        """Its product and tanh die with the output of the base model; autocast's copies stay.

        There are none of frozen weights.
        """
        t = x.tape
        if t.autocast is not None:
            idle = (item for item in parameters_of(self.dense) if item.idle)
            held += (t.empty(item.shape, t.autocast) for item in idle)
        rows = t.operation([x], x.shape, t.mode.arithmetic)
        op.tanh(rows)


@dataclass(eq=False)
class Embedded(TaskHead):
    """The mean of all tokens, and the contrastive loss of both halves."""

    idle: Idle | None = None

    @property
    def saved(self) -> tuple[str, ...]:
        """None: the model has no head of its own."""
        return ()

    def of_body(self) -> list[Layer]:
        """The base model's pooler."""
        return [] if self.idle is None else [self.idle]

    def targets(self, mode: Mode) -> Sequence[Shape]:
        """The mask of tokens that count."""
        return [(mode.batch, SEQUENCE)]

    def __call__(
        self, ids: Tensor, hidden: list[Tensor], labels: Tensor, held: list[Tensor]
    ) -> Tensor:
        """The loss of one micro-batch."""
        copies: list[Tensor] = []
        if self.idle is not None:
            self.idle(op.part(hidden[0], ids.shape[0], HIDDEN), copies)
        held.clear()  # the base model returns
        with ids.tape.in_layer("head", 0):
            mean, given = self.logits(ids, hidden[0], held)
        if ids.tape.mode.cached:
            return mean
        ids.tape.ledger.begin(Phase.LOSS)
        loss = contrasted(mean)
        del given, copies  # held until here
        return loss

    def logits(self, ids: Tensor, hidden: Tensor, held: list[Tensor]) -> tuple[Tensor, Tensor]:
        """(batch, hidden)."""
        t, batch = ids.tape, ids.shape[0]
        mask = t.empty(hidden.shape, hidden.dtype)  # held to the end
        summed = op.sum_of_tokens(op.multiply(hidden, mask))
        wide = FLOAT32 if t.autocast else hidden.dtype
        counts = t.empty((batch, HIDDEN), wide)
        clamped = t.empty((batch, HIDDEN), wide)
        del counts
        return t.operation([summed], summed.shape, summed.dtype, saves=[clamped]), hidden


def of_length_1(mean: Tensor) -> Tensor:
    """(rows, hidden) -> the same."""
    t, rows = mean.tape, mean.shape[0]
    norm = t.operation([mean], (rows, ONE), mean.dtype, saves=[mean], keeps=True)
    bounded = op.expand(op.clamp(norm, 1), *mean.shape)
    made = Made(mean.shape, mean.dtype)
    # the divisor's gradient is a negative times a quotient
    return t.operation([mean, bounded], *made[:2], saves=[mean, bounded], scratch=[made, made])


def contrasted(mean: Tensor) -> Tensor:
    """The cross-entropy of products between two halves of embeddings of length 1."""
    t = mean.tape
    first, second = op.halves(of_length_1(mean), HALF, HIDDEN)
    scores = op.scale(op.matmul(first, op.transpose(second, 0, 1)))
    places = t.empty((HALF,), INT64)
    return op.cross_entropy(scores, places)


def compared(rewards: Tensor) -> Tensor:
    """-log sigmoid of the differences between two halves of rewards, their mean."""
    t, half = rewards.tape, (HALF, *rewards.shape[1:])
    better, worse = op.halves(rewards, *half)
    made = Made(half, rewards.dtype)
    difference = t.operation([better, worse], *made[:2], rules=[None, made])
    logarithm = t.operation([difference], half, made.dtype, saves=[difference])
    return op.scale(t.operation([logarithm], (), made.dtype))


@dataclass(eq=False)
class Rewarded(TaskHead):
    """A classifier of sequences whose one number is a reward; the class returns before the loss."""

    head: TaskHead

    @property
    def saved(self) -> tuple[str, ...]:
        """None of its own, beside its head's."""
        return ()

    def of_body(self) -> list[Layer]:
        """Its head's."""
        return self.head.of_body()

    def targets(self, mode: Mode) -> Sequence[Shape]:
        """No labels."""
        return []

    def logits(self, ids: Tensor, hidden: Tensor, held: list[Tensor]) -> tuple[Tensor, Tensor]:
        """Its head's."""
        return self.head.logits(ids, hidden, held)

    def __call__(
        self, ids: Tensor, hidden: list[Tensor], labels: Tensor, held: list[Tensor]
    ) -> Tensor:
        """The loss of one micro-batch."""
        if not self.head.pools_inside:
            held.clear()
        with ids.tape.in_layer("head", 0):
            logits, given = self.logits(ids, hidden[0], held)
        ids.tape.ledger.begin(Phase.LOSS)
        beside: list[Tensor] = []
        rewards = self.head.picked(ids, logits, beside)
        hidden.clear()
        del logits, given, beside  # the class returns
        rewards.tape.hand_out(rewards)
        return compared(rewards)


def task_heads(
    classify: MakeHead,
    tokens: MakeHead = lambda _: EachToken(),
    questions: MakeHead | None = lambda _: Span(),
    idle: bool = False,
) -> Heads:
    """The heads of a type, which may answer no questions; its base may have an `idle` pooler."""
    return {
        Task.SEQUENCE: classify,
        Task.TOKENS: tokens,
        **({Task.QUESTIONS: questions} if questions else {}),
        Task.REWARD: lambda model: Rewarded(classify(model)),
        Task.EMBEDDING: lambda _: Embedded(Idle() if idle else None),
    }


# those of most causal models, whose classifier of tokens drops out a tenth unless told otherwise
HEADS: Final = task_heads(
    lambda _: LastToken(), tokens=lambda _: EachToken(dropped=True, wide=True)
)
