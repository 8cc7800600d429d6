"""The passes of a pipeline's stage, recorded once, and a step of many micro-batches made of them.

Every micro-batch makes the same events as it passes a stage. Only the first that goes backward
differs: it makes the weights' gradients, to which all others are added. What is sent to other GPUs
outlives a pass, and dies when the schedule lets go of it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from calculator.autograd.graph import Tensor
from calculator.autograd.ledger import Storage
from calculator.autograd.sizes import elements_of
from calculator.autograd.tape import Tape
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

Chunks = tuple[Chunk, ...]


@dataclass(frozen=True, slots=True)
class Passes:
    """The passes of a micro-batch through a stage, in chunks of events.

    `forward` ends when the output exists, and `after` is the rest of the forward pass, with the
    loss of the last stage. `first` goes backward first, and `later` all others. `output` and
    `gradient` are the deaths of what is sent; sizes and runs are numbered for this stage alone.
    """

    sizes: tuple[Bytes, ...]
    forward: Chunks
    after: Chunks
    first: Chunks
    later: Chunks
    output: Chunk
    gradient: Chunk | None


class _CutStage(TapedStage):
    """A stage that notes after how many events its passes begin and end, and holds its outputs."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.cuts: list[int] = []
        self.outputs: list[Tensor] = []

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

    def _cut(self) -> None:
        self.cuts.append(len(self.tape.ledger.events))


def stages_of(step: Step) -> Iterator[Step]:
    """For each stage of a GPU a step of its own, of which its passes are recorded."""
    start = 0
    for model in step.stages:
        end = start + sum(1 for _ in model.stacks())
        yield Step((model,), step.runs[start:end], step.mode, RECORDED)
        start = end


def record_passes(stage: Step) -> Passes:
    """Let two micro-batches pass through a stage."""
    tape = Tape(stage.mode)
    (taped,) = taped_stages(stage.stages, RECORDED, tape, _CutStage)
    pipelined = Pipelined([taped], RECORDED)
    pipelined.run()
    layout = layout_of(tape.ledger, stage)
    order, chunks = chunks_of(tape.ledger, stage, layout, taped.cuts)
    begin, output, forward, first, _, _, forward_again, later = map(order.index, taped.cuts)
    return Passes(
        tuple(layout.sizes),
        tuple(chunks[begin:output]),
        tuple(chunks[output:forward]),
        tuple(chunks[forward:first]),
        tuple(chunks[forward_again:later]),
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
    """A stage whose passes were recorded, and are put one after the other."""

    def __init__(self, passes: Passes, is_last: bool, chunks: list[Chunk]) -> None:
        self.passes, self.is_last, self.chunks = passes, is_last, chunks
        self.flying: dict[Pass, _Sent] = {}
        self.has_gradients = False

    def begin(self, each: Pass) -> _Sent:
        """The output of a forward pass."""
        self.chunks += self.passes.forward
        out = self.flying[each] = _Sent(self.chunks, self.passes.output)
        return out

    def end(self, _each: Pass) -> None:
        """The rest of the forward pass."""
        self.chunks += self.passes.after

    def backward(self, each: Pass) -> _Sent | None:
        """The gradient of the input."""
        self.chunks += self.passes.later if self.has_gradients else self.passes.first
        self.has_gradients = True
        del self.flying[each._replace(is_forward=True)]
        death = self.passes.gradient
        return None if death is None else _Sent(self.chunks, death)


def in_turn(step: Step, passes: Sequence[Passes]) -> Trace:
    """The trace of a step whose stages were recorded; of gradients it says no order."""
    assert step.turns is not None
    inputs = [Bytes(elements_of(shape), dtype) for shape, dtype in inputs_of(step)]
    numbers = tuple(range(1, len(inputs) + 1))
    chunks = [chunk_of(Phase.FORWARD, numbers, (Part.ACTIVATIONS,) * len(inputs))]
    sizes, run = inputs, 0
    stages = []
    for stage, own in zip(stages_of(step), passes, strict=True):
        moved = _numbered(own, len(sizes), run)
        stages.append(_CopiedStage(moved, stage.stages[0].is_last, chunks))
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
            found = known[id(one.part_events)] = tuple(map(moved, one.events)), by_part, net
        events, by_part, net = found
        repeats = one.repeats and (one.repeats[0], one.repeats[1] + runs)
        return Chunk(one.phase, events, one.origins, by_part, net, repeats)

    def chunks(several: Chunks) -> Chunks:
        return tuple(map(chunk, several))

    return Passes(
        tuple(one if one.run is None else replace(one, run=one.run + runs) for one in passes.sizes),
        chunks(passes.forward),
        chunks(passes.after),
        chunks(passes.first),
        chunks(passes.later),
        chunk(passes.output),
        passes.gradient and chunk(passes.gradient),
    )
