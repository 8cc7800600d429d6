"""Attention over text and image: which positions see which, rotary positions, and the kernels.

Shapes: B sequences, S positions, H heads of K channels, D = hidden size.
"""

from enum import StrEnum
from functools import lru_cache
from typing import assert_never

import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

from training.model.layout import Layout
from training.model.lines import attend_in_lines


class AttentionKind(StrEnum):
    """Image positions that an image position sees, besides the whole text and itself."""

    ROW = "row"  # the codes before it in its row
    COLUMN = "column"  # the codes above it in its column
    CONVOLUTIONAL = "convolutional"  # earlier codes in a square window around it
    FULL = "full"  # all earlier codes


class Kernel(StrEnum):
    """The implementation of attention, by the names transformers gives them."""

    EAGER = "eager"  # plain operations: the reference
    SDPA = "sdpa"  # torch's fused kernels with a mask
    LINES = "lines"  # ours: only what a line of the picture sees, as small dense products


@lru_cache(maxsize=32)
def attention_mask(
    kind: AttentionKind, layout: Layout, kernel_side: int, device: torch.device
) -> torch.Tensor:
    """Keys that each query sees: bool [S, S], true if visible.

    Text is causal; an image position sees all the text, itself, and of the earlier codes those
    that `kind` names. Source: Ramesh et al. 2021, arXiv:2102.12092, appendix B.1.
    """
    position = torch.arange(layout.positions, device=device)
    rows, columns = layout.rows(device), layout.columns(device)
    causal = position[:, None] >= position[None, :]
    row_distance = (rows[:, None] - rows[None, :]).abs()
    column_distance = (columns[:, None] - columns[None, :]).abs()
    match kind:
        case AttentionKind.ROW:
            near = row_distance == 0
        case AttentionKind.COLUMN:
            near = column_distance == 0
        case AttentionKind.CONVOLUTIONAL:
            reach = kernel_side // 2
            near = (row_distance <= reach) & (column_distance <= reach)
        case AttentionKind.FULL:
            near = torch.ones_like(causal)
        case _:
            assert_never(kind)
    text = (rows < 0)[None, :]
    return causal & (near | text)


@lru_cache(maxsize=2**14)
def seen_positions(
    kind: AttentionKind, layout: Layout, kernel_side: int, query: int, device: torch.device
) -> torch.Tensor:
    """Positions that the one at `query` sees: int64 [n], in order."""
    mask = attention_mask(kind, layout, kernel_side, torch.device("cpu"))
    return mask[query].nonzero().squeeze(1).to(device)


@lru_cache(maxsize=32)
def rotary_table(
    layout: Layout, head_size: int, device: torch.device
) -> tuple[torch.Tensor, torch.Tensor]:
    r"""Cosine and sine of each position's angles: two float32 [S, K / 2].

    A third of the pairs turns with the place in the text, by :math:`p \cdot 10000^{-i/n}`; a third
    with the row and a third with the column of the picture, scaled to [-1, 1], by frequencies
    from :math:`\pi` to :math:`5 \pi`. The image stands at one place after the text, the text at
    one place outside of the picture; pairs left over do not turn.
    Source: Su et al. 2021, arXiv:2104.09864, eq. 34; axial frequencies as in DALLE-pytorch.
    """
    count = head_size // 6
    rows, columns = layout.rows(device).float(), layout.columns(device).float()
    is_text = rows < 0
    position = torch.arange(layout.positions, device=device).float()
    place = torch.where(is_text, position, float(layout.prefix))
    span = max(layout.image_side - 1, 1)
    outside = torch.full_like(rows, -2.0)
    row_place = torch.where(is_text, outside, 2 * rows / span - 1)
    column_place = torch.where(is_text, outside, 2 * columns / span - 1)
    exponents = torch.arange(count, device=device).float() / max(count, 1)
    text_frequencies = 10000.0**-exponents
    pixel_frequencies = torch.linspace(1.0, 5.0, count, device=device) * torch.pi
    angles = torch.cat(
        [
            place[:, None] * text_frequencies,
            row_place[:, None] * pixel_frequencies,
            column_place[:, None] * pixel_frequencies,
            torch.zeros(layout.positions, head_size // 2 - 3 * count, device=device),
        ],
        dim=1,
    )
    return angles.cos(), angles.sin()


def rotate(x_BHSK: torch.Tensor, cosine: torch.Tensor, sine: torch.Tensor) -> torch.Tensor:
    """Turn channel i and channel i + K / 2 of each head by the position's angle i."""
    cosine, sine = cosine.to(x_BHSK.dtype), sine.to(x_BHSK.dtype)
    first, second = x_BHSK.chunk(2, dim=-1)
    return torch.cat([first * cosine - second * sine, second * cosine + first * sine], dim=-1)


class KeyValueCache:
    """Keys and values of the positions already seen by one layer: two [B, H, S, K]."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self._keys: torch.Tensor | None = None
        self._values: torch.Tensor | None = None

    def append(
        self, keys: torch.Tensor, values: torch.Tensor, start: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Write keys and values at positions from `start` on; give all of the cache back."""
        if self._keys is None or self._values is None:
            self._keys = keys.new_zeros(self.shape)
            self._values = values.new_zeros(self.shape)
        end = start + keys.shape[2]
        self._keys[:, :, start:end] = keys
        self._values[:, :, start:end] = values
        return self._keys, self._values


class Attention(nn.Module):
    """Multi-head self-attention whose weights may serve several layers and kinds of mask."""

    def __init__(self, hidden_size: int, heads: int, head_size: int) -> None:
        super().__init__()
        self.heads = heads
        self.head_size = head_size
        self.query_key_value = nn.Linear(hidden_size, 3 * heads * head_size, bias=False)
        self.output = nn.Linear(heads * head_size, hidden_size)

    def forward(
        self,
        x_BSD: torch.Tensor,
        kind: AttentionKind,
        layout: Layout,
        kernel_side: int,
        kernel: Kernel,
        cache: KeyValueCache | None = None,
        start: int = 0,
    ) -> torch.Tensor:
        """Attend from the positions `start`, `start + 1`, ... of a sequence.

        Args:
            x_BSD: inputs; with `start` above 0 a single position, whose past is in `cache`.

        Returns:
            Outputs of the same shape.
        """
        batch, length, _ = x_BSD.shape
        heads = self.query_key_value(x_BSD).view(batch, length, 3, self.heads, self.head_size)
        queries, keys, values = heads.permute(2, 0, 3, 1, 4).unbind(0)
        cosine, sine = rotary_table(layout, self.head_size, x_BSD.device)
        cosine, sine = cosine[start : start + length], sine[start : start + length]
        queries, keys = rotate(queries, cosine, sine), rotate(keys, cosine, sine)
        if cache is not None:
            all_keys, all_values = cache.append(keys, values, start)
        if start > 0:
            seen = seen_positions(kind, layout, kernel_side, start, x_BSD.device)
            keys, values = all_keys.index_select(2, seen), all_values.index_select(2, seen)
            mixed = scaled_dot_product_attention(queries, keys, values)
        else:
            mixed = attend(queries, keys, values, kind, layout, kernel_side, kernel)
        out: torch.Tensor = self.output(mixed.transpose(1, 2).reshape(batch, length, -1))
        return out


def attend(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    kind: AttentionKind,
    layout: Layout,
    kernel_side: int,
    kernel: Kernel,
) -> torch.Tensor:
    """Attention of the first S positions of a sequence to themselves, all [B, H, S, K]."""
    length, device = queries.shape[2], queries.device
    match kernel:
        case Kernel.SDPA:
            mask = attention_mask(kind, layout, kernel_side, device)[:length, :length]
            return scaled_dot_product_attention(queries, keys, values, attn_mask=mask)
        case Kernel.LINES:
            if kind is AttentionKind.FULL:
                return scaled_dot_product_attention(queries, keys, values, is_causal=True)
            reach = kernel_side // 2 if kind is AttentionKind.CONVOLUTIONAL else 0
            by_column = kind is AttentionKind.COLUMN
            return attend_in_lines(queries, keys, values, layout, by_column, reach)
        case Kernel.EAGER:
            mask = attention_mask(kind, layout, kernel_side, device)[:length, :length]
            scores = queries @ keys.transpose(-1, -2) * queries.shape[-1] ** -0.5
            weights = scores.masked_fill(~mask, -torch.inf).softmax(dim=-1, dtype=torch.float32)
            mixed: torch.Tensor = weights.to(values.dtype) @ values
            return mixed
        case _:
            assert_never(kernel)
