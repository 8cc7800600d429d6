"""The step of one GPU of a pipeline: micro-batches forward and backward, as scheduled.

Source: pipeline
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Generic, NamedTuple, Protocol, TypeVar

from calculator.autograd import backward as engine
from calculator.autograd import operations as op
from calculator.autograd.dtypes import INT64, DType
from calculator.autograd.graph import Leaf, Tensor, Weight
from calculator.autograd.mode import SEQUENCE, Mode
from calculator.autograd.sizes import ONE, Shape, Size, constant
from calculator.autograd.staged import StageSharder
from calculator.autograd.tape import Tape
from calculator.layers.loss import causal_loss, masked_loss
from calculator.models.decoder import HIDDEN
from calculator.models.model import CausalModel
from calculator.parts import Phase
from calculator.techniques.turns import Pass, Turns

Held = tuple[Shape, DType]
# a tensor that is sent, or what stands for it: it dies with the last that holds it
Sent = TypeVar("Sent")
Made = TypeVar("Made", covariant=True)


def held_inputs(stages: Sequence[CausalModel], mode: Mode, turns: Turns) -> list[Held]:
    """Shapes and formats of what lives through the step: inputs, and buffers for what arrives."""
    words = constant(turns.count) * mode.batch
    stream: Held = (mode.batch, SEQUENCE, HIDDEN), mode.weights
    ends = stages[0].is_first + stages[-1].is_last
    made = [*given_words(mode, [words] * ends)]
    return made[:ends] + [stream] * turns.count * (2 * len(stages) - ends) + made[ends:]


def given_words(mode: Mode, rows: Sequence[Size]) -> Iterator[Held]:
    """Token ids or labels of so many `rows` each.

    Where GPUs divide sequences, they divide a mask and the places too. Each GPU's part of them lies
    in the bytes of the whole, and `context_parallel` also holds the parts as it cut them, and a
    copy of the last.

    Source: torch (distributed/tensor/experimental/_context_parallel/_attention.py)
    """
    if mode.context == 1:
        yield from (((each, SEQUENCE), INT64) for each in rows)
        return
    rows = [*rows, mode.batch, ONE]
    yield from (((each, SEQUENCE * mode.context), INT64) for each in rows)
    yield from (((each, SEQUENCE), INT64) for each in (*rows, ONE))


class Passing(Protocol[Made]):
    """A stage that micro-batches pass through; it holds what they need on their way back."""

    @property
    def is_last(self) -> bool:
        """True if it has the loss, and sends no outputs."""

    def gather(self, turn: str) -> None:
        """Gather the weights ahead of the next pass, where they are in shards."""

    def let_go(self) -> None:
        """Give up the weights gathered."""

    def begin(self, each: Pass) -> Made:
        """The output of a forward pass."""

    def end(self, each: Pass) -> None:
        """The rest of the forward pass: the last stage's loss."""

    def backward(self, each: Pass) -> Made | None:
        """The gradient of what the stage was given, if it was."""

    def reduce(self) -> None:
        """Reduce all micro-batches' gradients after the last, where weights are in shards."""


class Pipelined(Generic[Sent]):
    """One GPU at work, and what it holds of all that it has sent."""

    def __init__(self, stages: Sequence[Passing[Sent]], turns: Turns) -> None:
        self.stages, self.turns = stages, turns
        self.output: Sent | None = None
        self.sent: list[Sent] = []  # gradients
        self.handed: list[Sent] = []  # outputs

    def run(self) -> None:
        """All passes."""
        times: Counter[int] = Counter()
        for each, gone, ahead in self.turns.moves():
            for stage in gone:
                self.stages[stage].let_go()
            for stage in ahead:
                self.stages[stage].gather(self.turns.name(times[stage], stage))
                times[stage] += 1
            if each.is_forward:
                self.forward(each)
            else:
                self.backward(each)
                if each.micro_batch == self.turns.count - 1:
                    self.stages[each.stage].reduce()

    def forward(self, each: Pass) -> None:
        """One micro-batch forward; its output stays, and the one before goes."""
        stage = self.stages[each.stage]
        out = stage.begin(each)
        if self.turns.keeps_output:
            self.output = out
        stage.end(each)
        waits = self.turns.keeps_sent or each.micro_batch < self.turns.ahead - 1
        if waits and not stage.is_last:
            self._keep(self.handed, out)

    def backward(self, each: Pass) -> None:
        """One micro-batch backward; the gradient of its input is sent."""
        gradient = self.stages[each.stage].backward(each)
        if gradient is not None:
            self._keep(self.sent, gradient)
        left = self.turns.count - self.turns.ahead  # forward passes after the first backward one
        if not self.turns.keeps_sent and each.micro_batch >= left:
            self.handed.clear()

    def _keep(self, sent: list[Sent], tensor: Sent) -> None:
        if not self.turns.keeps_sent:
            sent.clear()
        sent.append(tensor)


Taped = TypeVar("Taped", bound="TapedStage")


class Flying(NamedTuple):
    """A micro-batch between its passes through a stage: what went out, and what came in.

    `leaves` get gradients without being weights: the input, and embeddings that ask for theirs.
    """

    out: Tensor
    given: Leaf | None
    leaves: list[Leaf]


class TapedStage:
    """A stage that records its passes; `buffers` has what arrives for each from another GPU."""

    def __init__(
        self,
        model: CausalModel,
        turns: Turns,
        tape: Tape,
        words: Sequence[Tensor | None],
        buffers: dict[Pass, Tensor],
    ) -> None:
        self.model, self.turns, self.tape, self.buffers = model, turns, tape, buffers
        self.ids, self.labels = words
        self.flying: dict[Pass, Flying] = {}
        self.losses: dict[Pass, Tensor] = {}
        shards = tape.mode.shards
        self.sharder = None
        if shards is not None:
            stacks = {
                stack.name: [stack.units_at(place) for place in range(len(stack.blocks))]
                for _, stack in model.stacks()
            }
            self.sharder = StageSharder(tape, shards, model.outside(), stacks)

    @property
    def is_last(self) -> bool:
        """True if it has the loss."""
        return self.model.is_last

    def gather(self, turn: str) -> None:
        """Gather the weights ahead of the next pass."""
        if self.sharder is not None:
            self.sharder.gather(turn)

    def let_go(self) -> None:
        """Give up the weights gathered."""
        if self.sharder is not None:
            self.sharder.let_go()

    def begin(self, each: Pass) -> Tensor:
        """The output of a forward pass."""
        t, model, given = self.tape, self.model, self.buffers.get(each)
        if self.sharder is not None:
            self.sharder.receive()
        t.ledger.begin(Phase.FORWARD)
        with t.setting(turn=self.turns.name(each.micro_batch, each.stage), sharder=self.sharder):
            known = len(t.leaves)
            if self.sharder is not None:
                self.sharder.begin_forward()
            leaf = None if given is None else t.leaf(given)
            hidden = out = model.hidden(self._own(self.ids) if leaf is None else leaf)
            if model.is_last:
                out = model.logits(hidden)
                t.ledger.begin(Phase.LOSS)  # while hidden states and autocast's copies are there
            t.end_autocast()
            del hidden
            if self.sharder is not None:
                self.sharder.end_forward(out)
        made = islice(t.leaves.values(), known, None)
        leaves = [item for item in made if not isinstance(item, Weight)]
        self.flying[each] = Flying(out, leaf, leaves)
        return out

    def end(self, each: Pass) -> None:
        """The last stage's loss."""
        if self.model.is_last:
            t = self.tape
            with t.setting(turn=self.turns.name(each.micro_batch, each.stage)):
                out, labels = self.flying[each].out, self._own(self.labels)
                divided = t.mode.context > 1  # labels are shifted before a sequence is divided
                self.losses[each] = (
                    masked_loss(out, labels, wide=True) if divided else causal_loss(out, labels)
                )
                t.end_autocast()

    def backward(self, each: Pass) -> Tensor | None:
        """The gradient of the input; losses stay."""
        t, forward = self.tape, each._replace(is_forward=True)
        out, leaf, leaves = self.flying.pop(forward)
        if self.sharder is not None:
            self.sharder.receive()
        turn, last = self.turns.name(each.micro_batch, each.stage), self.turns.count - 1
        with t.setting(turn=turn, reduces=each.micro_batch == last):
            if self.model.is_last:
                loss = self.losses[forward]
                t.ledger.begin(Phase.LOSS)
                engine.backward([loss], [t.like(loss)])
            else:
                t.ledger.begin(Phase.BACKWARD)
                engine.backward([out], [self.buffers[each]])
        if self.sharder is not None:
            self.sharder.end_backward()
        for item in leaves:
            t.forget(item)
        if leaf is None:
            return None
        gradient, leaf.gradient = leaf.gradient, None
        return gradient

    def reduce(self) -> None:
        """Make shards of the gradients' sums."""
        if self.sharder is not None:
            self.sharder.reduce()

    def _own(self, words: Tensor | None) -> Tensor:
        assert words is not None
        return op.part(words, self.tape.mode.batch, SEQUENCE)


def taped_stages(
    models: Sequence[CausalModel], turns: Turns, tape: Tape, kind: type[Taped]
) -> list[Taped]:
    """The stages of one GPU on a tape, with their inputs and buffers."""
    made = iter([tape.input(*each) for each in held_inputs(models, tape.mode, turns)])
    ids = next(made) if models[0].is_first else None
    labels = next(made) if models[-1].is_last else None
    buffers: list[dict[Pass, Tensor]] = [{} for _ in models]
    for each in turns.passes:
        model = models[each.stage]
        if not (model.is_first if each.is_forward else model.is_last):
            buffers[each.stage][each] = next(made)
    return [
        kind(model, turns, tape, (ids, labels), own)
        for model, own in zip(models, buffers, strict=True)
    ]
