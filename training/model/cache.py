"""Cached positions during generation."""

import torch

from training.model.attention import KeyValueCache
from training.model.configuration import TextToImageConfig
from training.model.layout import Layout, shift_sources, token_shift

_CPU = torch.device("cpu")


class ShiftCache:
    """The last W inputs of one token shift, half of their channels: [B, W, D / 2]."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self._recent: torch.Tensor | None = None

    def __call__(self, x_BSD: torch.Tensor, start: int) -> torch.Tensor:
        """`token_shift` of the text (from 0 on), or of the single position `start`."""
        if start == 0:
            self._remember(x_BSD, start)
            return token_shift(x_BSD, self.layout)
        quarter = x_BSD.shape[-1] // 4
        first, second = (source[start] for source in shift_sources(self.layout, _CPU))
        parts = [
            self._look_up(int(first), slice(0, quarter), x_BSD),
            self._look_up(int(second), slice(quarter, 2 * quarter), x_BSD),
            x_BSD[..., 2 * quarter :],
        ]
        shifted = torch.cat(parts, dim=-1)
        self._remember(x_BSD, start)
        return shifted

    def _look_up(self, position: int, channels: slice, like: torch.Tensor) -> torch.Tensor:
        if position < 0 or self._recent is None:
            return torch.zeros_like(like[..., channels])
        slot = position % self.layout.image_side
        return self._recent[:, slot : slot + 1, channels]

    def _remember(self, x_BSD: torch.Tensor, start: int) -> None:
        side, half = self.layout.image_side, x_BSD.shape[-1] // 2
        if self._recent is None:
            self._recent = x_BSD.new_zeros(x_BSD.shape[0], side, half)
        length = x_BSD.shape[1]
        for offset in range(max(0, length - side), length):
            self._recent[:, (start + offset) % side] = x_BSD[:, offset, :half]


class LayerCache:
    """Cache of one depth: keys and values, and the inputs of its two token shifts."""

    def __init__(self, config: TextToImageConfig, batch: int) -> None:
        layout = config.layout
        self.keys_values = KeyValueCache(
            (batch, config.num_attention_heads, layout.positions, config.head_size)
        )
        self.attention_shift = ShiftCache(layout)
        self.feed_forward_shift = ShiftCache(layout)


class DecodingCache:
    """The caches of all depths, and the next position to read."""

    def __init__(self, config: TextToImageConfig, batch: int) -> None:
        self.position = 0
        self.layers = [LayerCache(config, batch) for _ in range(config.num_hidden_layers)]
