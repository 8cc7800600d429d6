"""Options that no program carries out together; the oracle would measure one without the other."""

from typing import Final

from calculator.errors import InputError
from calculator.models.registry import type_of
from calculator.plan import (
    ActivationOffload,
    Checkpointing,
    ChunkedLoss,
    DataParallel,
    Loop,
    Offload,
    Optimizer,
    Plan,
)
from validation.configuration import Configuration
from validation.mesh import axes_of, is_sharded

BITSANDBYTES: Final = "bitsandbytes has no rule for DTensors, which shards are"
LOCALIZED: Final = "DDP makes new parameters of split weights, and the optimizer has the first ones"
SHARED: Final = "ZeroRedundancyOptimizer updates the model's own weights, at the end of a step"


def check_together(plan: Plan) -> None:
    """Refuse a plan of which a part would have no effect.

    Raises:
        InputError: naming the option and the rule.
    """
    axes = axes_of(plan)
    zero1 = axes.replicas > 1 and plan.data_parallel is DataParallel.ZERO1
    masters = plan.has_master_weights and not is_sharded(plan)
    in_ram = plan.offload is Offload.OPTIMIZER
    own = plan.optimizer_bits == plan.own_bits and not plan.paged_optimizer
    by_others = not own or plan.optimizer in (Optimizer.LAMB, Optimizer.LION)
    rules = {
        "update_in_backward": {
            "it frees the gradients that accumulation adds to": plan.accumulation > 1,
            "masters and weights in RAM are updated at the end": masters or in_ram,
            "DDP reduces gradients after they are updated": axes.replicas > 1
            and not is_sharded(plan),
        },
        "paged_optimizer": {"all states are in RAM already": in_ram or plan.cpu_offload},
        "data_parallel": {
            LOCALIZED: plan.tensor_parallel > 1 and axes.replicas > 1 and not is_sharded(plan),
            SHARED: zero1 and (plan.gradient_scaler or masters or in_ram),
        },
        "optimizer": {
            BITSANDBYTES: by_others
            and plan.optimizer is not Optimizer.SGD
            and (is_sharded(plan) or axes.layers > 1),
        },
        "offload": {
            "shards go to RAM with cpu_offload": in_ram and is_sharded(plan),
            "a scaler's gradients stay on the GPU": in_ram and plan.gradient_scaler,
        },
        "gradient_scaler": {"only the last stage has a loss to scale": axes.pipeline > 1},
        "cpu_offload": {"only shards are kept in RAM": not is_sharded(plan)},
        "activation_offload": {
            "the inputs of checkpointed layers are kept": plan.checkpointing
            is not Checkpointing.FULL
        },
        "chunked_loss": {"a schedule computes the loss from the logits": axes.pipeline > 1},
        "loop": {"a schedule gets the outputs": axes.pipeline > 1},
    }
    absent = {
        "chunked_loss": ChunkedLoss.NONE,
        "activation_offload": ActivationOffload.NONE,
        "offload": Offload.NONE,
        "loop": Loop.TRAINER,
    }
    for name, reasons in rules.items():
        value = getattr(plan, name)
        for rule, holds in reasons.items():
            if holds and value and value is not absent.get(name):
                raise InputError(name, value, rule)


def check_windows(configuration: Configuration) -> None:
    """Refuse a ring of a model whose windows it would forget.

    Raises:
        InputError: naming the rule.
    """
    plan, found = configuration.asked, configuration.subject.counted
    if plan.context_parallel == 1 or isinstance(found, InputError):
        return
    if type_of(found).windowed(found, plan.sequence_length):
        rule = "context_parallel knows no windows of attention shorter than the sequence"
        raise InputError("context_parallel", plan.context_parallel, rule)
