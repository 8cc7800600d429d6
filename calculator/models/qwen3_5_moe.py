"""Qwen 3.5 with experts (transformers' Qwen3_5MoeForCausalLM), without kernels of other packages.

Source: transformers (models/qwen3_5_moe/modeling_qwen3_5_moe.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from calculator.configuration import Configuration
from calculator.models.decoder import in_turn
from calculator.models.qwen3_5 import Qwen3_5
from calculator.models.qwen3_next import Qwen3Next


@dataclass(eq=False)
class Qwen3_5Moe(Qwen3Next):  # noqa: N801
    """Qwen 3.5's layers with experts in all of them."""

    title = "Qwen 3.5 MoE"
    counted = "Qwen3_5MoeForCausalLM"
    is_inner = True
    apart = True
    fused_experts = ()  # peft knows no names of its experts
    turning = Qwen3_5.turning

    @classmethod
    def more(cls, c: Configuration) -> Mapping[str, int]:
        """The heads of linear attention and the experts, whose shares are normed."""
        shared = c.size("shared_expert_intermediate_size", 512)
        c.ignore("mlp_only_layers")
        return {**cls.linear(c), **cls.experts(c), "shared_size": shared, "norm_topk_prob": True}

    @classmethod
    def pattern(cls, c: Configuration, layers: int) -> tuple[str, ...]:
        """The kinds of layers by their attention."""
        return in_turn(cls.mixers(c, layers))
