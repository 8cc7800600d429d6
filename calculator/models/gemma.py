"""Gemma 1, 2 and 3's text models (GemmaForCausalLM, Gemma2ForCausalLM, Gemma3ForCausalLM).

Gemma 2's class has eager attention only.

Source: transformers (models/gemma/modeling_gemma.py, models/gemma2/modeling_gemma2.py,
models/gemma3/modeling_gemma3.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from calculator.architecture import Architecture
from calculator.autograd import operations as op
from calculator.autograd.dtypes import FLOAT32
from calculator.autograd.graph import Tensor
from calculator.autograd.mode import Attention, Mode
from calculator.configuration import Configuration
from calculator.layers.basic import LayerNorm, RMSNorm, inverse_root
from calculator.layers.feed_forward import Activation
from calculator.layers.grouped import GroupedAttention, Held
from calculator.layers.layer import Buffer
from calculator.models.decoder import Decoder
from calculator.models.model import KERNELS, LLAMAS
from calculator.parts import Phase


@dataclass(eq=False)
class GemmaNorm(RMSNorm):
    """x / sqrt(mean(x^2) + eps) times 1 + w, all in 32 bits."""

    def __call__(self, x: Tensor) -> Tensor:
        """(..., width) -> (..., width)."""
        normed = self.normed(op.cast(x, FLOAT32))
        factor = op.shift(op.cast(x.tape.weight(self.weight), FLOAT32))
        normed = op.multiply(normed, factor)
        del factor  # dies here
        return op.cast(normed, x.dtype)

    def normed(self, wide: Tensor) -> Tensor:
        """Without the weight."""
        root = inverse_root(wide)[0]
        return op.multiply(wide, root)


@dataclass(eq=False)
class Gemma(Decoder):
    """Scaled embeddings, norms around 1 + w, GELU in the feed-forward layer."""

    whole_tokens = LLAMAS
    before = ("tokens", "scale")
    norm_class: ClassVar[type[RMSNorm | LayerNorm]] = GemmaNorm
    activation = Activation.GELU_TANH
    biases = ("attention_bias", "attention_bias", "")

    def __post_init__(self) -> None:
        super().__post_init__()
        self.scale = Buffer((), FLOAT32)

    def embedded(self, ids: Tensor) -> Tensor:
        """Embeddings times the root of the width."""
        return self.tokens(ids, scaled=True, by_buffer=True)


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

    kernels: ClassVar[tuple[Attention, ...]] = (Attention.EAGER, Attention.SDPA)
    before_eager = "Before transformers 5.21, its sdpa is PyTorch's, which leaves out the soft cap."
    both_masks = True
    norms_after = True
    turn = 2
    capped_by_default: ClassVar[bool] = True

    @classmethod
    def more(cls, c: Configuration) -> Mapping[str, int]:
        """The window, and which soft caps there are; null is none."""
        caps = {key: cls._has_cap(c, key) for key in ("attn", "final")}
        return {**super().more(c), **caps}

    @classmethod
    def _has_cap(cls, c: Configuration, place: str) -> bool:
        key = f"{place}_logit_softcapping"
        return c.value(key) is not None or (cls.capped_by_default and not c.has_null(key))

    @classmethod
    def attention_of(cls, architecture: Architecture, kind: str) -> type[GroupedAttention]:
        """With a soft cap, or without."""
        return CappedAttention if architecture.has("attn") else EagerAttention

    @classmethod
    def parts_beside(cls, architecture: Architecture) -> Mapping[str, Any]:
        """Logits that are capped or not."""
        return {"capped": architecture.has("final")}

    def logits(self, hidden: Tensor) -> Tensor:
        """cap * tanh(logits / cap), where there is a cap."""
        logits = super().logits(hidden)
        if not self.capped:
            return logits
        hidden.tape.ledger.begin(Phase.LOSS)
        logits = op.scale(logits)
        logits = op.tanh(logits)
        return op.scale(logits)


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

    is_inner = True
    kernels = KERNELS
    turn = 6
    tables_apart = True
    capped_by_default = False

    @classmethod
    def more(cls, c: Configuration) -> Mapping[str, int]:
        """As Gemma 2's; this class has no soft cap of attention's scores."""
        return {**super().more(c), "attn": 0}

    @classmethod
    def attention_of(cls, architecture: Architecture, kind: str) -> type[GroupedAttention]:
        """Norms of queries and keys."""
        return NormedAttention
