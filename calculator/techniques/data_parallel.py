"""Several GPUs that train together: DistributedDataParallel, each with a copy of the model.

DDP copies each gradient into one of its buckets, flat tensors that live from step to step, and
reduces a bucket over all GPUs as soon as it is full. After the first step it fills them in the
order in which gradients arrive, each format apart: the first until it has 1 MiB, the others until
they have 25 MiB. With `gradient_as_bucket_view` a gradient is a view of its bucket, and its own
bytes go at once.

Source: ddp, torch (distributed/c10d/reducer.cpp, nn/parallel/distributed.py)
"""

from collections.abc import Iterable, Iterator
from typing import Final

from calculator.allocator import round_block
from calculator.autograd.dtypes import DType
from calculator.autograd.ledger import ALL_REDUCE, ARRIVED
from calculator.peaks.chunks import noted
from calculator.peaks.step import Prepared
from calculator.peaks.trace import backward_of_stages
from calculator.plan import DataParallel, Plan
from calculator.techniques.collectives import Collective
from calculator.techniques.effect import Answer, Effect
from calculator.techniques.zero import updated_words
from calculator.units import format_bytes

FIRST_BUCKET: Final = 2**20
BUCKET: Final = 25 * 2**20


def buckets(gradients: Iterable[tuple[int, DType]]) -> tuple[int, ...]:
    r"""Bytes of DDP's buckets for gradients by their bytes and formats, in order of arrival.

    $$b_k = \sum_{i = i_k}^{i_{k+1} - 1} g_i$$

    with g_i the bytes of a gradient of the bucket's format; a bucket is full with the gradient that
    brings it to 1 MiB (a format's first bucket) or 25 MiB (any other). What is not full comes last,
    the format that arrived first at the end.

    >>> from calculator.autograd.dtypes import FLOAT32
    >>> buckets((size, FLOAT32) for size in (2**20, 20 * 2**20, 10 * 2**20, 1))
    (1048576, 31457280, 1)

    Source: torch (distributed/c10d/reducer.cpp, compute_bucket_assignment_by_size)
    """
    full: list[int] = []
    filled: dict[DType, int] = {}
    limits: dict[DType, int] = {}
    for size, dtype in gradients:
        filled[dtype] = filled.get(dtype, 0) + size
        if filled[dtype] >= limits.get(dtype, FIRST_BUCKET):
            full.append(filled[dtype])
            filled[dtype], limits[dtype] = 0, BUCKET
    return (*full, *filter(None, reversed(filled.values())))


def _buckets(prepared: Prepared) -> tuple[int, ...]:
    """Bytes of the buckets, for each stage of a pipeline apart."""
    found: tuple[int, ...] = ()
    for chunks, left_out in backward_of_stages(prepared.step, prepared.left_out):
        found += buckets(noted(chunks, ARRIVED, prepared.numbers, left_out))
    return found


def bucket_bytes(prepared: Prepared, plan: Plan) -> int:
    """Bytes of DDP's buckets, which live from step to step."""
    return sum(map(round_block, _buckets(prepared))) if EFFECT.used(plan) else 0


def _exchanges(_: Plan, prepared: Prepared, __: object) -> Iterator[Collective]:
    yield Collective(ALL_REDUCE, _buckets(prepared))


def _notes(answer: Answer) -> Iterator[str]:
    """A note on who holds what."""
    plan = answer.plan
    what = "its share of the model" if plan.all_gpus > plan.replicas else "the whole model"
    holds = f"Each of {plan.all_gpus:,} GPUs holds {what}"
    filled = f"{format_bytes(bucket_bytes(answer.prepared, plan))} of buckets for gradients"
    if plan.shares_states:
        yield f"{holds}, {filled}, and {updated_words(answer.tensors(), plan)}"
    else:
        yield f"{holds} and its states, and {filled}. All need the same."


EFFECT: Final = Effect(
    used=lambda plan: plan.replicas > 1 and not plan.is_sharded,
    mode=lambda plan: {"gradients_leave": plan.data_parallel is DataParallel.DDP_VIEW},
    exchanges=_exchanges,
    notes=_notes,
)
