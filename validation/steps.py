"""One training step with its four phases: forward, loss, backward, update."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol, assert_never
from unittest.mock import patch

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from transformers import masking_utils

from calculator.plan import Attention, Checkpointing, Loop, Plan, Precision
from validation.distributed import quiet
from validation.models import Task, half_type
from validation.optimizers import Updater
from validation.pipeline import PipelineTask
from validation.results import kept_results
from validation.storage import Phase


class Watcher(Protocol):
    """Receives events about the step's progress."""

    @property
    def phase(self) -> Phase:
        """The phase that the step is in."""

    def start_micro_step(self) -> None:
        """A forward pass begins."""

    def start_phase(self, phase: Phase) -> None:
        """A phase begins."""

    def keep(self) -> None:
        """Forward is over: what lives now is kept for backward."""

    def gradient(self, parameter: torch.Tensor) -> None:
        """The gradient of a parameter exists."""

    def backward_done(self) -> None:
        """All gradients exist."""


@dataclass
class Outputs:
    """The model's last outputs, as the training loop of a plan holds them."""

    last: Any = None

    @property
    def tensors(self) -> list[torch.Tensor]:
        """The tensors among them."""
        found = () if self.last is None else self.last.values()
        return [one for one in found if isinstance(one, torch.Tensor)]


def run_step(
    task: Task, updater: Updater, plan: Plan, autocast: Any, watcher: Watcher, outputs: Outputs
) -> None:
    """Forward, loss and backward for each micro-batch, then the update; gradients are freed."""
    with _followed(task, watcher, updater):
        if isinstance(task, PipelineTask):
            task.run(autocast, watcher)
        else:
            _micro_steps(task, updater, plan, autocast, watcher, outputs)
        watcher.backward_done()
        watcher.start_phase(Phase.UPDATE)
        updater.step()
    task.model.zero_grad(set_to_none=True)
    if plan.loop is Loop.FUNCTION:
        outputs.last = None


def _micro_steps(
    task: Task, updater: Updater, plan: Plan, autocast: Any, watcher: Watcher, outputs: Outputs
) -> None:
    for micro_step in range(1, plan.accumulation + 1):
        watcher.start_micro_step()
        with quiet(task.model, last=micro_step == plan.accumulation):
            with autocast():
                loss = _loss(task, plan, outputs)
            watcher.keep()
            updater.scaled(loss).backward()
        del loss


def _loss(task: Task, plan: Plan, outputs: Outputs) -> torch.Tensor:
    """One forward pass; a loop of one's own holds all that it returns."""
    if plan.loop is Loop.TRAINER:
        return task.model(**task.inputs).loss  # type: ignore[no-any-return]
    outputs.last = task.model(**task.inputs)
    return outputs.last.loss  # type: ignore[no-any-return]


@contextmanager
def _followed(task: Task, watcher: Watcher, updater: Updater) -> Iterator[None]:
    """Tell the watcher when the logits exist, when their gradient does, and each weight's.

    The updater hears of each weight's gradient after it, and may update the weight.
    """

    def gradient_made(parameter: torch.Tensor) -> None:
        watcher.gradient(parameter)
        updater.gradient_made(parameter)

    def logits_made(logits: torch.Tensor) -> None:
        if watcher.phase is Phase.FORWARD:  # two heads: the loss begins with the first
            watcher.start_phase(Phase.LOSS)
        logits.register_hook(logits_gradient_made)

    def logits_gradient_made(_gradient: torch.Tensor) -> None:
        if watcher.phase is Phase.LOSS:
            watcher.start_phase(Phase.BACKWARD)

    handles = [
        parameter.register_post_accumulate_grad_hook(gradient_made)
        for parameter in task.model.parameters()
        if parameter.requires_grad
    ]
    try:
        with task.watch(logits_made):
            yield
    finally:
        for handle in handles:
            handle.remove()


def autocast_for(plan: Plan, device: str) -> Any:
    """Context for the forward pass, made for each micro-step."""
    match plan.precision:
        case Precision.AMP:
            return lambda: torch.autocast(device, half_type(plan))
        case Precision.FP32 | Precision.MIXED | Precision.HALF:
            return nullcontext
        case other:
            assert_never(other)


@contextmanager
def kernels(attention: Attention) -> Iterator[None]:
    """Allow scaled_dot_product_attention the kernel that the plan names.

    Flash gets no mask, as transformers gives flash-attn none: that one is given the window, and
    has the buffers of PyTorch's, which was made from it.
    """
    with ExitStack() as stack:
        match attention:
            case Attention.FLASH:
                masks = masking_utils.ALL_MASK_ATTENTION_FUNCTIONS._global_mapping
                stack.enter_context(patch.dict(masks, sdpa=masking_utils.flash_attention_mask))
                stack.enter_context(sdpa_kernel(SDPBackend.FLASH_ATTENTION))
            case Attention.EFFICIENT:
                stack.enter_context(sdpa_kernel(SDPBackend.EFFICIENT_ATTENTION))
            case Attention.MATH:
                stack.enter_context(sdpa_kernel(SDPBackend.MATH))
            case Attention.EAGER | Attention.SDPA:
                pass
            case other:
                assert_never(other)
        yield


def enable_checkpointing(model: Any, plan: Plan, preserve_rng: bool) -> None:
    """Throw away and recompute: layers, all or some, or each layer's attention core."""
    match plan.checkpointing:
        case Checkpointing.NONE:
            pass
        case Checkpointing.FULL | Checkpointing.OPERATIONS:
            given: dict[str, Any] = {"use_reentrant": False, "preserve_rng_state": preserve_rng}
            if plan.checkpointing is Checkpointing.OPERATIONS:
                given["context_fn"] = kept_results
            model.gradient_checkpointing_enable(given, every_n_layers=plan.checkpoint_every)
        case Checkpointing.SELECTIVE:
            from validation.selective import checkpoint_attention

            checkpoint_attention(model, preserve_rng)
        case other:
            assert_never(other)
