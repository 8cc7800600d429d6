"""Positions of text and image in a sequence: begin, T text tokens, then the image row by row.

A sequence has ``1 + T + W * W - 1`` positions: the last image code is only ever predicted.
"""

from dataclasses import dataclass
from functools import lru_cache

import torch


@dataclass(frozen=True, slots=True)
class Layout:
    """Positions of one sequence.

    Attributes:
        text_length: text tokens T, padding included.
        image_side: image codes in a row, W.
    """

    text_length: int
    image_side: int

    @property
    def prefix(self) -> int:
        """Positions before the image: the begin token and the text."""
        return self.text_length + 1

    @property
    def image_length(self) -> int:
        """Image codes of a picture."""
        return self.image_side**2

    @property
    def positions(self) -> int:
        """Positions of a complete sequence: the last code is predicted, never read."""
        return self.prefix + self.image_length - 1

    def rows(self, device: torch.device | str = "cpu") -> torch.Tensor:
        """Row of each position in the picture, -1 in the text: [S]."""
        image = torch.arange(self.image_length - 1, device=device) // self.image_side
        return torch.cat([torch.full((self.prefix,), -1, device=device), image])

    def columns(self, device: torch.device | str = "cpu") -> torch.Tensor:
        """Column of each position in the picture, -1 in the text: [S]."""
        image = torch.arange(self.image_length - 1, device=device) % self.image_side
        return torch.cat([torch.full((self.prefix,), -1, device=device), image])


@lru_cache(maxsize=32)
def shift_sources(layout: Layout, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Positions that the two shifted quarters of each token come from: two [S], -1 for none.

    A text token takes both from the token before it; an image token takes the first from the code
    above it and the second from the code to its left.
    """
    position = torch.arange(layout.positions, device=device)
    rows, columns = layout.rows(device), layout.columns(device)
    text = rows < 0
    above = torch.where(rows > 0, position - layout.image_side, -1)
    left = torch.where(columns > 0, position - 1, -1)
    before = position - 1
    return torch.where(text, before, above), torch.where(text, before, left)


@lru_cache(maxsize=32)
def _padded_sources(layout: Layout, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """`shift_sources` in a sequence that a row of zeros precedes; every layer uses the same."""
    first, second = shift_sources(layout, device)
    return first + 1, second + 1


def token_shift(x_BSD: torch.Tensor, layout: Layout) -> torch.Tensor:
    """Replace the first half of each token's channels by its neighbours' (see `shift_sources`).

    Args:
        x_BSD: the first S positions of a sequence, D a multiple of 4.

    Returns:
        A tensor of the same shape; channels without a neighbour are zero.
    """
    quarter = x_BSD.shape[-1] // 4
    length = x_BSD.shape[1]
    first, second = (places[:length] for places in _padded_sources(layout, x_BSD.device))
    padded = torch.nn.functional.pad(x_BSD[..., : 2 * quarter], (0, 0, 1, 0))
    return torch.cat(
        [
            padded[..., :quarter].index_select(1, first),
            padded[..., quarter:].index_select(1, second),
            x_BSD[..., 2 * quarter :],
        ],
        dim=-1,
    )
