"""The update inside the backward pass: each weight is updated once its gradient exists.

Counted is one optimizer for each weight, called by PyTorch's `register_post_accumulate_grad_hook`;
then the gradient is freed. So it can neither be added up over micro-batches nor clipped by the norm
of all gradients.

Source: torch (torch/csrc/autograd/functions/accumulate_grad.h), inbackward
"""

from typing import Final, assert_never

from calculator.plan import Optimizer, Plan, Update
from calculator.techniques.effect import Effect


def temporaries(plan: Plan) -> int:
    """Temporaries, each as large as the weight, that the update of one weight makes."""
    from_torch = plan.optimizer_bits == plan.own_bits and not plan.paged_optimizer
    if plan.optimizer is Optimizer.ADAFACTOR and from_torch:
        return 1  # the variances that its factors stand for
    if plan.optimizer is not Optimizer.ADAM or not from_torch:
        return 0
    match plan.update:
        case Update.FOREACH:
            return 1
        case Update.LOOP:
            return 2
        case Update.FUSED:
            return 0
        case other:
            assert_never(other)


EFFECT: Final = Effect(
    used=lambda plan: plan.update_in_backward,
    mode=lambda plan: {"updates": temporaries(plan)},
    notes=lambda _: (
        "Counted with one optimizer per weight, called as soon as its gradient is ready "
        "(register_post_accumulate_grad_hook). Gradients can't be clipped by their total norm.",
    ),
)
