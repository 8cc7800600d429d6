"""A technique's effect on a step: one record in the technique's own file."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from calculator.architecture import Architecture
from calculator.autograd.mode import Mode
from calculator.autograd.sizes import Numbers
from calculator.layers.layer import Change
from calculator.models.model import Model
from calculator.peaks.step import Prepared
from calculator.plan import Plan
from calculator.techniques.collectives import Collective
from calculator.tensors import ParameterTensor, Statics

Tensors = Sequence[ParameterTensor]


class Stored(NamedTuple):
    """The weights of a GPU, and what a step of them is recorded with; `buffers` are bytes."""

    plan: Plan
    tensors: Tensors
    buffers: int
    models: Sequence[Model]
    numbers: Numbers
    mode: Mode


class Answer(NamedTuple):
    """A counted step, for the sentences beside it.

    `part` is the fullest of a pipeline, and else the model; `tensors` are the whole model's.
    `most` is the peak of a GPU whose experts get the most rows.
    """

    architecture: Architecture
    part: Architecture
    plan: Plan
    prepared: Prepared
    tensors: Callable[[], Tensors]
    exchanged: Sequence[Collective]
    most: int


def _nothing(*_: Any) -> Iterable[Any]:
    return ()


def _as_it_is(_: Plan) -> Mapping[str, object]:
    return {}


def _unchanged(static: Statics, _: Stored) -> Statics:
    return static


@dataclass(frozen=True, slots=True)
class Effect:
    """One technique.

    Attributes:
        used: true if a resolved plan has it.
        layers: changes of the model's layers.
        mode: the settings of a step's operations that it determines.
        statics: the bytes that live from step to step, from those without it.
        exchanges: what a step sends beside what it records, from its weights where it asks for
            them.
        notes: sentences beside an answer.
    """

    used: Callable[[Plan], bool]
    layers: Callable[[Architecture, Plan], Iterable[Change]] = _nothing
    mode: Callable[[Plan], Mapping[str, object]] = _as_it_is
    statics: Callable[[Statics, Stored], Statics] = _unchanged
    exchanges: Callable[[Plan, Prepared, Callable[[], Tensors]], Iterable[Collective]] = _nothing
    notes: Callable[[Answer], Iterable[str]] = _nothing
