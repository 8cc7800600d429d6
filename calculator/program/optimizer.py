"""The part of a program that makes the optimizer and updates the weights."""

from typing import Final

from calculator.optimizers.rule import rule_of
from calculator.plan import Offload, Optimizer, Plan, Precision, Update
from calculator.program.split import group_weights, one_of
from calculator.program.text import TORCH, Piece, call, indented

RATE: Final = "lr=1e-4"


def optimizer_options(plan: Plan) -> list[str]:
    """The options of the optimizer; torch chooses foreach where all weights are on one GPU."""
    found = [RATE, *rule_of(plan).options]
    if not rule_of(plan).is_from_torch(plan):
        return found
    match plan.update:
        case Update.FUSED:
            found.append("fused=True")
        case Update.LOOP:
            found.append("foreach=False")
        case Update.FOREACH if _leaves_the_choice(plan):
            found.append("foreach=True")
        case Update.FOREACH:
            pass
    return found


def _leaves_the_choice(plan: Plan) -> bool:
    """True if torch would not choose foreach."""
    elsewhere = plan.offload is not Offload.NONE or plan.is_sharded or plan.divides_layers
    return elsewhere or plan.optimizer is Optimizer.ADAFACTOR


def has_copies(plan: Plan) -> bool:
    """True if the optimizer updates copies of the weights."""
    return plan.offload is Offload.OPTIMIZER or plan.has_master_weights


def make_optimizer(plan: Plan) -> Piece:
    """The optimizer, and the copies of the weights that it updates, if any."""
    if plan.update_in_backward:
        return _in_backward(plan)
    made = _copies(plan) if has_copies(plan) else Piece()
    copied = has_copies(plan)
    tensors = "copies" if copied else "weights"
    own = rule_of(plan).program(plan, tensors, optimizer_options(plan))
    if own is not None:
        return made + (Piece() if copied else Piece((TRAINED,))) + own + _scaler(plan)
    name, needed = rule_of(plan).class_of(plan)
    weights = "copies" if copied else "model.parameters()"
    if plan.shares_states and plan.lora:  # frozen weights need no part
        made, weights = Piece((TRAINED,)), "weights"
    if plan.divides_layers:
        made, weights = made + group_weights(weights, plan), "groups"
    optimizer = one_of("optimizer", name, weights, optimizer_options(plan), plan)
    return made + optimizer + Piece((), (needed, TORCH)) + _scaler(plan)


def _scaler(plan: Plan) -> Piece:
    return Piece(('scaler = torch.amp.GradScaler("cuda")',)) if plan.gradient_scaler else Piece()


TRAINED: Final = "weights = [weight for weight in model.parameters() if weight.requires_grad]"


def _copies(plan: Plan) -> Piece:
    if plan.offload is Offload.NONE:
        copied = "weight.detach().float()"
    elif plan.precision is Precision.HALF:
        copied = 'weight.detach().to("cpu", copy=True)'
    else:
        copied = 'weight.detach().to("cpu", torch.float32, copy=True)'
    note = "# The optimizer updates copies of the weights"
    where = "in RAM" if plan.offload is Offload.OPTIMIZER else "in 32 bits"
    return Piece((f"{note} {where}.", TRAINED, f"copies = [{copied} for weight in weights]"))


def _in_backward(plan: Plan) -> Piece:
    """An optimizer for each weight, called by its hook."""
    name, needed = rule_of(plan).class_of(plan)
    made = call(f"    weight: {name}", ["[weight]", *optimizer_options(plan)])
    lines = (
        "# Each weight is updated as soon as its gradient is ready, then the gradient is freed.",
        "optimizers = {",
        *made,
        "    for weight in model.parameters()",
        "    if weight.requires_grad",
        "}",
        "",
        "",
        "def update(weight):",
        "    optimizers[weight].step()",
        "    optimizers[weight].zero_grad()",
        "",
        "",
        "for weight in optimizers:",
        "    weight.register_post_accumulate_grad_hook(update)",
    )
    return Piece(lines, (needed,))


def update_lines(plan: Plan) -> list[str]:
    """The update of all weights, and the end of their gradients."""
    if plan.update_in_backward:
        return []
    if has_copies(plan):
        return _update_copies(plan)
    return [*_steps(plan), *_forget(plan)]


def _steps(plan: Plan) -> list[str]:
    steps = rule_of(plan).steps(plan)
    if not plan.gradient_scaler:
        return steps
    return [*(f"scaler.step({each.removesuffix('.step()')})" for each in steps), "scaler.update()"]


def _forget(plan: Plan) -> list[str]:
    made = "model" if rule_of(plan).has_program else "optimizer"
    return [f"{made}.zero_grad()"]


def _update_copies(plan: Plan) -> list[str]:
    """Gradients to the copies, the update, the copies to the weights."""
    gradient = "weight.grad"
    if plan.offload is Offload.OPTIMIZER:
        gradient += ".cpu()"
    if plan.precision is Precision.MIXED and not plan.lora:
        gradient += ".float()"
    pairs = "for weight, copy in zip(weights, copies, strict=True):"
    inside = [
        pairs,
        "    if weight.grad is not None:",
        f"        copy.grad = {gradient}",
        *_steps(plan),
        pairs,
        f"    weight.copy_({_sent(plan)})",
        "    copy.grad = None",
    ]
    return ["with torch.no_grad():", *indented(inside), "model.zero_grad()"]


def _sent(plan: Plan) -> str:
    """A copy as it goes back to its weight: over the bus in the weight's format."""
    narrowed = plan.offload is Offload.OPTIMIZER and plan.precision is Precision.MIXED
    return "copy.to(weight.dtype)" if narrowed else "copy"
