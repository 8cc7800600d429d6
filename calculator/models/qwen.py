"""Qwen 1.5, 2, 2.5 and 3: dense models, and those with experts.

Counted are Qwen2ForCausalLM, Qwen3ForCausalLM, Qwen2MoeForCausalLM and Qwen3MoeForCausalLM.

Source: transformers (models/qwen2/modeling_qwen2.py, models/qwen3/modeling_qwen3.py,
models/qwen2_moe/modeling_qwen2_moe.py, models/qwen3_moe/modeling_qwen3_moe.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from calculator.autograd.dtypes import BOOL, DType
from calculator.autograd.graph import Recorder, Tensor
from calculator.autograd.mode import SEQUENCE, Attention
from calculator.autograd.sizes import ONE
from calculator.configuration import LONGEST_SEQUENCE, Configuration
from calculator.models.decoder import FULL, SLIDING, Decoder, in_turn
from calculator.models.keys import own_numbers
from calculator.models.model import ALWAYS
from calculator.models.sparse import (
    DENSE,
    INNER,
    SPARSE,
    GatedSparseDecoder,
    SparseDecoder,
    dense_places,
)


@dataclass(eq=False)
class Qwen2(Decoder):
    """Biases of queries, keys and values; the upper layers may have a window."""

    whole_mask = True
    biases = (ALWAYS, "", "")

    @classmethod
    def more(cls, c: Configuration) -> Mapping[str, int]:
        """The window, which is used where the configuration says so."""
        window = c.size("sliding_window", 4096, most=LONGEST_SEQUENCE)
        used = c.flag("use_sliding_window", False) and not c.has_null("sliding_window")
        c.only("use_mrope", False)
        return {"window": window * used, **own_numbers(cls, c)}

    @classmethod
    def pattern(cls, c: Configuration, layers: int) -> tuple[str, ...]:
        """Lower layers without a window, upper ones with it."""
        below = c.count("max_window_layers", 28)
        windowed = cls.more(c)["window"] > 0 and below < layers
        upper = (FULL,) * below + (SLIDING,) * (layers - below) if windowed else (FULL,)
        return cls.layer_types(c, layers, upper)


@dataclass(eq=False)
class Qwen3(Qwen2):
    """Norms of each head's queries and keys; biases in all projections or in none."""

    biases = ("attention_bias", "attention_bias", "")
    normed_heads = ALWAYS


@dataclass(eq=False)
class Qwen3Moe(SparseDecoder, Qwen3):
    """Experts in all layers, in some of them in turn, or in all but those that are named."""

    expert_width = INNER

    @classmethod
    def pattern(cls, c: Configuration, layers: int) -> tuple[str, ...]:
        """The layers with experts: every so manieth, but for those that are named."""
        dense = dense_places(c, layers)
        return in_turn([DENSE if place in dense else SPARSE for place in range(layers)])


@dataclass(eq=False)
class Qwen2Moe(GatedSparseDecoder, Qwen3Moe):
    """Qwen 2's attention; beside the experts a layer that all tokens pass by a gate."""

    fused_experts = ()  # peft knows no names of its experts
    biases = ("qkv_bias", "", "")
    normed_heads = ""

    def masks(self, t: Recorder, dtype: DType) -> Mapping[bool, Tensor | None]:
        """The class makes a mask with a window too, which no layer uses."""
        found = super().masks(t, dtype)
        if t.mode.attention is Attention.FLASH:
            return found
        is_eager = t.mode.attention is Attention.EAGER
        batch, kind = (t.mode.batch, dtype) if is_eager else (ONE, BOOL)
        return {**found, True: t.empty((batch, ONE, SEQUENCE, SEQUENCE), kind)}
