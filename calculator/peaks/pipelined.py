"""The step of one GPU of a pipeline: micro-batches forward and backward, as scheduled.

Source: pipeline
"""

from collections.abc import Sequence
from itertools import islice
from typing import Any, NamedTuple

from calculator.autograd import backward as engine
from calculator.autograd import operations as op
from calculator.autograd.dtypes import INT64, DType
from calculator.autograd.graph import Leaf, Tensor, Weight
from calculator.autograd.mode import SEQUENCE, Mode
from calculator.autograd.sizes import Shape, constant
from calculator.autograd.tape import Tape
from calculator.layers.loss import causal_loss
from calculator.models.decoder import HIDDEN
from calculator.models.model import CausalModel
from calculator.parts import Phase
from calculator.techniques.turns import Pass, Turns

Held = tuple[Shape, DType]


class Flying(NamedTuple):
    """A micro-batch between its passes through a stage: what went out, and what came in.

    `leaves` get gradients without being weights: the input, and embeddings that ask for theirs.
    """

    out: Tensor
    given: Leaf | None
    loss: Tensor | None
    leaves: list[Leaf]


def held_inputs(stages: Sequence[CausalModel], mode: Mode, turns: Turns) -> list[Held]:
    """Shapes and formats of what lives through the step: inputs, and buffers for what arrives."""
    words: Held = (constant(turns.count) * mode.batch, SEQUENCE), INT64
    stream: Held = (mode.batch, SEQUENCE, HIDDEN), mode.weights
    ends = stages[0].is_first + stages[-1].is_last
    return [words] * ends + [stream] * turns.count * (2 * len(stages) - ends)


class Pipelined:
    """One GPU at work: what its micro-batches in flight hold, and what it has sent."""

    def __init__(self, stages: Sequence[CausalModel], turns: Turns, tape: Tape) -> None:
        self.stages, self.turns, self.tape = stages, turns, tape
        self.flying: dict[Pass, Flying] = {}
        self.losses: list[Tensor] = []
        self.output: Tensor | None = None
        self.sent: list[Tensor | None] = []  # gradients
        self.handed: list[Tensor] = []  # outputs

    def run(self) -> None:
        """All passes."""
        t = self.tape
        made = iter([t.input(*each) for each in held_inputs(self.stages, t.mode, self.turns)])
        ids = next(made) if self.stages[0].is_first else None
        labels = next(made) if self.stages[-1].is_last else None
        buffers = {
            each: None if self._has_no_buffer(each) else next(made) for each in self.turns.passes
        }
        for each, buffer in buffers.items():
            with t.setting(turn=self.turns.name(each.micro_batch, each.stage)):
                if each.is_forward:
                    self.forward(each, buffer, ids, labels)
                else:
                    self.backward(each, buffer)

    def _has_no_buffer(self, each: Pass) -> bool:
        """True if nothing arrives for a pass from another GPU."""
        stage = self.stages[each.stage]
        return stage.is_first if each.is_forward else stage.is_last

    def forward(
        self, each: Pass, given: Tensor | None, ids: Tensor | None, labels: Tensor | None
    ) -> None:
        """One micro-batch forward; its output stays, and the one before goes."""
        t, model = self.tape, self.stages[each.stage]
        t.ledger.begin(Phase.FORWARD)
        known = len(t.leaves)
        leaf = None if given is None else t.leaf(given)
        out = model.hidden(self._own(ids) if leaf is None else leaf)
        if model.is_last:
            out = model.logits(out)
        t.end_autocast()
        if self.turns.keeps_output:
            self.output = out
        loss = None
        if model.is_last:
            loss = causal_loss(out, self._own(labels))
            t.end_autocast()
            self.losses.append(loss)
        made = islice(t.leaves.values(), known, None)
        leaves = [item for item in made if not isinstance(item, Weight)]
        self.flying[each] = Flying(out, leaf, loss, leaves)
        waits = self.turns.keeps_sent or each.micro_batch < self.turns.ahead - 1
        if waits and not model.is_last:
            self._keep(self.handed, out)

    def _keep(self, sent: list[Any], tensor: Tensor | None) -> None:
        if not self.turns.keeps_sent:
            sent.clear()
        sent.append(tensor)

    def _own(self, words: Tensor | None) -> Tensor:
        assert words is not None
        return op.part(words, self.tape.mode.batch, SEQUENCE)

    def backward(self, each: Pass, gradient: Tensor | None) -> None:
        """One micro-batch backward; the gradient of its input is sent."""
        t = self.tape
        out, leaf, loss, leaves = self.flying.pop(each._replace(is_forward=True))
        if gradient is None:
            assert loss is not None
            t.ledger.begin(Phase.LOSS)
            engine.backward([loss], [t.like(loss)])
        else:
            t.ledger.begin(Phase.BACKWARD)
            engine.backward([out], [gradient])
        for item in leaves:
            t.forget(item)
        if leaf is not None:
            self._keep(self.sent, leaf.gradient)
            leaf.gradient = None
        left = self.turns.count - self.turns.ahead  # forward passes after the first backward one
        if not self.turns.keeps_sent and each.micro_batch >= left:
            self.handed.clear()
