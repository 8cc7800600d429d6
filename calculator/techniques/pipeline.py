"""A pipeline: each of several GPUs has some consecutive layers, and micro-batches pass through all.

Counted are `PipelineStage` and the schedules of `torch.distributed.pipelining`. The first stage has
the embeddings, the last one the final norm, the output layer and the loss. If the stages do not
divide the layers evenly, the first ones have one more. Micro-batches are those of gradient
accumulation. A stage allocates a buffer for the input of each micro-batch, and one for the gradient
of its output, once; they stay. Between its forward and its backward pass a micro-batch keeps what
its layers save, and the stage's output.

If embeddings are tied, the first and the last stage have the table each, and the two GPUs sum its
gradients after all passes, which PyTorch leaves to the training loop.

With `gpipe` all micro-batches go forward before the first goes backward, and every gradient that is
sent stays until the end of the step. With `1f1b` stage i of P has at most P - i micro-batches in
flight; the gradient that was sent last stays until there is another one.

With `interleaved` each of P GPUs has several stages: every P-th, each with its own tables of
positions. Micro-batches pass in rounds, all of a round through one stage and then through the next.
Whatever is sent stays until the end of the step.

Autocast is around each stage's forward pass: each micro-batch has 16-bit copies of its own.

Source: pipeline, torch (distributed/pipelining/stage.py, distributed/pipelining/schedules.py)
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

from calculator.architecture import Architecture
from calculator.autograd.ledger import ALL_REDUCE
from calculator.layers.layer import Layer
from calculator.models.decoder import in_turn
from calculator.models.model import CausalModel
from calculator.peaks.step import Prepared
from calculator.plan import Plan
from calculator.techniques.collectives import SEND, Collective, Group
from calculator.techniques.effect import Answer, Effect
from calculator.techniques.turns import turns_of
from calculator.units import format_bytes

# more are not put on the tape
MOST_MICRO_BATCHES: Final = 64
# numbers of an architecture: of a GPU's part that GPU's, and the layers of the whole; of a stage's
# part that stage's
RANK: Final = "rank"
WHOLE: Final = "layers_of_all"
STAGE: Final = "stage"
TIED_NOTE: Final = (
    "The first and the last GPU have the table of the tied embeddings each, and sum its gradients."
)


@dataclass(frozen=True, slots=True)
class Stage:
    """The layers of one stage, perhaps with what stands before the first or after the last."""

    is_first: bool
    is_last: bool

    def rewrite(self, layer: Layer) -> None:
        """Leave out what other stages have."""
        if isinstance(layer, CausalModel):
            layer.is_first, layer.is_last = self.is_first, self.is_last


def layers_of(layers: int, stages: int, place: int) -> range:
    """The layers of a stage: as many as all others have, or one more among the first.

    >>> [len(layers_of(7, 3, place)) for place in range(3)]
    [3, 2, 2]
    """
    each, more = divmod(layers, stages)
    start = place * each + min(place, more)
    return range(start, start + each + (place < more))


def stages_on(plan: Plan, rank: int) -> range:
    """The stages that a GPU has."""
    return range(rank, plan.all_stages, plan.pipeline_parallel)


def part_of(architecture: Architecture, plan: Plan, rank: int) -> Architecture:
    """The shape of the part of a model that one GPU of a pipeline has: the layers of its stages."""
    if plan.pipeline_parallel == 1:
        return architecture
    whole, pattern = architecture.layers, architecture.pattern
    own = [*chain(*(layers_of(whole, plan.all_stages, n) for n in stages_on(plan, rank)))]
    return replace(
        architecture,
        layers=len(own),
        pattern=tuple(pattern[layer % len(pattern)] for layer in own) if pattern else (),
        more=(*architecture.more, (RANK, rank), (WHOLE, whole)),
    )


def starts_of(part: Architecture, plan: Plan) -> tuple[int, ...]:
    """The place among all layers of the first one of each stage of a GPU's part."""
    if plan.pipeline_parallel == 1:
        return (0,)
    rank, whole = part.numbers[RANK], part.numbers[WHOLE]
    stages = plan.all_stages
    return tuple(layers_of(whole, stages, stage).start for stage in stages_on(plan, rank))


def shared_slots(part: Architecture, plan: Plan) -> tuple[tuple[int, ...], ...]:
    """The groups of the layers of each stage of a GPU's part, where its stages share weights."""
    if plan.pipeline_stages == 1 or RANK not in part.numbers:
        return ()
    rank, whole = part.numbers[RANK], part.numbers[WHOLE]
    if plan.sharing_groups >= whole:
        return ()
    own = (layers_of(whole, plan.all_stages, stage) for stage in stages_on(plan, rank))
    return tuple(tuple(layer % plan.sharing_groups for layer in layers) for layers in own)


def stages_in(part: Architecture, plan: Plan) -> Iterator[Architecture]:
    """The shapes of the stages in a GPU's part."""
    rank, whole = part.numbers[RANK], part.numbers[WHOLE]
    more = tuple(each for each in part.more if each[0] not in (RANK, WHOLE))
    start = 0
    for stage in stages_on(plan, rank):
        count = len(layers_of(whole, plan.all_stages, stage))
        kinds = part.pattern[start : start + count]
        yield replace(
            part,
            layers=count,
            pattern=in_turn(kinds) if kinds else (),
            more=(*more, (STAGE, stage)),
        )
        start += count


def parts_of(architecture: Architecture, plan: Plan) -> Iterator[Architecture]:
    """The shapes of the parts among which the fullest is.

    Of GPUs between the first and the last that have the same layers, it is the first one's: it has
    the most micro-batches in flight.
    """
    if plan.pipeline_parallel == 1:
        yield architecture
        return
    last = plan.pipeline_parallel - 1
    seen = set()
    for rank in range(last + 1):
        part = part_of(architecture, plan, rank)
        stages = tuple((each.layers, each.pattern) for each in stages_in(part, plan))
        alike = stages, rank == 0, rank == last
        if alike not in seen:
            yield part
        seen.add(alike)


def _exchanges(plan: Plan, prepared: Prepared, _: object) -> Iterator[Collective]:
    """Outputs and gradients that stages send to the ones beside them; tied tables' gradients."""
    stages, mode = prepared.step.stages, prepared.step.mode
    tokens = plan.batch_size * plan.sequence_length // plan.context_parallel
    each = tokens * prepared.numbers["hidden_size"] * mode.weights.width
    sides = sum((not stage.is_first) + (not stage.is_last) for stage in stages)
    yield Collective(SEND, (each,) * plan.accumulation * sides, Group.STAGES)
    if plan.tied_embeddings and not plan.lora and (stages[0].is_first or stages[-1].is_last):
        shards = plan.replicas if plan.is_sharded else 1
        rows = -(-prepared.numbers["vocabulary_size"] // shards)
        table = rows * prepared.numbers["hidden_size"]
        yield Collective(ALL_REDUCE, (table * mode.weights.width,), Group.STAGES)


def _notes(answer: Answer) -> Iterator[str]:
    """Sentences on the fullest GPU, and on the bytes that each micro-batch sends."""
    whole, part, plan = answer.architecture, answer.part, answer.plan
    sent = answer.exchanged[0].sizes[0]
    rank, stages = part.numbers[RANK], plan.all_stages
    own = stages_on(plan, rank)
    turns = turns_of(plan, rank)
    assert turns is not None
    waiting = f"at most {turns.ahead:,} of {plan.accumulation:,} micro-batches between their"
    named = f"stage {rank + 1:,} of {stages:,}"
    if len(own) > 1:
        named = f"GPU {rank + 1:,} of {plan.pipeline_parallel:,}"
        passes = plan.accumulation * len(own)
        waiting = f"at most {turns.ahead:,} of {passes:,} passes of micro-batches between their"
    tied = " " + TIED_NOTE if plan.tied_embeddings else ""
    more = whole.layers % stages
    uneven = f" {stages:,} stages do not divide {whole.layers:,} layers evenly: " + (
        "the first has one more." if more == 1 else f"the first {more:,} have one more each."
    )
    yield (
        f"Figures are those of {named}, which holds the most: "
        f"{', '.join(_held_by(whole, own, stages))}, and {waiting} forward and backward "
        f"passes.{uneven if more else ''} Between two stages each micro-batch moves "
        f"{format_bytes(sent)} forward, and as much backward.{tied}"
    )


def _held_by(whole: Architecture, own: range, stages: int) -> Iterator[str]:
    """Words for what stages have; with several, each is named."""
    if own.start == 0:
        yield "the embeddings"
    for stage in own:
        layers = layers_of(whole.layers, stages, stage)
        numbers = f"layers {layers.start + 1:,} to {layers.stop:,}"
        words = numbers if len(layers) > 1 else f"layer {layers.stop:,}"
        yield f"stage {stage + 1:,} of {stages:,} with {words}" if len(own) > 1 else words
    if own[-1] == stages - 1:
        yield "the output layer"


def _layers(stage: Architecture, plan: Plan) -> Iterator[Stage]:
    """Leave out the parts of other stages, where the shape is that of a stage."""
    if STAGE in stage.numbers:
        place = stage.numbers[STAGE]
        yield Stage(place == 0, place == plan.all_stages - 1)


EFFECT: Final = Effect(
    used=lambda plan: plan.pipeline_parallel > 1,
    layers=_layers,
    mode=lambda _: {"gradients_exist": False},  # of a step, all micro-batches are on one tape
    exchanges=_exchanges,
    notes=_notes,
)
