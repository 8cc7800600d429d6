"""A step's memory over its operations: `curve(architecture, plan) -> StepCurve`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from calculator.architecture import Architecture
from calculator.clock import starts_of, why_untimed
from calculator.clock.work import computed
from calculator.estimate import (
    fullest_part,
    paced_work,
    static_of,
    static_parts,
    update_memory,
)
from calculator.parts import Part
from calculator.peaks.curve import Curve, Held, Layer, Operation, curve_of
from calculator.peaks.outputs import with_outputs
from calculator.peaks.prepare import prepare
from calculator.peaks.step import Prepared
from calculator.plan import Offload, Plan
from calculator.report import Memory, Phase
from calculator.resolution import resolve
from calculator.techniques.data_parallel import bucket_bytes
from calculator.techniques.turns import STAGE_TURN, TURN

# kinds of tensors that a point names
MOST_NAMED = 5
HEAD = "head"
# the stack that has no name of its own
ONLY = "layers"


@dataclass(frozen=True, slots=True)
class Point:
    """One operation, and the memory on the GPU at its peak.

    Attributes:
        number: of the operation, from 0.
        phase: that it belongs to.
        layer: where it runs, in words; empty outside of all layers.
        operation: what runs, in words.
        memory: bytes by part.
        largest: the largest tensors of the step, by kind; weights and states are not
            among them.
        seconds: from the start of the micro-batch to that of the operation; None where the clock
            has no answer.
    """

    number: int
    phase: Phase
    layer: str
    operation: str
    memory: Memory
    largest: tuple[Held, ...] = ()
    seconds: float | None = None

    @property
    def words(self) -> str:
        """The name of the operation and its place."""
        return f"{self.layer}, {self.operation}" if self.layer else self.operation

    def as_json(self) -> dict[str, Any]:
        """The point as ``curve --json`` prints it; sizes are integers of bytes."""
        return {
            "operation": self.number,
            "phase": self.phase.value,
            "layer": self.layer,
            "name": self.operation,
            "seconds": self.seconds,
            "gpu": self.memory.total,
            "parts": self.memory.as_json(),
            "largest": [
                {"name": held.kind.name, "size": held.kind.size, "count": held.count}
                | {"bytes": held.bytes}
                for held in self.largest
            ],
        }


@dataclass(frozen=True, slots=True)
class StepCurve:
    """The points of a step, and how many operations it has; there may be fewer points.

    `seconds` are those of one of the `micro_batches` and the update; None where the clock has no
    answer.
    """

    points: tuple[Point, ...]
    operations: int
    seconds: float | None = None
    micro_batches: int = 1

    @property
    def peak(self) -> Point:
        """The first point with the most memory."""
        return max(self.points, key=lambda point: point.memory.total)

    def as_json(self) -> dict[str, Any]:
        """The object of ``curve --json``."""
        return {
            "operations": self.operations,
            "seconds": self.seconds,
            "peak": self.peak.as_json(),
            "points": [point.as_json() for point in self.points],
        }

    def as_csv(self) -> str:
        """One line per point, with sizes in bytes, and the seconds until its start."""
        parts = [part.key for part in Part]
        lines = [",".join(["operation", "phase", "layer", "name", "gpu", *parts, "seconds"])]
        for point in self.points:
            words = (f'"{text}"' for text in (point.phase.value, point.layer, point.operation))
            sizes = map(str, (point.memory.total, *point.memory.as_json().values()))
            start = "" if point.seconds is None else f"{point.seconds:.6f}"
            lines.append(",".join([str(point.number), *words, *sizes, start]))
        return "\n".join(lines)


def curve(
    architecture: Architecture,
    plan: Plan | None = None,
    most: int | None = None,
    named: int = MOST_NAMED,
) -> StepCurve:
    """The memory of one training step over its operations, the update last.

    The highest point of each phase is the one that `estimate` reports.

    Args:
        architecture: the model.
        plan: how it is trained.
        most: approximate maximum number of points; every phase's peak is among them.
        named: maximum number of kinds of tensors that a point names.

    Raises:
        InputError: if the model does not support the plan.
    """
    resolved = resolve(architecture, plan or Plan())
    part = fullest_part(architecture, resolved)
    static, *_ = static_of(part, resolved)
    prepared = with_outputs(prepare(part, resolved), resolved)
    static = replace(static, buckets=bucket_bytes(prepared, resolved))
    step = (prepared.step, prepared.numbers, prepared.left_out)
    found = curve_of(*step, static_parts(static, resolved))
    operations = found.operations
    chosen = range(len(operations)) if most is None else thinned(operations, most)
    micro_batches = 1 if prepared.step.turns else resolved.rounds
    starts = _starts(architecture, resolved, found, prepared, micro_batches)
    is_only = len({name.partition(TURN)[0] for name in found.depths}) == 1
    points = [
        Point(
            number,
            operations[number].phase,
            _layer_words(operations[number].layer, found.depths, is_only),
            operations[number].name.words,
            Memory(*operations[number].parts),
            tuple(largest),
            starts[number],
        )
        for number, largest in zip(chosen, found.largest(chosen, named), strict=True)
    ]
    update = update_memory(static, prepared, resolved)
    words, (*_, start, end) = _update_words(resolved), starts
    points.append(Point(len(operations), Phase.UPDATE, "", words, update, seconds=start))
    return StepCurve(tuple(points), len(operations) + 1, end, micro_batches)


def _starts(
    whole: Architecture, plan: Plan, found: Curve, prepared: Prepared, micro_batches: int
) -> Sequence[float | None]:
    """Seconds until each operation, the update, and its end; None where the clock has no answer."""
    order = [one.recorded for one in found.operations]
    if any(why_untimed(plan)):
        return [None] * (len(order) + 2)
    tallies = found.tallies()
    each = {id(tally): tally for tally in tallies}
    made = {number: computed(tally, prepared.numbers) for number, tally in each.items()}
    works = [made[id(tally)] for tally in tallies]
    return starts_of(works, order, paced_work(whole, plan), micro_batches, plan.card)


def thinned(operations: Sequence[Operation], most: int) -> list[int]:
    """The numbers of about so many operations: in each stretch of a phase its highest and lowest.

    The highest of a phase is the highest of a stretch, so it is always among them.
    """
    pairs = max(1, most // 2)
    chosen: set[int] = set()
    for _, found in groupby(range(len(operations)), lambda number: operations[number].phase):
        numbers = list(found)
        stretches = max(1, min(len(numbers), pairs * len(numbers) // len(operations)))
        for stretch in range(stretches):
            start, end = (len(numbers) * n // stretches for n in (stretch, stretch + 1))
            part = numbers[start:end]
            chosen.add(max(part, key=lambda number: operations[number].total))
            chosen.add(min(part, key=lambda number: operations[number].total))
        chosen |= {numbers[0], numbers[-1]}
    return sorted(chosen)


def _layer_words(layer: Layer | None, depths: Mapping[str, int], is_only: bool) -> str:
    if layer is None:
        return ""
    stack, depth = layer
    stack, _, turn = stack.partition(TURN)
    number, _, stage = turn.partition(STAGE_TURN)
    beside = f", micro-batch {int(number) + 1}" if turn else ""
    beside = f" of the GPU's stage {int(stage) + 1}{beside}" if stage else beside
    if stack == HEAD:
        return f"output layer{beside}"
    first = "" if is_only else "encoder " if stack == ONLY else f"{stack} "
    return f"{first}layer {depth + 1} of {depths[layer[0]]}{beside}"


def _update_words(plan: Plan) -> str:
    title = dict(Plan.options()["optimizer"].choices)[plan.optimizer]
    where = " in RAM" if plan.cpu_offload or plan.offload is Offload.OPTIMIZER else ""
    return f"update by {title}{where}"
