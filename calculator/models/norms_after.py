"""Types with norms after attention and feed-forward: OLMo 2 and 3, and EXAONE 4.

Counted are Olmo2ForCausalLM, Olmo3ForCausalLM and Exaone4ForCausalLM.

Source: transformers (models/olmo2/modeling_olmo2.py, models/olmo3/modeling_olmo3.py,
models/exaone4/modeling_exaone4.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from calculator.architecture import Architecture
from calculator.autograd import operations as op
from calculator.autograd.graph import Tensor
from calculator.autograd.sizes import Size
from calculator.configuration import Configuration
from calculator.layers.basic import RMSNorm, WideNorm
from calculator.layers.grouped import GroupedAttention, Held
from calculator.layers.layer import Unary
from calculator.models.decoder import FULL, Decoder
from calculator.models.gemma import NormedAttention
from calculator.models.model import LLAMAS


@dataclass(eq=False)
class Olmo2Attention(GroupedAttention):
    """All heads of queries, and all of keys, are normed together; they turn in 32 bits."""

    norm: ClassVar[type[RMSNorm]] = WideNorm

    def __post_init__(self) -> None:
        super().__post_init__()
        queries, keys = self.heads.queries, self.heads.keys
        self.query_norm, self.key_norm = (
            self.norm(each * self.heads.width) for each in (queries, keys)
        )

    def heads_of(
        self, x: Tensor, heads: Size, norm: Unary | None = None, copied: bool = True
    ) -> Tensor:
        """(batch, length, heads * width) -> (batch, heads, length, width), normed before."""
        return super().heads_of(x if norm is None else norm(x), heads, copied=copied)

    def turned(self, q: Tensor, k: Tensor, held: Held) -> tuple[Tensor, Tensor]:
        """Queries and keys at their places, in their own format again."""
        wide_q, wide_k = super().turned(q, k, held)
        return op.cast(wide_q, q.dtype), op.cast(wide_k, k.dtype)


@dataclass(eq=False)
class Olmo2(Decoder):
    """Norms of queries and keys, and of what each branch adds."""

    whole_layers = "all heads of a token are normed together, so transformers gathers them"
    norm_class = WideNorm
    attention_class = Olmo2Attention
    biases = ("attention_bias", "attention_bias", "")
    norms_before = False
    norms_after = True
    wide_tables = True


@dataclass(eq=False)
class Olmo3(Olmo2):
    """Three layers with a window for each without, and rotary tables for both kinds."""

    both_masks = True
    tables_apart = True

    @classmethod
    def more(cls, c: Configuration) -> Mapping[str, int]:
        """The window, and whether projections have biases."""
        return {**super().more(c), "window": cls.window_of(c)}

    @classmethod
    def pattern(cls, c: Configuration, layers: int) -> tuple[str, ...]:
        """Layers with a window, and every fourth without."""
        return cls.windows_in_turn(c, layers, 4)


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
    turn = 4
    norms_before = False
    norms_after = True

    @classmethod
    def pattern(cls, c: Configuration, layers: int) -> tuple[str, ...]:
        """Layers with a window in turn with others; none has one without a size."""
        if not cls.window_of(c):
            c.ignore("sliding_window_pattern")
            return cls.layer_types(c, layers, (FULL,))
        return super().pattern(c, layers)

    @classmethod
    def attention_of(cls, architecture: Architecture, kind: str) -> type[GroupedAttention]:
        """Places are not known where others have a window."""
        unturned = architecture.has("window") and kind == FULL
        return UnturnedAttention if unturned else TurnedAttention
