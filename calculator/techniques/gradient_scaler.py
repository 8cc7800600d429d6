"""Autocast to float16 with a scaled loss, whose small gradients float16 can hold.

Counted is PyTorch's `GradScaler`. It keeps two numbers on the GPU: the scale, and the steps since
it last changed. The scaled loss lives beside the loss in the backward pass. Before the update all
gradients are divided by the scale in place, and one number says whether any is not finite; fused
updates take that number and the scale themselves.

Source: grad_scaler, torch (amp/grad_scaler.py)
"""

from typing import Final

from calculator.allocator import round_block
from calculator.optimizers.rule import rule_of
from calculator.plan import Plan, Update
from calculator.techniques.effect import Effect

NUMBER: Final = round_block(4)
# numbers that live while gradients are divided: the inverse of the scale and whether one is not
# finite, each with the copy that every device gets
UNSCALING: Final = 4 * NUMBER


def kept_bytes(plan: Plan) -> int:
    """Bytes of the scale and of its counter.

    >>> kept_bytes(Plan(gradient_scaler=True))
    1024

    Source: torch (amp/grad_scaler.py, _lazy_init_scale_growth_tracker)
    """
    return 2 * NUMBER if plan.gradient_scaler else 0


def update_beside(update: int, plan: Plan, from_torch: bool) -> int:
    """Temporaries of the update and of what comes before it.

    A fused update of torch's holds three numbers while it runs, any other one.

    Source: torch (amp/grad_scaler.py, step)
    """
    if not plan.gradient_scaler:
        return update
    fused = from_torch and plan.update is Update.FUSED
    return max(UNSCALING, (3 if fused else 1) * NUMBER + update)


def scaler_moved(plan: Plan) -> tuple[int, int]:
    """Bytes that go to RAM and come from there where gradients are in RAM.

    The inverse of the scale, and whether one is not finite, go there for the gradients; the latter
    comes back for the next scale: for each optimizer. A fused update, which Muon does not have,
    takes both, and the latter comes back for it too.

    Source: torch (amp/grad_scaler.py, unscale_, step, update)
    """
    optimizers = len(rule_of(plan).steps(plan))
    times = plan.gradient_scaler * (optimizers + (plan.update is Update.FUSED))
    return 2 * 4 * times, 4 * times


EFFECT: Final = Effect(
    used=lambda plan: plan.gradient_scaler,
    mode=lambda _: {"scales_loss": True},
    notes=lambda _: (
        "Autocast to float16 takes what autocast to bfloat16 takes; the gradient scaler adds a few "
        "numbers on the GPU, and divides the gradients by its scale in place.",
    ),
)
