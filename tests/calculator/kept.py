"""Bytes that one more layer keeps for the backward pass, read off two estimates."""

from dataclasses import dataclass, replace
from typing import Any

from calculator.architecture import Architecture
from calculator.catalog import MODELS
from calculator.estimate import estimate
from calculator.plan import Plan
from calculator.report import Phase

# products of these with the models' sizes are whole blocks of the allocator, so nothing is rounded
BATCH, LENGTH, TARGET = 2, 256, 128
LAYERS = 6


@dataclass(frozen=True, slots=True)
class Shape:
    """A model's sizes under the letters of the formulas."""

    d: int
    h: int
    a: int
    ff: int
    r: int
    B: int = BATCH
    S: int = LENGTH
    T: int = TARGET

    @property
    def N(self) -> int:  # noqa: N802
        """Tokens of the micro-batch, those of the encoder in T5."""
        return self.B * self.S

    @property
    def M(self) -> int:  # noqa: N802
        """Tokens of T5's decoder."""
        return self.B * self.T

    @property
    def Q(self) -> int:  # noqa: N802
        """Numbers of all attention scores of a layer."""
        return self.B * self.h * self.S**2


def shape_of(model: str) -> Shape:
    """The sizes of a model of the catalog."""
    m = MODELS[model]
    return Shape(m.hidden_size, m.heads, m.attention_size, m.feed_forward_size, m.rotary_size)


def plan_of(model: str, **options: Any) -> Plan:
    """A plan at the lengths above; an attention kernel and dropout are among `options`."""
    target = TARGET if MODELS[model].decoder_layers else None
    lengths = {"batch_size": BATCH, "sequence_length": LENGTH, "target_length": target}
    return Plan(**{**lengths, **options})


def kept_per_layer(model: str, plan: Plan) -> int:
    """Bytes of activations that one more layer (in T5, one per stack) adds by the time of the loss.

    Where autocast is on this includes the 16-bit copies of the layer's matrices.
    """
    return _kept(_with_layers(model, LAYERS + 1), plan) - _kept(_with_layers(model, LAYERS), plan)


def _with_layers(model: str, layers: int) -> Architecture:
    m = MODELS[model]
    return replace(m, layers=layers, decoder_layers=layers if m.decoder_layers else 0)


def _kept(architecture: Architecture, plan: Plan) -> int:
    return estimate(architecture, plan).phases[Phase.LOSS].activations
