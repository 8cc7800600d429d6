"""The techniques that rewrite a model's layers: a literal table."""

from functools import lru_cache

from calculator.architecture import Architecture
from calculator.autograd.dtypes import FLOAT32
from calculator.layers.layer import Change, rewrite
from calculator.models.model import Model
from calculator.models.registry import type_of
from calculator.plan import BaseBits, Plan, Precision
from calculator.techniques.expert_parallel import ExpertParallel
from calculator.techniques.lora import ALL_LINEAR, Lora, split
from calculator.techniques.pipeline import RANK, STAGE, Stage, stages_in
from calculator.techniques.quantization import Quantization
from calculator.techniques.task import task_changes
from calculator.techniques.tensor_parallel import TensorParallel, share_of


def changes_of(architecture: Architecture, plan: Plan) -> tuple[Change, ...]:
    """Changes that a resolved plan makes to its model's layers, in order."""
    return (*task_changes(architecture, plan), *_changes_of_layers(architecture, plan))


def _changes_of_layers(architecture: Architecture, plan: Plan) -> tuple[Change, ...]:
    divided: tuple[Change, ...] = ()
    if plan.tensor_parallel > 1:
        divided = (TensorParallel(plan.sequence_parallel),)
    elif plan.expert_parallel > 1:
        divided = (ExpertParallel(),)
    if not plan.lora:
        return divided
    targets = () if plan.lora_targets == ALL_LINEAR else split(plan.lora_targets)
    packed = plan.quantization is not BaseBits.NONE
    asked = plan.checkpointing.is_of_layers
    whole = split(plan.lora_modules) if plan.lora_modules else ()
    gathered = plan.is_sharded and plan.precision is Precision.MIXED
    fused = type_of(architecture).fused_experts
    adapters = Lora(targets, plan.lora_dropout > 0, asked, plan.lora_bias, whole, gathered, fused)
    if not packed:
        return (*divided, adapters)
    products = FLOAT32 if plan.precision is Precision.FP32 else plan.half
    widened = plan.precision is Precision.AMP
    packing = Quantization(plan.quantization.is_double, products, plan.is_sharded, widened)
    return (*divided, packing, adapters)


def changed_model(architecture: Architecture, plan: Plan) -> Model:
    """The model of a resolved plan as a tree of layers; of several GPUs', one's share of it."""
    return _changed(
        share_of(architecture, plan), plan.tied_embeddings, changes_of(architecture, plan)
    )


def stage_models(architecture: Architecture, plan: Plan) -> tuple[Model, ...]:
    """The models of one GPU: those of its stages in a pipeline, else a single one.

    Of a pipeline the architecture is a GPU's part; else, and as a whole, it has one model.
    """
    if RANK not in architecture.numbers:
        return (changed_model(architecture, plan),)
    return tuple(_stage_model(stage, plan) for stage in stages_in(architecture, plan))


def _stage_model(stage: Architecture, plan: Plan) -> Model:
    place = stage.numbers[STAGE]
    ends = Stage(place == 0, place == plan.all_stages - 1)
    return _changed(
        stage, False, (*changes_of(stage, plan), ends)
    )  # each end has a table of its own


@lru_cache(maxsize=512)
def _changed(architecture: Architecture, tied: bool, changes: tuple[Change, ...]) -> Model:
    model = type_of(architecture).build(architecture, tied)
    for change in changes:
        rewrite(model, change)
    return model
