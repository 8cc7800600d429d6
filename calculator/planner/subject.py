"""The subject of a run: the cost of a token, and the tensors that are exchanged."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from calculator.architecture import USUAL_LENGTH
from calculator.catalog import find_model
from calculator.errors import InputError
from calculator.parameters import count_active, parameter_tensors
from calculator.plan import Plan
from calculator.planner.communicate import low_rank_elements, sparse_bits
from calculator.planner.run import Compression, Run
from calculator.resolution import resolve

# elements from which a tensor travels in 8 bits; smaller ones keep 16 (the 2021 run's choice)
LARGE_TENSOR = 2**16


@dataclass(frozen=True, slots=True)
class Subject:
    """A model to train.

    Attributes:
        tensors: shapes whose gradients are exchanged, and how many tensors have each.
        computed: parameters that a token meets; shared layers count each time, of experts only
            the active ones.
        layers: all of them, encoder and decoder.
        width: of all attention heads together.
        shared: layers that can share weights; 0 where none can.
        groups: distinct ones of these.
    """

    title: str
    tensors: tuple[tuple[tuple[int, ...], int], ...]
    computed: int
    layers: int
    width: int
    sequence_length: int
    shared: int = 0
    groups: int = 0

    @property
    def exchanged(self) -> int:
        """Parameters whose gradients are exchanged."""
        return sum(math.prod(shape) * copies for shape, copies in self.tensors)


def subject_of(model: str, run: Run) -> Subject:
    """The model of that name, or for an empty name the one that the run's own numbers describe.

    Raises:
        InputError: if the name is unknown or numbers are missing.
    """
    return _named(model, run.sequence_length, run.sharing_groups) if model else _described(run)


@lru_cache(maxsize=32)
def _named(model: str, length: int | None, groups: int | None) -> Subject:
    architecture = find_model(model)
    plan = resolve(architecture, Plan(sequence_length=length, sharing_groups=groups))  # type: ignore[arg-type]  # None is the default
    tensors = tuple(
        (tensor.shape, tensor.copies)
        for tensor in parameter_tensors(architecture, plan)
        if tensor.trained
    )
    can_share = architecture.sharing_groups or len(set(architecture.pattern)) <= 1
    shared = architecture.shared_layers if can_share else 0
    apart = replace(plan, sharing_groups=shared or plan.sharing_groups)
    return Subject(
        architecture.title,
        tensors,
        count_active(architecture, apart),
        architecture.layers + architecture.decoder_layers,
        architecture.attention_size,
        plan.sequence_length,
        shared,
        plan.sharing_groups,
    )


def _described(run: Run) -> Subject:
    for field in ("parameters", "layers", "width"):
        if getattr(run, field) is None:
            raise InputError(field, "", "must be given for a model that is not on the list")
    if run.sharing_groups is not None:
        raise InputError("sharing_groups", run.sharing_groups, "needs a model of the list")
    parameters, layers, width = run.parameters or 0, run.layers or 0, run.width or 0
    title = f"A model of {parameters:,} parameters"
    length = run.sequence_length or USUAL_LENGTH
    return Subject(title, (((parameters,), 1),), parameters, layers, width, length)


def message_bytes(subject: Subject, run: Run) -> float:
    r"""Bytes of one copy of all gradients as a volunteer sends them, without headers and scales.

    $$\sum_i n_i \, b_i / 8$$

    with n_i the elements of tensor i and b_i their bits; where large tensors travel in 8, those of
    fewer than 65,536 elements keep 16. PowerSGD's factors travel in 32.

    Source: together (section 3.3); powersgd (section 3); sparseloco

    Raises:
        InputError: if PowerSGD is used on a model whose matrices are unknown.
    """
    match run.compression:
        case Compression.NONE | Compression.HALF | Compression.EIGHT:
            bits = int(run.compression)
            return sum(
                copies * math.prod(shape) * _bits(math.prod(shape), bits) / 8
                for shape, copies in subject.tensors
            )
        case Compression.LOW_RANK:
            if not subject.shared and len(subject.tensors) == 1:
                rule = "needs a model of the list, whose matrices are known"
                raise InputError("compression", run.compression, rule)
            return 4.0 * low_rank_elements(_shapes(subject), run.rank)
        case Compression.SPARSE:
            return subject.exchanged * sparse_bits(run.kept, run.block, run.value_bits) / 8


def _bits(elements: int, bits: int) -> int:
    return max(bits, 16) if elements < LARGE_TENSOR else bits


def _shapes(subject: Subject) -> Iterator[tuple[int, ...]]:
    for shape, copies in subject.tensors:
        for _ in range(copies):
            yield shape
