"""Steps that were recorded, each once for all plans that run the same operations."""

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final

from calculator.allocator import round_block
from calculator.autograd.dtypes import DType
from calculator.autograd.mode import check_carried_out, watched
from calculator.autograd.sizes import Numbers, Size, number_of
from calculator.autograd.tape import Tape
from calculator.peaks.chunks import Chunk, Trace, chunked
from calculator.peaks.passes import Passes, in_turn, record_passes, stages_of
from calculator.peaks.step import Begun, Step, begin, finish, living, run_step

# the last tapes, which the allocator's simulation reads after the peak is known
MOST_TAPES: Final = 4
_tapes: dict[Step, Tape] = {}


@lru_cache(maxsize=256)
def record(step: Step) -> Trace:
    """Run a step once; sizes stay names.

    Steps of one model have the same trace if their modes differ only in what nothing asked for.
    """
    letting_go = step.mode.shards is not None and step.turns is not None and step.turns.lets_go
    if step.turns and not letting_go:
        return in_turn(step, [_passes(stage) for stage in stages_of(step)])
    trace: Trace | None = _recorded(step)
    if trace is None:
        with no_collection():
            if step.turns:
                mode, asked = watched(step.mode)
                tape = run_step(replace(step, mode=mode))
            else:
                begun, asked = _begun.pop(step) if step in _begun else _begin(step)
                tape = finish(begun)
            trace = chunked(tape.ledger, step)
        if len(_tapes) == MOST_TAPES:
            _tapes.pop(next(iter(_tapes))).drop()
        _tapes[step] = tape
        _note_carried_out(step, asked, trace)
    return trace


def tape_of(step: Step) -> Tape:
    """The tape of a step; that of one recorded just now is handed out once."""
    return _tapes.pop(step, None) or run_step(step)


def backward_of_stages(
    step: Step, left_out: tuple[int, ...]
) -> Iterator[tuple[tuple[Chunk, ...], tuple[int, ...]]]:
    """Chunks with the first backward pass of each stage of a step, and what its runs leave out.

    Without a pipeline the step is one stage.
    """
    if not step.turns:
        yield record(step).chunks, left_out
        return
    runs = 0
    for stage in stages_of(step):
        own = sum(len(each) for _, each in stage.runs)
        yield _passes(stage).first, left_out[runs : runs + own]
        runs += own


def _passes(stage: Step) -> Passes:
    """The passes of a stage, recorded once for all schedules and micro-batches."""
    passes: Passes | None = _recorded(stage)
    if passes is None:
        mode, asked = watched(stage.mode)
        with no_collection():
            passes = record_passes(replace(stage, mode=mode))
        _note_carried_out(stage, asked, passes)
    return passes


def bytes_after_forward(step: Step, numbers: Numbers, left_out: Sequence[int]) -> int:
    """Bytes that live between the two passes, of a step that is not recorded; else 0.

    The peak is no lower, so a search records only the forward pass of most that do not fit.
    """
    after = _after_forward(step)
    return sum(
        count
        * round_block(number_of(size, numbers) * dtype.width)
        * (1 if run is None else 1 + left_out[run])
        for size, dtype, run, count in after
    )


# the step of which only the forward pass is on a tape, which the backward pass may follow
_begun: dict[Step, tuple[Begun, set[str]]] = {}


@contextmanager
def tentatively() -> Iterator[None]:
    """A step that is begun inside is finished inside too, or dropped.

    Its tape is gone before Python searches for cycles again, and would look at all of it.
    """
    with no_collection():
        try:
            yield
        finally:
            _begun.clear()


def _begin(step: Step) -> tuple[Begun, set[str]]:
    """The forward pass of a step, and the settings that have been asked for, which grow."""
    mode, asked = watched(step.mode)
    return begin(replace(step, mode=mode)), asked


@lru_cache(maxsize=256)
def _after_forward(step: Step) -> tuple[tuple[Size, DType, int | None, int], ...]:
    """The tensors that live after the forward pass: size, format, the run if one, how many."""
    if _recorded(step) is not None:
        return ()
    begun = _begun[step] = _begin(step)
    ledger = begun[0].tape.ledger
    shapes = list(ledger.sizes)
    return tuple(
        (*shapes[number - 1], run, count) for (number, run), count in living(ledger, step).items()
    )


def _recorded(step: Step) -> Any:
    """The trace or passes of a step whose mode differs in nothing that was asked for, or None."""
    for asked, found in _known(step.structure, step.runs, step.turns):
        if all(getattr(step.mode, name) == value for name, value in asked.items()):
            check_carried_out(step.mode, asked)
            return found
    return None


def _note_carried_out(step: Step, asked: set[str], found: Trace | Passes) -> None:
    """Note a record, of a step that used its settings; stages may have no input to move."""
    stacks = [stack for stage in step.stages for _, stack in stage.stacks()]
    if step.turns and all(all(stack.keeping or [False]) for stack in stacks):
        asked.add("moves_inputs")
    settings = {name: getattr(step.mode, name) for name in asked}
    _known(step.structure, step.runs, step.turns).append((settings, found))
    check_carried_out(step.mode, asked)


@lru_cache(maxsize=256)
def _known(_structure: Any, _runs: Any, _turns: Any) -> list[tuple[Mapping[str, object], Any]]:
    """The traces of a model's steps so far, or a stage's passes, and what was asked of the mode."""
    return []


@contextmanager
def no_collection() -> Iterator[None]:
    """Put off Python's search for cycles: a step makes none, and its many tuples set it off."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
