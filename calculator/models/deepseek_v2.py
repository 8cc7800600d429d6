"""DeepSeek V2 (transformers' DeepseekV2ForCausalLM).

Source: transformers (models/deepseek_v2/modeling_deepseek_v2.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from calculator.architecture import Architecture
from calculator.configuration import Configuration
from calculator.errors import InputError
from calculator.layers.experts import Router, ScaledRouter
from calculator.layers.feed_forward import GatedFeedForward
from calculator.layers.latent import ComplexAttention, ComplexRotary, LatentAttention
from calculator.layers.rotary import Rotary
from calculator.models.decoder import FEED, HIDDEN
from calculator.models.deepseek_v3 import TURNED, DeepseekV3
from calculator.models.sparse import CHOICE, GROUPS, groups_of


@dataclass(eq=False)
class DeepseekV2(DeepseekV3):
    """Channels turned as complex numbers; experts by their probabilities among all."""

    title = "DeepSeek V2"
    counted = "DeepseekV2ForCausalLM"
    dense = 0
    latent: ClassVar[type[LatentAttention]] = ComplexAttention

    @classmethod
    def routing(cls, c: Configuration) -> Mapping[str, int]:
        """Groups of experts, where they count, and biases."""
        if c.value("num_experts_per_tok") is None:
            raise InputError("num_experts_per_tok", None, "must be given: the class has no default")
        c.ignore("norm_topk_prob")
        c.only("scoring_func", "softmax")
        methods = ("greedy", "group_limited_greedy")
        limited = c.text("topk_method", methods[0], methods) == methods[1]
        biased = c.flag("mlp_bias", False)
        return {**groups_of(c, 1, 1, shared=2), "limited": limited, "mlp_bias": biased}

    @classmethod
    def turning(cls, architecture: Architecture) -> Rotary:
        """One table of complex numbers."""
        del architecture
        return ComplexRotary(TURNED)

    @classmethod
    def feed_forward(cls, architecture: Architecture) -> GatedFeedForward:
        """All three projections with biases, or none."""
        return GatedFeedForward(HIDDEN, FEED, biased=architecture.has("mlp_bias"))

    @classmethod
    def router(cls, architecture: Architecture) -> Router:
        """Probabilities among all experts, of which only those of the best groups may count."""
        return ScaledRouter(HIDDEN, CHOICE, GROUPS if architecture.has("limited") else None)
