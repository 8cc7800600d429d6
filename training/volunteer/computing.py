"""Gradients of micro-batches, added up in the parameters' `grad` until the run makes a step.

In float16 gradients that are too small for it would vanish, so the loss is multiplied by a scale
first; those that become too large for it overflow. A micro-batch that overflows is as if it had
never been: its gradients are computed beside the sum and are not added, its samples are not
counted, neither by us nor by the swarm, and the scale is halved. The scale belongs to the device.
Source: Micikevicius et al. 2018, arXiv:1710.03740, section 3.2.
"""

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

import torch
from torch import nn

from training.data.streaming import Batch
from training.volunteer.precision import Precision

FIRST_SCALE, LARGEST_SCALE = 2.0**16, 2.0**24
GROWTH_INTERVAL = 2000  # micro-batches without an overflow, after which the scale is doubled


class Outcome(Enum):
    """Possible outcomes of a micro-batch."""

    ADDED = auto()
    OVERFLOWED = auto()  # left out: its gradients do not fit into float16 at this scale
    NOT_FINITE = auto()  # left out: its loss is no number
    SPOILT = auto()  # its loss is no number, and its gradients are in the sum already


@dataclass(frozen=True, slots=True)
class Computed:
    """The outcome of a micro-batch, and its loss."""

    outcome: Outcome
    loss: float


class Later:
    """A number that the device has yet to compute: who asks for it waits for that alone."""

    def __init__(self, value: torch.Tensor) -> None:
        self._event: torch.cuda.Event | None = None
        self._value = value.detach()
        if value.device.type == "cuda":
            self._value = torch.empty((), dtype=value.dtype, pin_memory=True)
            self._value.copy_(value.detach(), non_blocking=True)
            self._event = torch.cuda.Event()
            self._event.record()

    def is_there(self) -> bool:
        """True if asking for it takes no time."""
        return self._event is None or self._event.query()

    def read(self) -> float:
        """The number."""
        if self._event is not None:
            self._event.synchronize()
        return float(self._value)


class Computing:
    """Adds micro-batches' gradients to those that the parameters have.

    Attributes:
        model: called with a batch, gives an output with a `loss`.
        scale: by which losses are multiplied, 1 but in float16.
    """

    def __init__(self, model: nn.Module, device: torch.device, precision: Precision) -> None:
        self.model: Callable[..., Any] = model
        self.device, self.precision = device, precision
        self.scale = FIRST_SCALE if precision is Precision.FLOAT16 else 1.0
        self._parameters = [p for p in model.parameters() if p.requires_grad]
        self._good = 0  # micro-batches since the scale was last changed

    def add(self, batch: Batch) -> Computed:
        """Compute a micro-batch and add its gradients, where they are sound."""
        moved = {key: t.to(self.device, non_blocking=True) for key, t in batch.items()}
        with self._autocast():
            loss: torch.Tensor = self.model(**moved).loss
        if self.precision is Precision.FLOAT16:
            return self._add_scaled(loss)
        # The number is read after the backward pass is under way, so that the device is not idle
        # meanwhile; where it is there already, as on a processor, a bad one costs nothing.
        later = Later(loss)
        if later.is_there() and not math.isfinite(later.read()):
            return Computed(Outcome.NOT_FINITE, later.read())
        loss.backward()
        value = later.read()
        return Computed(Outcome.ADDED if math.isfinite(value) else Outcome.SPOILT, value)

    def _autocast(self) -> AbstractContextManager[Any]:
        if self.precision is Precision.FLOAT32:
            return nullcontext()
        return torch.autocast(self.device.type, getattr(torch, self.precision))

    def _add_scaled(self, loss: torch.Tensor) -> Computed:
        sums = [parameter.grad for parameter in self._parameters]
        for parameter in self._parameters:
            parameter.grad = None
        try:
            (loss * self.scale).backward()
            new = [parameter.grad for parameter in self._parameters]
        finally:
            for parameter, kept in zip(self._parameters, sums, strict=True):
                parameter.grad = kept
        norms = [torch.linalg.vector_norm(g, dtype=torch.float32) for g in new if g is not None]
        # The one time that the device is waited for: whether the samples count depends on it.
        value, norm = torch.stack([loss.detach().float(), torch.stack(norms).norm()]).tolist()
        if not math.isfinite(value):
            return Computed(Outcome.NOT_FINITE, value)
        if not math.isfinite(norm):
            self._shrink()
            return Computed(Outcome.OVERFLOWED, value)
        self._take(new)
        self._grow()
        return Computed(Outcome.ADDED, value)

    @torch.no_grad()
    def _take(self, new: list[torch.Tensor | None]) -> None:
        for parameter, gradient in zip(self._parameters, new, strict=True):
            if gradient is None:
                continue
            if parameter.grad is None:
                parameter.grad = gradient.div_(self.scale)
            else:
                parameter.grad.add_(gradient, alpha=1 / self.scale)

    def _shrink(self) -> None:
        self.scale, self._good = max(self.scale / 2, 1.0), 0

    def _grow(self) -> None:
        self._good += 1
        if self._good >= GROWTH_INTERVAL:
            self.scale, self._good = min(2 * self.scale, LARGEST_SCALE), 0
