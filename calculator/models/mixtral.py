"""Mixtral (transformers' MixtralForCausalLM).

Source: transformers (models/mixtral/modeling_mixtral.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from calculator.architecture import Architecture
from calculator.configuration import Configuration
from calculator.layers.experts import Experts, Mixture, SoftmaxRouter
from calculator.models.decoder import FEED, HIDDEN
from calculator.models.mistral import Mistral
from calculator.models.sparse import CHOICE, SparseDecoder


@dataclass(eq=False)
class Mixtral(Mistral, SparseDecoder):
    """Experts in every layer, each as wide as a dense layer of the model would be."""

    fused_experts = ("gate", "w1", "w3", "w2")
    default_window = 0

    @classmethod
    def more(cls, c: Configuration) -> Mapping[str, int]:
        """The window and the experts; noise on the router's inputs is not counted."""
        return {**super().more(c), **cls.experts(c)}

    @classmethod
    def mixture(cls, architecture: Architecture) -> Mixture:
        """Shares that add up to one, in 32 bits."""
        return Mixture(SoftmaxRouter(HIDDEN, CHOICE), Experts(HIDDEN, FEED, CHOICE))
