"""One layer of the transformer: what depths share, and what each has for itself.

Shapes: B sequences, S positions, D hidden size.
"""

from functools import partial

import torch
from torch import nn
from torch.nn import functional

from training.model.attention import Attention, Kernel
from training.model.cache import LayerCache, ShiftCache
from training.model.configuration import TextToImageConfig
from training.model.layout import token_shift
from training.model.reversible import ReversibleLayer


class FeedForward(nn.Module):
    """GEGLU: half of the inner channels gate the other half (Shazeer 2020, arXiv:2002.05202)."""

    def __init__(self, hidden_size: int, multiplier: int) -> None:
        super().__init__()
        self.expand = nn.Linear(hidden_size, 2 * multiplier * hidden_size)
        self.contract = nn.Linear(multiplier * hidden_size, hidden_size)

    def forward(self, x_BSD: torch.Tensor) -> torch.Tensor:
        """Give outputs of the same shape."""
        values, gates = self.expand(x_BSD).chunk(2, dim=-1)
        out: torch.Tensor = self.contract(values * functional.gelu(gates))
        return out


class SharedWeights(nn.Module):
    """The matrices of a distinct layer, used by every depth of its group."""

    def __init__(self, config: TextToImageConfig) -> None:
        super().__init__()
        heads, head_size = config.num_attention_heads, config.head_size
        self.attention = Attention(config.hidden_size, heads, head_size)
        self.feed_forward = FeedForward(config.hidden_size, config.feed_forward_multiplier)


class DepthWeights(nn.Module):
    """Each depth's own weights: norms before its two branches and scales after them."""

    def __init__(self, config: TextToImageConfig, depth: int) -> None:
        super().__init__()
        self.config = config
        self.kind = config.attention_kind(depth)
        self.initial_scale = config.initial_scale(depth)
        self.in_lines = False
        self.attention_norm = nn.LayerNorm(config.hidden_size)
        self.attention_scale = nn.Parameter(torch.empty(config.hidden_size))
        self.feed_forward_norm = nn.LayerNorm(config.hidden_size)
        self.feed_forward_scale = nn.Parameter(torch.empty(config.hidden_size))

    def with_shared(
        self, shared: SharedWeights, cache: LayerCache | None, start: int
    ) -> ReversibleLayer:
        """The complete layer, for positions from `start` on; see `Attention.forward`."""
        attention, feed_forward = shared.attention, shared.feed_forward
        return ReversibleLayer(
            f=partial(self._attend, attention, cache, start),
            g=partial(self._feed_forward, feed_forward, cache, start),
            f_parameters=_trained(self.attention_norm, attention, self.attention_scale),
            g_parameters=_trained(self.feed_forward_norm, feed_forward, self.feed_forward_scale),
        )

    def _attend(
        self, attention: Attention, cache: LayerCache | None, start: int, x_BSD: torch.Tensor
    ) -> torch.Tensor:
        config = self.config
        shift = cache.attention_shift if cache else None
        x_BSD = self._shift(self.attention_norm(x_BSD), shift, start)
        out: torch.Tensor = attention(
            x_BSD,
            self.kind,
            config.layout,
            config.convolution_kernel,
            Kernel.LINES if self.in_lines else Kernel(config._attn_implementation),
            cache.keys_values if cache else None,
            start,
        )
        return out * self.attention_scale

    def _feed_forward(
        self, feed_forward: FeedForward, cache: LayerCache | None, start: int, x_BSD: torch.Tensor
    ) -> torch.Tensor:
        shift = cache.feed_forward_shift if cache else None
        x_BSD = self._shift(self.feed_forward_norm(x_BSD), shift, start)
        out: torch.Tensor = feed_forward(x_BSD)
        return out * self.feed_forward_scale

    def _shift(self, x_BSD: torch.Tensor, cache: ShiftCache | None, start: int) -> torch.Tensor:
        if not self.config.token_shift:
            return x_BSD
        return token_shift(x_BSD, self.config.layout) if cache is None else cache(x_BSD, start)


def _trained(*parts: nn.Module | nn.Parameter) -> tuple[nn.Parameter, ...]:
    parameters: list[nn.Parameter] = []
    for part in parts:
        parameters += part.parameters() if isinstance(part, nn.Module) else [part]
    return tuple(parameter for parameter in parameters if parameter.requires_grad)
