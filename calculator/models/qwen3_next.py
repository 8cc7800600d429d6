"""Qwen 3 Next (transformers' Qwen3NextForCausalLM), as it runs without kernels of other packages.

Source: transformers (models/qwen3_next/modeling_qwen3_next.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from calculator.architecture import Architecture
from calculator.autograd import operations as op
from calculator.autograd.graph import Tensor
from calculator.autograd.sizes import ONE, size
from calculator.configuration import Configuration
from calculator.layers.basic import Linear
from calculator.layers.experts import Experts, Mixture, SoftmaxRouter
from calculator.layers.feed_forward import GatedFeedForward
from calculator.models.decoder import HIDDEN, in_turn
from calculator.models.hybrid import HybridDecoder
from calculator.models.sparse import CHOICE, DENSE, INNER, SparseDecoder, dense_places


@dataclass(eq=False)
class GatedMixture(Mixture):
    """Experts beside a layer that all tokens pass, by a gate of its own."""

    def __post_init__(self) -> None:
        self.gate = Linear(HIDDEN, ONE, biased=False, name="shared_expert_gate")

    def __call__(self, x: Tensor) -> Tensor:
        """(batch, length, hidden) -> the same."""
        assert self.shared is not None
        shared = self.shared(x)
        logits, shares, chosen = self.router(x)
        out = self.experts(x, shares, chosen)
        shared = op.multiply(op.sigmoid(self.gate(x)), shared)
        out = op.add(out, shared)
        del logits, shares, chosen  # held until here
        return out


@dataclass(eq=False)
class Qwen3Next(HybridDecoder, SparseDecoder):
    """Three layers with linear attention for each with gated attention; experts in all or some."""

    @classmethod
    def more(cls, c: Configuration) -> Mapping[str, int]:
        """The heads of linear attention, the experts, and what is normed or has biases."""
        shared = c.size("shared_expert_intermediate_size", 512)
        normed = c.flag("norm_topk_prob", True)
        return {**cls.linear(c), **cls.experts(c), "shared_size": shared, "norm_topk_prob": normed}

    @classmethod
    def pattern(cls, c: Configuration, layers: int) -> tuple[str, ...]:
        """The kinds of layers, by their attention and by whether they have experts."""
        step = c.size("decoder_sparse_step", 1)
        dense = dense_places(c)
        return in_turn(
            [
                f"{kind} {DENSE}" if place in dense or (place + 1) % step else kind
                for place, kind in enumerate(cls.mixers(c, layers))
            ]
        )

    @classmethod
    def mixture(cls, architecture: Architecture) -> Mixture:
        """Shares in the format of the router's product, and a layer beside them."""
        router = SoftmaxRouter(HIDDEN, CHOICE, architecture.has("norm_topk_prob"), narrow=True)
        shared = GatedFeedForward(HIDDEN, size("shared_size"))
        return GatedMixture(router, Experts(HIDDEN, INNER, CHOICE), shared)
