"""One step on the tape, in two halves: a forward pass alone shows most steps that do not fit."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from calculator.autograd import backward as engine
from calculator.autograd import operations as op
from calculator.autograd.dtypes import FLOAT32, DType
from calculator.autograd.graph import Tensor
from calculator.autograd.ledger import Ledger
from calculator.autograd.mode import SEQUENCE, Mode
from calculator.autograd.sharding import Unit
from calculator.autograd.sizes import Shape
from calculator.autograd.tape import Tape
from calculator.models.model import CausalModel, Model
from calculator.parts import Phase
from calculator.peaks.cached import SEQUENCES, cached_loss, passes_of
from calculator.peaks.pipelined import (
    Pipelined,
    TapedStage,
    given_words,
    held_inputs,
    taped_stages,
)
from calculator.peaks.runs import Run
from calculator.techniques.turns import Turns


@dataclass(eq=False, frozen=True, slots=True)
class Step:
    """A recorded step: a model whose stacks hold the taped layers, their runs, and a mode.

    `models` are several only of a GPU that has several stages of a pipeline. `runs` are those of
    each stack of each model, by its name, and `turns` the passes of a pipeline.
    """

    models: tuple[Model, ...]
    runs: tuple[tuple[str, tuple[Run, ...]], ...]
    mode: Mode
    turns: Turns | None = None

    @property
    def model(self) -> Model:
        """The only one."""
        (model,) = self.models
        return model

    @property
    def stages(self) -> list[CausalModel]:
        """Those of a pipeline."""
        return [model for model in self.models if isinstance(model, CausalModel)]

    def stacks(self) -> Iterator[tuple[str, int, tuple[Run, ...]]]:
        """Every stack by the name that its layers are marked with, and its runs from a number on.

        In a pipeline it stands there once for each micro-batch, with the same numbers.
        """
        of_models = (stage for stage, model in enumerate(self.models) for _ in model.stacks())
        number = 0
        for stage, (name, runs) in zip(of_models, self.runs, strict=True):
            for turn in self.turns.names(stage) if self.turns else passes_of(self.mode):
                yield name + turn, number, runs
            number += len(runs)

    @property
    def structure(self) -> tuple[Any, ...]:
        """The models' structures; steps with equal ones run the same operations."""
        return tuple(model.structure for model in self.models)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A step to record, how many units of layers each run leaves out, and the sizes' numbers."""

    step: Step
    left_out: tuple[int, ...]
    numbers: Mapping[str, int]


@dataclass(slots=True)
class Begun:
    """A step whose forward pass is on the tape; the loss and FSDP's root live until it is done."""

    step: Step
    tape: Tape
    loss: Tensor | None
    root: Unit | None


def run_step(step: Step, tape: Tape | None = None) -> Tape:
    """Forward, loss and backward of one micro-batch, on a tape of their own or on a given one."""
    if not step.turns:
        return finish(begin(step, tape))
    t = tape or Tape(step.mode)
    Pipelined(taped_stages(step.stages, step.turns, t, TapedStage), step.turns).run()
    return t


def inputs_of(step: Step) -> list[tuple[Shape, DType]]:
    """Shapes and formats of what lives through a step without being the model's."""
    if step.turns:
        return held_inputs(step.stages, step.mode, step.turns)
    formats: Sequence[DType] = step.model.formats(step.mode)
    if step.mode.narrows_shards:  # FSDP casts what the model reads
        formats = [FLOAT32 if each is step.mode.weights else each for each in formats]
    if step.mode.cached:
        return [((SEQUENCES, SEQUENCE), each) for each in formats]
    if step.mode.context > 1:
        return [*given_words(step.mode, [step.mode.batch] * 2)]
    return [*zip(step.model.inputs(step.mode), formats, strict=True)]


def begin(step: Step, tape: Tape | None = None) -> Begun:
    """Forward and loss, of a step without turns."""
    t = tape or Tape(step.mode)
    t.ledger.begin(Phase.FORWARD)
    ids, *rest = _given(t, step)
    labels = rest[0] if rest else ids  # a reward model has none
    root = None if t.sharder is None else t.sharder.begin(step.model.outside())
    previous = t.previous_outputs()
    if step.mode.cached:
        end = partial(_mark_frozen, step, t)
        loss = cached_loss(t, partial(step.model.forward, ids, labels), end)
    else:
        loss = step.model.forward(ids, labels)
    t.hand_out(loss)
    del previous  # the loop's name for them stands for the new ones now
    return Begun(step, t, loss, root)


def _given(t: Tape, step: Step) -> list[Tensor]:
    """The inputs that the model reads: of divided sequences, a part of each."""
    given = [t.input(shape, dtype) for shape, dtype in inputs_of(step)]
    pairs = zip(given, step.model.inputs(step.mode), strict=False)
    parts = [Tensor(t, one.storage, shape, one.dtype) for one, shape in pairs]
    return [
        op.cast(one, dtype) for one, dtype in zip(parts, step.model.formats(step.mode), strict=True)
    ]


def finish(begun: Begun) -> Tape:
    """The backward pass of a step that has begun, once."""
    t, loss, root = begun.tape, begun.loss, begun.root
    begun.loss = begun.root = None
    assert loss is not None, "it was finished before"
    t.end_autocast()
    scaled = op.multiply(loss, t.constant((), FLOAT32)) if begun.step.mode.scales_loss else loss
    gradient = t.like(scaled)
    if t.sharder is not None and root is not None:
        t.sharder.turn(root)
    engine.backward([scaled], [gradient])
    if t.sharder is not None and root is not None:
        t.sharder.end(root)
    _mark_frozen(begun.step, t, "")
    t.ledger.let_go()
    return t


def _mark_frozen(step: Step, t: Tape, turn: str) -> None:
    """Let the backward pass of layers that none goes through begin, and end, where it ends."""
    passed = {mark for _, mark in t.ledger.marks}
    for _, stack in [*step.model.stacks()][::-1]:
        for position in reversed(range(stack.layers)):
            if (stack.name + turn, position, True) not in passed:
                t.ledger.mark(stack.name + turn, position, backward=True)


@dataclass(frozen=True, slots=True)
class Window:
    """The unit of a run that stands for its left-out units: layers of a stack, from and to.

    `run` is the run's number among those of all models' stacks.
    """

    stack: str
    first: int
    end: int
    run: int


def windows(step: Step) -> Iterator[Window]:
    """Those of all full runs."""
    for stack, first_run, runs in step.stacks():
        position = 0
        for number, run in enumerate(runs, first_run):
            if run.is_full:
                first = position + run.repeated * run.unit
                yield Window(stack, first, first + run.unit, number)
            position += len(run.slots)


def living(ledger: Ledger, step: Step) -> Mapping[tuple[int, int | None], int]:
    """The storages that live after the forward pass, by size and by the run that repeats them."""
    marks = {mark: at for at, mark in reversed(ledger.marks)}
    spans = [
        (marks[one.stack, one.first, False], marks[one.stack, one.end, False], one.run)
        for one in windows(step)
    ]
    alive: dict[int, int] = {}
    for signed, birth in zip(ledger.events, ledger.births, strict=True):
        if signed > 0:
            alive[birth] = signed
        else:
            del alive[birth]
    return Counter(
        (size, next((run for start, end, run in spans if start <= birth < end), None))
        for birth, size in alive.items()
    )
