"""Gemma 2 (transformers' Gemma2ForCausalLM), whose class has eager attention only.

Source: transformers (models/gemma2/modeling_gemma2.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from calculator.architecture import Architecture
from calculator.autograd import operations as op
from calculator.autograd.graph import Tensor
from calculator.autograd.mode import Attention, Mode
from calculator.configuration import Configuration
from calculator.layers.decoder import DecoderBlock
from calculator.layers.grouped import GroupedAttention
from calculator.layers.heads import Heads
from calculator.layers.pairs import CLASSIFIERS
from calculator.layers.stack import Block
from calculator.models.decoder import HIDDEN, SLIDING, heads_of
from calculator.models.gemma import Gemma, GemmaNorm
from calculator.parts import Phase


@dataclass(eq=False)
class EagerAttention(GroupedAttention):
    """Attention in plain operations alone, whatever the plan says."""

    def kernel(self, mode: Mode, mask: Tensor | None) -> Attention:
        """Eager always."""
        return Attention.EAGER


@dataclass(eq=False)
class CappedAttention(EagerAttention):
    """Scores between plus and minus a cap: cap * tanh(scores / cap)."""

    caps = (op.scale, op.tanh, op.scale)


@dataclass(eq=False)
class Gemma2(Gemma):
    """Every other layer has a window; norms before and after both branches; soft caps."""

    capped: bool = False

    title = "Gemma 2"
    counted = "Gemma2ForCausalLM"
    heads: ClassVar[Heads] = CLASSIFIERS
    lora_targets = ("q_proj", "v_proj")
    kernels: ClassVar[tuple[Attention, ...]] = (Attention.EAGER, Attention.SDPA)
    both_masks = True
    capped_by_default: ClassVar[bool] = True
    turn: ClassVar[int] = 2

    @classmethod
    def more(cls, c: Configuration) -> Mapping[str, int]:
        """The window, and which soft caps there are; null is none."""
        caps = {key: cls._has_cap(c, key) for key in ("attn", "final")}
        return {**super().more(c), "window": cls.window_of(c), **caps}

    @classmethod
    def _has_cap(cls, c: Configuration, place: str) -> bool:
        key = f"{place}_logit_softcapping"
        return c.value(key) is not None or (cls.capped_by_default and not c.has_null(key))

    @classmethod
    def pattern(cls, c: Configuration, layers: int) -> tuple[str, ...]:
        """Layers with a window, and the last of each turn without."""
        return cls.windows_in_turn(c, layers, c.size("sliding_window_pattern", cls.turn))

    @classmethod
    def attention(cls, architecture: Architecture, kind: str) -> GroupedAttention:
        """With a soft cap, or without."""
        made = CappedAttention if architecture.has("attn") else EagerAttention
        biased = architecture.has("attention_bias")
        return made(HIDDEN, heads_of(architecture), biased, biased, kind == SLIDING)

    @classmethod
    def block(cls, architecture: Architecture, kind: str) -> Block:
        """Norms on both sides of both branches."""
        attention, feed = cls.attention(architecture, kind), cls.feed_forward(architecture)
        norms = [GemmaNorm(HIDDEN) for _ in range(4)]
        return DecoderBlock(attention, feed, (norms[0], norms[1]), (norms[2], norms[3]))

    @classmethod
    def build(cls, architecture: Architecture, tied: bool) -> "Gemma2":
        """The tree for an architecture, its logits capped or not."""
        made = super().build(architecture, tied)
        assert isinstance(made, Gemma2)
        return replace(made, capped=architecture.has("final"))

    def logits(self, hidden: Tensor) -> Tensor:
        """cap * tanh(logits / cap), where there is a cap."""
        logits = super().logits(hidden)
        if not self.capped:
            return logits
        hidden.tape.ledger.begin(Phase.LOSS)
        logits = op.scale(logits)
        logits = op.tanh(logits)
        return op.scale(logits)
