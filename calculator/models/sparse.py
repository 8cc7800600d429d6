"""Common parts of causal language models with experts.

Source: transformers (integrations/moe.py).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from calculator.architecture import Architecture
from calculator.autograd import operations as op
from calculator.autograd.graph import Tensor
from calculator.autograd.sizes import ONE, Size, size
from calculator.configuration import Configuration
from calculator.errors import InputError
from calculator.layers.basic import Linear
from calculator.layers.experts import (
    Choice,
    Experts,
    Groups,
    Mixture,
    Router,
    SigmoidRouter,
    SoftmaxRouter,
)
from calculator.layers.feed_forward import GatedFeedForward
from calculator.layers.layer import Unary
from calculator.models.decoder import FEED, HIDDEN, Decoder, in_turn
from calculator.models.keys import declared, own_numbers, read_size

DENSE, SPARSE = "dense", "experts"
CHOICE = Choice(size("experts"), size("active_experts"))
GROUPS = Groups(size("expert_groups"), size("allowed_groups"))
INNER = size("expert_size")
SHARED = INNER * size("shared_experts")  # one layer of their width together
# PyTorch multiplies groups of rows that are whole pieces of 16 bytes
ROW_MULTIPLE = 8


@dataclass(eq=False)
class SparseDecoder(Decoder):
    """A decoder whose layers have experts, but for the dense ones.

    Attributes:
        expert_width: each expert's, by default that of a dense layer.
    """

    expert_width: ClassVar[Size] = FEED
    whole_tokens = "the router's weights are no DTensors, which the tokens of a share are"
    fused_experts: ClassVar[tuple[str, ...]] = ("gate", "gate_proj", "up_proj", "down_proj")

    @classmethod
    def read(cls, c: Configuration, name: str) -> Architecture:
        """The architecture that a config.json describes."""
        c.only("output_router_logits", False)
        c.ignore("router_aux_loss_coef")
        check_rows("hidden_size", read_size(c, cls, "hidden_size"))
        return super().read(c, name)

    @classmethod
    def more(cls, c: Configuration) -> Mapping[str, int]:
        """The experts' numbers, and flags."""
        return {**cls.experts(c), **own_numbers(cls, c)}

    @classmethod
    def experts(cls, c: Configuration) -> Mapping[str, int]:
        """Number of experts, number of experts per token, and their width."""
        return experts_of(c, declared(cls, "experts"))

    @classmethod
    def pattern(cls, c: Configuration, layers: int) -> tuple[str, ...]:
        """Experts in every layer."""
        return (SPARSE,)

    @classmethod
    def inside(cls, architecture: Architecture, kind: str) -> Unary:
        """Experts, or a dense layer."""
        dense = kind.endswith(DENSE)
        return cls.feed_forward(architecture) if dense else cls.mixture(architecture)

    @classmethod
    def mixture(cls, architecture: Architecture) -> Mixture:
        """The experts of a layer and their router."""
        return Mixture(cls.router(architecture), Experts(HIDDEN, cls.expert_width, CHOICE))

    @classmethod
    def router(cls, architecture: Architecture) -> Router:
        """Shares in the format of the router's product."""
        return SoftmaxRouter(HIDDEN, CHOICE, architecture.has("norm_topk_prob"), narrow=True)


@dataclass(eq=False)
class GroupedSparseDecoder(SparseDecoder):
    """Dense layers first, then experts of the best groups, beside some that all tokens pass.

    Attributes:
        dense: layers without experts, where a config.json does not say how many.
    """

    dense: ClassVar[int] = 1

    @classmethod
    def pattern(cls, c: Configuration, layers: int) -> tuple[str, ...]:
        """Dense layers, then those with experts."""
        return dense_first(c, layers, cls.dense)

    @classmethod
    def mixture(cls, architecture: Architecture) -> Mixture:
        """Experts of the best groups, and the shared ones, which are one layer."""
        shared = GatedFeedForward(HIDDEN, SHARED, biased=architecture.has("mlp_bias"))
        return Mixture(cls.router(architecture), Experts(HIDDEN, INNER, CHOICE), shared)

    @classmethod
    def router(cls, architecture: Architecture) -> Router:
        """Probabilities of their own, and a bias."""
        return SigmoidRouter(HIDDEN, CHOICE, GROUPS, architecture.has("norm_topk_prob"))


def experts_of(c: Configuration, keys: Sequence[Sequence[Any]]) -> Mapping[str, int]:
    """Number of experts, number of experts per token, and their width."""
    experts, active, inner = (c.size(*key) for key in keys)
    if active > experts:
        raise InputError(keys[1][0], active, f"must be at most the {experts} experts")
    check_rows(keys[2][0], inner)
    return {"experts": experts, "active_experts": active, "expert_size": inner}


def check_rows(key: str, found: int) -> None:
    """Refuse rows of experts that PyTorch does not multiply."""
    if found % ROW_MULTIPLE:
        rule = f"must be a multiple of {ROW_MULTIPLE}: PyTorch's products of experts take no other"
        raise InputError(key, found, rule)


def dense_places(c: Configuration, layers: int) -> set[int]:
    """The places of dense layers: those that are named, and all but every so manieth."""
    step = c.size("decoder_sparse_step", 1)
    named = c.value("mlp_only_layers") or []
    if not isinstance(named, list) or any(type(place) is not int for place in named):
        raise InputError("mlp_only_layers", named, "must be a list of layers")
    return {*named, *(place for place in range(layers) if (place + 1) % step)}


def dense_first(c: Configuration, layers: int, default: int) -> tuple[str, ...]:
    """The kinds of layers, the first few of which are dense."""
    dense = c.value("first_k_dense_replace")
    dense = default if dense is None else dense
    if type(dense) is not int or dense < 0:
        raise InputError("first_k_dense_replace", dense, "must be a whole number of at least 0")
    return in_turn([DENSE] * min(dense, layers) + [SPARSE] * (layers - dense))


def groups_of(c: Configuration, default: int, allowed: int, shared: int = 1) -> Mapping[str, int]:
    """Groups of experts, those that a token may meet, and how many experts all tokens pass."""
    groups = c.size("n_group", default)
    return {
        "expert_groups": groups,
        "allowed_groups": c.size("topk_group", min(allowed, groups), most=groups),
        "shared_experts": c.size("n_shared_experts", shared),
    }


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
class GatedSparseDecoder(SparseDecoder):
    """Experts beside a layer that all tokens pass by a gate."""

    expert_width = INNER

    @classmethod
    def mixture(cls, architecture: Architecture) -> Mixture:
        """The experts, their router, and the layer beside them."""
        shared = GatedFeedForward(HIDDEN, size("shared_size"))
        return GatedMixture(cls.router(architecture), Experts(HIDDEN, INNER, CHOICE), shared)
