"""Attention that computes only the products its mask leaves, as small dense ones.

Text attends to the text before it. Each line of the picture, a row or a column, attends to all of
the text and to itself and, in the convolutional kind, to the few rows before it: of the 1,280 x
1,280 products of the 2021 run's model, a line's 32 x 289. The result is that of the masked kernels.

Shapes: B sequences, S positions, H heads of K channels, P positions before the picture, L lines of
W codes, N keys in the picture that a line has.
"""

from functools import lru_cache

import torch
from torch.nn.functional import pad, scaled_dot_product_attention

from training.model.layout import Layout


def attend_in_lines(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    layout: Layout,
    by_column: bool,
    reach: int,
) -> torch.Tensor:
    """Attention of the first S positions of a sequence to themselves, all [B, H, S, K].

    Args:
        queries: as keys and values; S may be less than the layout's positions.
        layout: where the text ends and how long a line is.
        by_column: lines are columns of the picture; else rows.
        reach: lines before its own, and codes to either side in them, that a code looks at.
    """
    prefix, length = layout.prefix, queries.shape[2]
    text_queries, text_keys, text_values = (t[:, :, :prefix] for t in (queries, keys, values))
    text = scaled_dot_product_attention(text_queries, text_keys, text_values, is_causal=True)
    if length <= prefix:
        return text
    lines_q, lines_k, lines_v = (_lines(t, layout, by_column) for t in (queries, keys, values))
    scale = queries.shape[-1] ** -0.5
    near_keys, near_values = _reach_back(lines_k, reach), _reach_back(lines_v, reach)
    near = lines_q @ near_keys.transpose(-1, -2) * scale
    sees = _near_mask(layout.image_side, reach, queries.device)
    near = near.masked_fill(~sees, -torch.inf)
    far = lines_q @ text_keys[:, :, None].transpose(-1, -2) * scale
    weights = torch.cat([far, near], dim=-1).softmax(dim=-1, dtype=torch.float32).to(values.dtype)
    mixed = weights[..., :prefix] @ text_values[:, :, None] + weights[..., prefix:] @ near_values
    if by_column:
        mixed = mixed.transpose(2, 3)
    picture = mixed.flatten(2, 3)[:, :, : length - prefix]
    return torch.cat([text, picture], dim=2)


def _lines(x_BHSK: torch.Tensor, layout: Layout, by_column: bool) -> torch.Tensor:
    """The picture's positions, filled up to a square, as lines: [B, H, L, W, K]."""
    side, there = layout.image_side, x_BHSK.shape[2] - layout.prefix
    filled = pad(x_BHSK[:, :, layout.prefix :], (0, 0, 0, side * side - there))
    lines: torch.Tensor = filled.unflatten(2, (side, side))
    return lines.transpose(2, 3) if by_column else lines


def _reach_back(x_BHLWK: torch.Tensor, reach: int) -> torch.Tensor:
    """Each line after the `reach` before it, zeros where there is none: [B, H, L, N, K]."""
    if reach == 0:
        return x_BHLWK
    above = pad(x_BHLWK, (0, 0, 0, 0, reach, 0))
    windows = above.unfold(2, reach + 1, 1)  # [B, H, L, W, K, reach + 1]
    return windows.permute(0, 1, 2, 5, 3, 4).flatten(3, 4)


@lru_cache(maxsize=32)
def _near_mask(side: int, reach: int, device: torch.device) -> torch.Tensor:
    """Keys in the picture that each code of each line sees: bool [L, W, N], or [1, W, N]."""
    place = torch.arange(side, device=device)
    own = place[:, None] >= place[None, :]
    if reach == 0:
        return own[None]
    beside = (place[:, None] - place[None, :]).abs() <= reach
    near = torch.cat([beside.repeat(1, reach), own & beside], dim=1)
    lines_back = torch.arange(reach, -1, -1, device=device).repeat_interleave(side)
    return near[None] & (place[:, None, None] >= lines_back)
