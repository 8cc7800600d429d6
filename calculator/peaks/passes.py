"""The passes of a pipeline's stage, recorded once, and a step of many micro-batches made of them.

Every micro-batch makes the same events as it passes a stage. Only the first that goes backward
differs: it makes the weights' gradients, to which all others are added; and the last, where these
go to buckets then. What is sent to other GPUs outlives a pass, and dies when the schedule lets go.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any

from calculator.autograd.graph import Tensor
from calculator.autograd.ledger import Storage
from calculator.autograd.sizes import elements_of
from calculator.autograd.tape import Tape
from calculator.layers.layer import parameters_of
from calculator.parts import Part, Phase
from calculator.peaks.chunks import Bytes, Chunk, Trace, chunk_of, chunks_of, layout_of
from calculator.peaks.pipelined import Pipelined, TapedStage, taped_stages
from calculator.peaks.step import Step, inputs_of
from calculator.techniques.turns import Pass, Turns

# two micro-batches, one after the other; all that is sent stays
RECORDED = Turns(
    (Pass(True, 0), Pass(False, 0), Pass(True, 1), Pass(False, 1)),
    keeps_sent=True,
    keeps_output=False,
)

# where the last micro-batch's gradients go to buckets, one more; or that one alone
LEAVING = Turns(
    (*RECORDED.passes, Pass(True, 2), Pass(False, 2)), keeps_sent=True, keeps_output=False
)
ALONE = Turns(RECORDED.passes[:2], keeps_sent=True, keeps_output=False)

# of weights in shards also one after another forward pass, and one after a backward pass
SHARDED = Turns(
    (
        *(Pass(True, 0), Pass(True, 1), Pass(False, 0)),
        *(Pass(False, 1), Pass(True, 2), Pass(False, 2)),
    ),
    keeps_sent=True,
    keeps_output=False,
)

Chunks = tuple[Chunk, ...]


@dataclass(frozen=True, slots=True)
class Passes:
    """The passes of a micro-batch through a stage, in chunks of events.

    `forward` ends when the output exists, and `after` is the rest of the forward pass, with the
    loss of the last stage. `first` goes backward first, `last` at the end, and `later` all others.
    `output` and `gradient` are the deaths of what is sent; sizes and runs are numbered for this
    stage alone.
    Weights in shards are gathered where they are not yet: of `forward` there are the first one, one
    after another, and one after a backward pass; of `later` one after a forward pass, and one after
    another. At the end is the `reduction` of their gradients. A schedule may gather the weights
    `ahead` of the first pass, which then copies them out.
    """

    sizes: tuple[Bytes, ...]
    ahead: Chunks
    forward: tuple[Chunks, Chunks, Chunks]
    after: Chunks
    first: Chunks
    later: tuple[Chunks, Chunks]
    last: Chunks
    reduction: Chunks
    output: Chunk
    gradient: Chunk | None


class _CutStage(TapedStage):
    """A stage that notes after how many events its passes begin and end, and holds its outputs."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.cuts: list[int] = []
        self.outputs: list[Tensor] = []

    def gather(self, turn: str) -> None:
        """Gather the weights ahead of the first pass."""
        self._cut()
        super().gather(turn)

    def begin(self, each: Pass) -> Tensor:
        """The output of a forward pass."""
        self._cut()
        out = super().begin(each)
        self.outputs.append(out)
        self._cut()
        return out

    def end(self, each: Pass) -> None:
        """The rest of the forward pass."""
        super().end(each)
        self._cut()

    def backward(self, each: Pass) -> Tensor | None:
        """The gradient of the input."""
        gradient = super().backward(each)
        self._cut()
        return gradient

    def reduce(self) -> None:
        """The end of the step."""
        super().reduce()
        self._cut()

    def _cut(self) -> None:
        self.cuts.append(len(self.tape.ledger.events))


def stages_of(step: Step) -> Iterator[Step]:
    """For each stage of a GPU a step of its own, of which its passes are recorded."""
    start = 0
    for model in step.stages:
        end = start + sum(1 for _ in model.stacks())
        assert step.turns is not None
        turns = RECORDED
        if step.mode.shards is not None:
            turns = replace(SHARDED, gathers=step.turns.gathers)
        if step.mode.gradients_leave:
            turns = ALONE if step.turns.count == 1 else LEAVING
        yield Step((model,), step.runs[start:end], step.mode, turns)
        start = end


def record_passes(stage: Step) -> Passes:
    """Let two micro-batches pass through a stage, or three, or the only one, as its turns say."""
    turns = stage.turns
    assert turns is not None
    tape = Tape(stage.mode)
    (taped,) = taped_stages(stage.stages, turns, tape, _CutStage)
    for (_, runs), (_, stack) in zip(stage.runs, stage.stages[0].stacks(), strict=True):
        made = (run.made_before for run in runs for _ in run.slots)
        for block in compress(stack.blocks, made):
            for item in parameters_of(block):
                tape.weight(item).has_gradient = item.trained
    pipelined = Pipelined([taped], turns)
    pipelined.run()
    layout = layout_of(tape.ledger, stage)
    order, chunks = chunks_of(tape.ledger, stage, layout, taped.cuts)
    cuts = iter(map(order.index, taped.cuts))
    ahead: Chunks = ()
    if turns.gathers:
        ahead = tuple(chunks[next(cuts) : order.index(taped.cuts[1])])
    forward, after, backward = [], [], []
    for each in turns.passes:
        if each.is_forward:
            begin, output, end = (next(cuts) for _ in range(3))
            forward.append(tuple(chunks[begin:output]))
            after.append(tuple(chunks[output:end]))
        else:
            start, end = end, next(cuts)
            backward.append(tuple(chunks[start:end]))
    first, *later = backward if turns is not ALONE else backward * 2
    return Passes(
        tuple(layout.sizes),
        ahead,
        (forward[0], forward[turns.count > 1], forward[-1]),
        after[0],
        first,
        (later[-1], later[0]) if turns.passes is SHARDED.passes else (later[0], later[0]),
        later[-1],
        tuple(chunks[end : next(cuts)]),
        _death(taped.outputs[0].storage),
        _death(pipelined.sent[0].storage) if pipelined.sent else None,
    )


def _death(storage: Storage) -> Chunk:
    return chunk_of(Phase.BACKWARD, (-storage.size_id,), (storage.part,))


class _Sent:
    """A tensor that is sent; when nobody holds it any more, it dies in the phase that runs."""

    __slots__ = ("chunks", "death")

    def __init__(self, chunks: list[Chunk], death: Chunk) -> None:
        self.chunks, self.death = chunks, death

    def __del__(self) -> None:
        self.chunks.append(replace(self.death, phase=self.chunks[-1].phase))


class _CopiedStage:
    """A stage whose passes were recorded, and are put one after the other.

    `leaving` is the micro-batch whose gradients go to buckets, if one's do.
    """

    def __init__(
        self, passes: Passes, is_last: bool, chunks: list[Chunk], leaving: int | None
    ) -> None:
        self.passes, self.is_last, self.chunks, self.leaving = passes, is_last, chunks, leaving
        self.flying: dict[Pass, _Sent] = {}
        self.has_gradients = False
        self.before: Pass | None = None

    def gather(self, _turn: str) -> None:
        """The weights ahead of the first pass."""
        self.chunks += self.passes.ahead

    def let_go(self) -> None:
        """After the last pass nothing is left."""

    def begin(self, each: Pass) -> _Sent:
        """The output of a forward pass."""
        first, again, back = self.passes.forward
        turned = again if self.before is not None and self.before.is_forward else back
        self.chunks += first if self.before is None else turned
        self.before = each
        out = self.flying[each] = _Sent(self.chunks, self.passes.output)
        return out

    def end(self, _each: Pass) -> None:
        """The rest of the forward pass."""
        self.chunks += self.passes.after

    def backward(self, each: Pass) -> _Sent | None:
        """The gradient of the input."""
        assert self.before is not None
        turned, again = self.passes.later
        later = turned if self.before.is_forward else again
        if each.micro_batch == self.leaving:
            later = self.passes.last
        self.chunks += later if self.has_gradients else self.passes.first
        self.has_gradients = True
        self.before = each
        del self.flying[each._replace(is_forward=True)]
        death = self.passes.gradient
        return None if death is None else _Sent(self.chunks, death)

    def reduce(self) -> None:
        """The end of the step."""
        self.chunks += self.passes.reduction


def in_turn(step: Step, passes: Sequence[Passes]) -> Trace:
    """The trace of a step whose stages were recorded; of gradients it says no order."""
    assert step.turns is not None
    inputs = [Bytes(elements_of(shape), dtype) for shape, dtype in inputs_of(step)]
    numbers = tuple(range(1, len(inputs) + 1))
    chunks = [chunk_of(Phase.FORWARD, numbers, (Part.ACTIVATIONS,) * len(inputs))]
    sizes, run = inputs, 0
    leaving = step.turns.count - 1 if step.mode.gradients_leave else None
    stages = []
    for stage, own in zip(stages_of(step), passes, strict=True):
        moved = _numbered(own, len(sizes), run)
        stages.append(_CopiedStage(moved, stage.stages[0].is_last, chunks, leaving))
        sizes += moved.sizes
        run += sum(len(runs) for _, runs in stage.runs)
    Pipelined(stages, step.turns).run()
    return Trace(tuple(sizes), tuple(chunks))


def _numbered(passes: Passes, sizes: int, runs: int) -> Passes:
    """The same, with numbers that follow on those of so many sizes and runs."""
    known: dict[int, tuple[Any, ...]] = {}  # of chunks that share their events

    def moved(number: int) -> int:
        return number + sizes if number > 0 else number - sizes

    def chunk(one: Chunk) -> Chunk:
        found = known.get(id(one.part_events))
        if found is None:
            by_part = tuple((places, tuple(map(moved, own))) for places, own in one.part_events)
            net = tuple((part, moved(size), count) for part, size, count in one.net)
            births = tuple((moved(size), often) for size, often in one.births)
            found = known[id(one.part_events)] = tuple(map(moved, one.events)), by_part, net, births
        events, by_part, net, births = found
        repeats = one.repeats and (one.repeats[0], one.repeats[1] + runs)
        more = births, one.products, one.notes
        return Chunk(one.phase, events, one.origins, by_part, net, repeats, *more)

    def chunks(several: Chunks) -> Chunks:
        return tuple(map(chunk, several))

    begin, again, back = map(chunks, passes.forward)
    turned, later = map(chunks, passes.later)
    return Passes(
        tuple(one if one.run is None else replace(one, run=one.run + runs) for one in passes.sizes),
        chunks(passes.ahead),
        (begin, again, back),
        chunks(passes.after),
        chunks(passes.first),
        (turned, later),
        chunks(passes.last),
        chunks(passes.reduction),
        chunk(passes.output),
        passes.gradient and chunk(passes.gradient),
    )
