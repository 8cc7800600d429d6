"""The step of one stage of a pipeline: its micro-batches forward and backward, as scheduled.

Source: pipeline
"""

from typing import Any

from calculator.autograd import backward as engine
from calculator.autograd import operations as op
from calculator.autograd.dtypes import INT64, DType
from calculator.autograd.graph import Leaf, Tensor
from calculator.autograd.mode import SEQUENCE, Mode
from calculator.autograd.sizes import Shape, constant
from calculator.autograd.tape import Tape
from calculator.layers.loss import causal_loss
from calculator.models.decoder import HIDDEN, Decoder
from calculator.parts import Phase
from calculator.techniques.turns import Turns


def held_inputs(model: Decoder, mode: Mode, turns: Turns) -> list[tuple[Shape, DType]]:
    """Shapes and formats of what lives through the step: inputs, and buffers for what arrives."""
    count = turns.count
    words: tuple[Shape, DType] = (constant(count) * mode.batch, SEQUENCE), INT64
    stream: tuple[Shape, DType] = (mode.batch, SEQUENCE, HIDDEN), mode.weights
    arriving = (not model.is_first) + (not model.is_last)
    return [words] * (model.is_first + model.is_last) + [stream] * count * arriving


class Pipelined:
    """One stage at work: what its micro-batches in flight hold, and what it has sent."""

    def __init__(self, model: Decoder, turns: Turns, tape: Tape) -> None:
        self.model, self.turns, self.tape = model, turns, tape
        self.flying: dict[int, tuple[Tensor, Leaf | None, Tensor | None]] = {}
        self.losses: list[Tensor] = []
        self.output: Tensor | None = None
        self.sent: list[Tensor | None] = []  # gradients
        self.handed: list[Tensor] = []  # outputs

    def run(self) -> None:
        """All passes."""
        t = self.tape
        made = [t.input(*each) for each in held_inputs(self.model, t.mode, self.turns)]
        count = self.turns.count
        words = self.model.is_first + self.model.is_last
        arriving = 0 if self.model.is_first else count
        for is_forward, place in self.turns.passes:
            with t.setting(turn=self.turns.names[place]):
                if is_forward:
                    given = made[0] if self.model.is_first else made[words + place]
                    self.forward(place, given, made[words - 1])
                else:
                    beyond = words + arriving + place
                    self.backward(place, None if self.model.is_last else made[beyond])

    def forward(self, place: int, given: Tensor, labels: Tensor) -> None:
        """One micro-batch forward; its output stays, and the one before goes."""
        t, model = self.tape, self.model
        t.ledger.begin(Phase.FORWARD)
        leaf = None if model.is_first else t.leaf(given)
        out = model.hidden(self._own(given) if leaf is None else leaf)
        if model.is_last:
            out = model.logits(out)
        t.end_autocast()
        self.output = out
        loss = None
        if model.is_last:
            loss = causal_loss(out, self._own(labels))
            t.end_autocast()
            self.losses.append(loss)
        self.flying[place] = out, leaf, loss
        if not model.is_last and (self.turns.keeps_sent or place < self.turns.ahead - 1):
            self._keep(self.handed, out)

    def _keep(self, sent: list[Any], tensor: Tensor | None) -> None:
        if not self.turns.keeps_sent:
            sent.clear()
        sent.append(tensor)

    def _own(self, words: Tensor) -> Tensor:
        return op.part(words, self.tape.mode.batch, SEQUENCE)

    def backward(self, place: int, gradient: Tensor | None) -> None:
        """One micro-batch backward; the gradient of its input is sent."""
        t = self.tape
        out, leaf, loss = self.flying.pop(place)
        if gradient is None:
            assert loss is not None
            t.ledger.begin(Phase.LOSS)
            engine.backward([loss], [t.like(loss)])
        else:
            t.ledger.begin(Phase.BACKWARD)
            engine.backward([out], [gradient])
        if leaf is not None:
            t.forget(leaf)
            self._keep(self.sent, leaf.gradient)
            leaf.gradient = None
        left = self.turns.count - self.turns.ahead  # forward passes after the first backward one
        if not self.turns.keeps_sent and place >= left:
            self.handed.clear()
