"""EXAONE 4 (transformers' Exaone4ForCausalLM): places are known where there is a window.

Source: transformers (models/exaone4/modeling_exaone4.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from calculator.architecture import Architecture
from calculator.autograd.graph import Tensor
from calculator.configuration import Configuration
from calculator.layers.basic import RMSNorm
from calculator.layers.grouped import GroupedAttention, Held
from calculator.models.decoder import FULL, Decoder
from calculator.models.gemma import NormedAttention
from calculator.models.model import LLAMAS


@dataclass(eq=False)
class TurnedAttention(NormedAttention):
    """Llama's norms of queries and keys."""

    norm: ClassVar[type[RMSNorm]] = RMSNorm


@dataclass(eq=False)
class UnturnedAttention(TurnedAttention):
    """Queries and keys as they are normed."""

    def turned(self, q: Tensor, k: Tensor, held: Held) -> tuple[Tensor, Tensor]:
        """The same."""
        return q, k


@dataclass(eq=False)
class Exaone4(Decoder):
    """Three layers with a window for each without; norms of what each branch adds."""

    whole_tokens = LLAMAS
    whole_mask = True
    norms_before = False
    norms_after = True

    @classmethod
    def more(cls, c: Configuration) -> Mapping[str, int]:
        """The window."""
        return {"window": cls.window_of(c)}

    @classmethod
    def pattern(cls, c: Configuration, layers: int) -> tuple[str, ...]:
        """Layers with a window, and the last of each turn without; none has one without a size."""
        if not cls.window_of(c):
            c.ignore("sliding_window_pattern")
            return cls.layer_types(c, layers, (FULL,))
        return cls.windows_in_turn(c, layers, c.size("sliding_window_pattern", 4))

    @classmethod
    def attention_of(cls, architecture: Architecture, kind: str) -> type[GroupedAttention]:
        """Places are not known where others have a window."""
        unturned = architecture.has("window") and kind == FULL
        return UnturnedAttention if unturned else TurnedAttention
