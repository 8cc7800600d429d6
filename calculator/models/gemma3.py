"""Gemma 3's text models (transformers' Gemma3ForCausalLM).

Source: transformers (models/gemma3/modeling_gemma3.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from calculator.architecture import Architecture
from calculator.autograd.dtypes import DType
from calculator.autograd.graph import Recorder, Tensor
from calculator.autograd.mode import Attention
from calculator.configuration import Configuration
from calculator.layers.basic import RMSNorm
from calculator.layers.grouped import GroupedAttention, Held
from calculator.layers.rotary import Rotary, Tables
from calculator.models.decoder import HEAD, HIDDEN, SLIDING, heads_of
from calculator.models.gemma import GemmaNorm
from calculator.models.gemma2 import Gemma2
from calculator.models.model import KERNELS


@dataclass(eq=False)
class NormedAttention(GroupedAttention):
    """Queries and keys that are normed after all three projections."""

    norm: ClassVar[type[RMSNorm]] = GemmaNorm

    def __post_init__(self) -> None:
        super().__post_init__()
        self.queries, self.keys = self.norm(self.heads.width), self.norm(self.heads.width)

    def projected(self, x: Tensor, held: Held) -> tuple[Tensor, Tensor, Tensor]:
        """Heads of queries, keys and values."""
        q, k, v = super().projected(x, held)
        q = self.queries(q)
        k = self.keys(k)
        return q, k, v


@dataclass(eq=False)
class Gemma3(Gemma2):
    """Five layers with a window for each without, and rotary tables for both kinds."""

    title = "Gemma 3"
    counted = "Gemma3ForCausalLM"
    is_inner = True
    lora_targets = ("q_proj", "v_proj")
    kernels: ClassVar[tuple[Attention, ...]] = KERNELS
    capped_by_default: ClassVar[bool] = False
    turn: ClassVar[int] = 6

    @classmethod
    def more(cls, c: Configuration) -> Mapping[str, int]:
        """As Gemma 2's; this class has no soft cap of attention's scores."""
        return {**super().more(c), "attn": 0}

    @classmethod
    def attention(cls, architecture: Architecture, kind: str) -> NormedAttention:
        """Norms of queries and keys."""
        biased = architecture.has("attention_bias")
        return NormedAttention(HIDDEN, heads_of(architecture), biased, biased, kind == SLIDING)

    @classmethod
    def turning(cls, architecture: Architecture) -> Rotary:
        """Tables for each kind of layer."""
        return Rotary(HEAD, len(set(architecture.pattern)))

    def tables(self, t: Recorder, positions: Tensor, dtype: DType) -> Mapping[bool, Tables]:
        """A pair for each kind of layer."""
        return self.tables_of_kinds(t, positions, dtype)
