"""A pipeline: each of several GPUs has some consecutive layers, and micro-batches pass through all.

Counted are `PipelineStage` and the schedules of `torch.distributed.pipelining`. The first stage has
the embeddings, the last one the final norm, the output layer and the loss. If the stages do not
divide the layers evenly, the first ones have one more. Micro-batches are those of gradient
accumulation. A stage allocates a buffer for the input of each micro-batch, and one for the gradient
of its output, once; they stay. Between its forward and its backward pass a micro-batch keeps what
its layers save, and the stage's output.

With `gpipe` all micro-batches go forward before the first goes backward, and every gradient that is
sent stays until the end of the step. With `1f1b` stage i of P has at most P - i micro-batches in
flight; the gradient that was sent last stays until there is another one.

Autocast is around each stage's forward pass: each micro-batch has 16-bit copies of its own.

Source: pipeline, torch (distributed/pipelining/stage.py, distributed/pipelining/schedules.py)
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import cycle, islice

from calculator.architecture import Architecture
from calculator.errors import InputError
from calculator.layers.layer import Layer
from calculator.models.decoder import Decoder, in_turn
from calculator.models.measured import Technique
from calculator.models.registry import not_measured
from calculator.plan import (
    ActivationOffload,
    BaseBits,
    ChunkedLoss,
    Offload,
    Optimizer,
    PipelineSchedule,
    Plan,
)
from calculator.techniques.turns import turns_of
from calculator.units import format_bytes

# more are not put on the tape
MOST_MICRO_BATCHES = 64
# the number of a stage among those of an architecture
STAGE = "stage"


@dataclass(frozen=True, slots=True)
class Stage:
    """The layers of one stage, perhaps with what stands before the first or after the last."""

    is_first: bool
    is_last: bool

    def rewrite(self, layer: Layer) -> None:
        """Leave out what other stages have."""
        if isinstance(layer, Decoder):
            layer.is_first, layer.is_last = self.is_first, self.is_last


def layers_of(layers: int, stages: int, place: int) -> range:
    """The layers of a stage: as many as all others have, or one more among the first.

    >>> [len(layers_of(7, 3, place)) for place in range(3)]
    [3, 2, 2]
    """
    each, more = divmod(layers, stages)
    start = place * each + min(place, more)
    return range(start, start + each + (place < more))


def stage_of(architecture: Architecture, plan: Plan, place: int) -> Architecture:
    """The shape of the part of a model that one GPU of a pipeline has."""
    stages = plan.pipeline_parallel
    if stages == 1:
        return architecture
    own = layers_of(architecture.layers, stages, place)
    return replace(
        architecture,
        layers=len(own),
        pattern=in_turn(tuple(islice(cycle(architecture.pattern), own.start, own.stop))),
        more=(*architecture.more, (STAGE, place)),
    )


def stages_of(architecture: Architecture, plan: Plan) -> Iterator[Architecture]:
    """The shapes of the stages among which the fullest is.

    Of those between the first and the last that have the same layers, it is the first: it has the
    most micro-batches in flight.
    """
    last = plan.pipeline_parallel - 1
    seen = set()
    for place in range(last + 1):
        stage = stage_of(architecture, plan, place)
        alike = stage.layers, stage.pattern, place == 0, place == last
        if alike not in seen:
            yield stage
        seen.add(alike)


def check_pipeline(plan: Plan, architecture: Architecture) -> None:
    """Refuse what cannot be divided, what PyTorch refuses, and what was not measured.

    Raises:
        InputError: naming the option and the rule.
    """
    stages, count = plan.pipeline_parallel, plan.accumulation
    if rule := not_measured(Technique.PIPELINE, architecture.family):
        raise InputError("pipeline_parallel", stages, f"was {rule}: must be 1")
    if architecture.layers < stages:
        rule = f"each stage has a layer: must be at most {architecture.layers:,}"
        raise InputError("pipeline_parallel", stages, rule)
    if plan.tied_embeddings:
        rule = "embeddings and output layer are on different GPUs: must be false"
        raise InputError("tied_embeddings", True, rule)
    if count > MOST_MICRO_BATCHES:
        rule = f"micro-batches in a pipeline: must be at most {MOST_MICRO_BATCHES}"
        raise InputError("accumulation", count, rule)
    if plan.pipeline_schedule is not PipelineSchedule.GPIPE and count < stages:
        rule = f"1f1b needs a micro-batch for each of {stages:,} stages: must be at least {stages}"
        raise InputError("accumulation", count, rule)
    _check_beside(plan, architecture)


def _check_beside(plan: Plan, architecture: Architecture) -> None:
    """Refuse options that were not measured with it."""
    left_out = {
        "gpus": plan.gpus > 1,
        "tensor_parallel": plan.tensor_parallel > 1,
        "lora": bool(plan.lora),
        "optimizer": plan.optimizer is Optimizer.MUON,
        "quantization": plan.quantization is not BaseBits.NONE,
        "offload": plan.offload is not Offload.NONE,
        "update_in_backward": plan.update_in_backward,
        "activation_offload": plan.activation_offload is not ActivationOffload.NONE,
        "chunked_loss": plan.chunked_loss is not ChunkedLoss.NONE,
        "reversible": plan.reversible,
        "gradient_scaler": plan.gradient_scaler,
        "checkpoint_every": plan.checkpoint_every > 1,
        "sharing_groups": plan.sharing_groups < architecture.shared_layers,
    }
    for name, used in left_out.items():
        if used:
            rule = f"was not measured with {name} = {getattr(plan, name)}: must be 1"
            raise InputError("pipeline_parallel", plan.pipeline_parallel, rule)


def stage_note(whole: Architecture, stage: Architecture, plan: Plan, sent: int) -> str:
    """Sentences on the fullest stage, and on the bytes `sent` of each micro-batch."""
    place, stages = stage.numbers[STAGE], plan.pipeline_parallel
    own = layers_of(whole.layers, stages, place)
    numbers = f"layers {own.start + 1:,} to {own.stop:,}"
    has = ["the embeddings"] if place == 0 else []
    has.append(numbers if len(own) > 1 else f"layer {own.stop:,}")
    has += ["the output layer"] if place == stages - 1 else []
    more = whole.layers % stages
    uneven = f" {stages:,} stages do not divide {whole.layers:,} layers evenly: " + (
        "the first has one more." if more == 1 else f"the first {more:,} have one more each."
    )
    turns = turns_of(plan, place)
    ahead = turns.ahead if turns else 0
    return (
        f"Figures are those of stage {place + 1:,} of {stages:,}, which holds the most: "
        f"{', '.join(has)}, and at most {ahead:,} of {plan.accumulation:,} micro-batches between "
        f"their forward and backward passes.{uneven if more else ''} Between two stages each "
        f"micro-batch moves {format_bytes(sent)} forward, and as much backward."
    )
