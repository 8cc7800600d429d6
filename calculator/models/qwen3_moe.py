"""Qwen 3 with experts (transformers' Qwen3MoeForCausalLM).

Source: transformers (models/qwen3_moe/modeling_qwen3_moe.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from calculator.architecture import Architecture
from calculator.configuration import Configuration
from calculator.layers.experts import Experts, Mixture, SoftmaxRouter
from calculator.models.decoder import HIDDEN, in_turn
from calculator.models.qwen3 import Qwen3
from calculator.models.sparse import CHOICE, DENSE, INNER, SPARSE, SparseDecoder, dense_places


@dataclass(eq=False)
class Qwen3Moe(SparseDecoder, Qwen3):
    """Experts in all layers, in some of them in turn, or in all but those that are named."""

    title = "Qwen 3 MoE"
    counted = "Qwen3MoeForCausalLM"

    @classmethod
    def more(cls, c: Configuration) -> Mapping[str, int]:
        """The experts, whether shares are normed, and whether projections have biases."""
        flags = {key: c.flag(key, False) for key in ("attention_bias", "norm_topk_prob")}
        return {**cls.experts(c), **flags}

    @classmethod
    def pattern(cls, c: Configuration, layers: int) -> tuple[str, ...]:
        """The layers with experts: every so manieth, but for those that are named."""
        step = c.size("decoder_sparse_step", 1)
        dense = dense_places(c)
        kinds = (
            DENSE if place in dense or (place + 1) % step else SPARSE for place in range(layers)
        )
        return in_turn([*kinds])

    @classmethod
    def mixture(cls, architecture: Architecture) -> Mixture:
        """Shares in the format of the router's product."""
        router = SoftmaxRouter(HIDDEN, CHOICE, architecture.has("norm_topk_prob"), narrow=True)
        return Mixture(router, Experts(HIDDEN, INNER, CHOICE))
