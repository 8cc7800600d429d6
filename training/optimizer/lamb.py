r"""LAMB with its states in CPU memory, in 8 bits, updated a chunk at a time.

For each tensor w with gradient g, after all gradients together are clipped to a global norm:

.. math::
    m \leftarrow \beta_1 m + (1 - \beta_1) g, \quad
    v \leftarrow \beta_2 v + (1 - \beta_2) g^2, \quad
    u = \frac{m}{\sqrt{v} + \epsilon} + \lambda w, \quad
    w \leftarrow w - \eta \frac{\min(\lVert w \rVert, c)}{\lVert u \rVert} u

without bias correction; the ratio is 1 where a norm is zero.
Source: You et al. 2020, arXiv:1904.00962, algorithm 2.

States in 8 bits are bitsandbytes' block-wise dynamic quantisation, on the CPU: each block of
elements is divided by its largest magnitude; each quotient becomes the index of the nearest of 256
fixed levels, which lie dense around zero. Source: Dettmers et al. 2021, arXiv:2110.02861,
sections 2 and 3. Importing this module is cheap: it does not load bitsandbytes.
"""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR

from calculator.errors import InputError
from training.run.recipes import OptimizerSettings, Recipe, learning_rate_factor

logger = logging.getLogger(__name__)


class Lamb(torch.optim.Optimizer):
    """LAMB whose settings are a recipe's; parameters may be on any device.

    States of tensors with fewer elements than `smallest_quantised` stay in 32 bits. The first
    step on nothing but zero gradients only creates states: the averaging library takes such a
    step to learn their shapes, and weight decay would shrink the weights. A step on gradients
    that are not finite changes nothing.
    """

    def __init__(self, params: Iterable[Any], settings: OptimizerSettings) -> None:
        if settings.chunk_size % settings.block_size:
            rule = f"must be a multiple of block_size, {settings.block_size}"
            raise InputError("chunk_size", settings.chunk_size, rule)
        self.settings = settings
        defaults = {"lr": settings.learning_rate, "weight_decay": settings.weight_decay}
        super().__init__(params, defaults)

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient; gradients are left as they are."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        pairs = [(p, group) for group in self.param_groups for p in group["params"]]
        pairs = [(p, group) for p, group in pairs if p.grad is not None]
        is_first = any(p not in self.state for p, _ in pairs)
        for parameter, _ in pairs:
            if parameter not in self.state:
                self.state[parameter] = self._new_state(parameter)
        norm = _global_norm([p.grad for p, _ in pairs])
        if not norm.isfinite():
            logger.warning("step skipped: the gradients are not finite (norm %s)", norm.item())
            return loss
        if is_first and norm == 0:
            return loss
        factor = min(1.0, self.settings.max_gradient_norm / max(norm.item(), 1e-30))
        for parameter, group in pairs:
            self._update(parameter, group, factor)
        return loss

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load states with the types they were saved in; torch would turn 8-bit codes to floats."""
        super().load_state_dict(state_dict)
        parameters = [p for group in self.param_groups for p in group["params"]]
        indices = [i for group in state_dict["param_groups"] for i in group["params"]]
        for parameter, index in zip(parameters, indices, strict=True):
            if index in state_dict["state"]:
                saved = state_dict["state"][index]
                self.state[parameter] = {key: t.clone().cpu() for key, t in saved.items()}

    def _new_state(self, parameter: torch.Tensor) -> dict[str, torch.Tensor]:
        settings, count = self.settings, parameter.numel()
        if settings.state_bits == 32 or count < settings.smallest_quantised:
            return {"momentum": torch.zeros(count), "variance": torch.zeros(count)}
        state = {}
        for name in _SIGNED:
            zeros = quantise(torch.zeros(count), _SIGNED[name], settings.block_size)
            state[name], state[f"{name}_scales"] = zeros.codes, zeros.scales
        return state

    def _update(self, parameter: torch.Tensor, group: dict[str, Any], factor: float) -> None:
        settings, state = self.settings, self.state[parameter]
        weights = parameter.detach().reshape(-1)
        gradient = parameter.grad.reshape(-1)  # type: ignore[union-attr]
        update = torch.empty(weights.shape, dtype=torch.float32)
        for start in range(0, len(weights), settings.chunk_size):
            chunk = slice(start, min(start + settings.chunk_size, len(weights)))
            chunk_gradient = gradient[chunk].to("cpu", torch.float32) * factor
            momentum = self._advance(state, "momentum", chunk, chunk_gradient)
            variance = self._advance(state, "variance", chunk, chunk_gradient.square_())
            torch.div(momentum, variance.sqrt_().add_(settings.epsilon), out=update[chunk])
            if group["weight_decay"]:
                update[chunk].add_(weights[chunk].cpu(), alpha=group["weight_decay"])
        weight_norm = weights.norm(dtype=torch.float32).clamp_max(settings.max_weight_norm)
        update_norm = update.norm()
        ratio = (weight_norm.cpu() / update_norm).item() if weight_norm > 0 < update_norm else 1.0
        step = update.to(parameter.device).view_as(parameter)
        parameter.add_(step.to(parameter.dtype), alpha=-group["lr"] * ratio)

    def _advance(
        self, state: dict[str, torch.Tensor], name: str, chunk: slice, news: torch.Tensor
    ) -> torch.Tensor:
        """Move the running mean `name` of a chunk towards `news` and store it: its new values."""
        block_size, signed = self.settings.block_size, _SIGNED[name]
        keep = self.settings.betas[0 if name == "momentum" else 1]
        if f"{name}_scales" not in state:
            mean = state[name][chunk].mul_(keep).add_(news, alpha=1 - keep)
            return mean.clone()  # the caller works in place
        blocks = slice(chunk.start // block_size, -(-chunk.stop // block_size))
        scales = state[f"{name}_scales"]
        old = QuantisedTensor(state[name][chunk].clone(), scales[blocks].clone())
        mean = dequantise(old, signed, block_size).mul_(keep).add_(news, alpha=1 - keep)
        new = quantise(mean, signed, block_size)
        state[name][chunk], scales[blocks] = new.codes, new.scales
        return mean


_SIGNED = {"momentum": True, "variance": False}


def parameter_groups(model: nn.Module, recipe: Recipe) -> list[dict[str, Any]]:
    """The trained parameters in two groups: matrices, which decay, and vectors, which do not."""
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    matrices = [parameter for parameter in trained if parameter.ndim >= 2]
    vectors = [parameter for parameter in trained if parameter.ndim < 2]
    return [
        {"params": matrices, "weight_decay": recipe.optimizer.weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]


def build_optimizer(recipe: Recipe, params: Iterable[Any]) -> Lamb:
    """The recipe's optimizer for parameters or groups of them (`parameter_groups`)."""
    return Lamb(params, recipe.optimizer)


def build_schedule(recipe: Recipe, optimizer: torch.optim.Optimizer) -> LambdaLR:
    """The recipe's schedule: call `step` after each global step."""
    return LambdaLR(optimizer, lambda step: learning_rate_factor(recipe.schedule, step))


def _global_norm(gradients: list[torch.Tensor]) -> torch.Tensor:
    if not gradients:
        return torch.zeros(())
    norms = [torch.linalg.vector_norm(gradient, dtype=torch.float32) for gradient in gradients]
    total: torch.Tensor = torch.linalg.vector_norm(torch.stack([norm.cpu() for norm in norms]))
    return total


@lru_cache(maxsize=2)
def dynamic_levels(signed: bool) -> torch.Tensor:
    """The 256 levels in rising order: float32 [256], in [-1, 1] or [0, 1]."""
    from bitsandbytes.functional import create_dynamic_map

    levels: torch.Tensor = create_dynamic_map(signed)
    return levels


@dataclass(slots=True)
class QuantisedTensor:
    """Codes uint8 [n] and, for each block of elements, its largest magnitude: float32 [blocks]."""

    codes: torch.Tensor
    scales: torch.Tensor


def quantise(values: torch.Tensor, signed: bool, block_size: int) -> QuantisedTensor:
    """Quantise a flat float32 tensor on the CPU."""
    from bitsandbytes.functional import quantize_blockwise

    levels = dynamic_levels(signed)
    codes, state = quantize_blockwise(values, code=levels, blocksize=block_size)
    return QuantisedTensor(codes, state.absmax)


def dequantise(tensor: QuantisedTensor, signed: bool, block_size: int) -> torch.Tensor:
    """The float32 values that a quantised tensor stands for: [n]."""
    from bitsandbytes.functional import dequantize_blockwise

    values: torch.Tensor = dequantize_blockwise(
        tensor.codes, absmax=tensor.scales, code=dynamic_levels(signed), blocksize=block_size
    )
    return values
