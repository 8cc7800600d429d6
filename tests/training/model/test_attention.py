import pytest
import torch

from training.model.attention import (
    AttentionKind,
    Kernel,
    attend,
    attention_mask,
    rotary_table,
    rotate,
    seen_positions,
)
from training.model.layout import Layout, token_shift

CPU = torch.device("cpu")


def sees(kind: AttentionKind, layout: Layout, kernel: int, query: int, key: int) -> bool:
    """The definition, one pair of positions at a time."""
    if key > query:
        return False
    if key < layout.prefix:  # everyone sees the text before it
        return True
    row, column = divmod(query - layout.prefix, layout.image_side)
    key_row, key_column = divmod(key - layout.prefix, layout.image_side)
    if kind == AttentionKind.ROW:
        return row == key_row
    if kind == AttentionKind.COLUMN:
        return column == key_column
    if kind == AttentionKind.CONVOLUTIONAL:
        return abs(row - key_row) <= kernel // 2 and abs(column - key_column) <= kernel // 2
    return True


@pytest.mark.parametrize("kind", AttentionKind)
@pytest.mark.parametrize(
    ("layout", "kernel"), [(Layout(5, 4), 3), (Layout(3, 6), 5), (Layout(1, 1), 1)]
)
def test_masks_equal_their_definition(kind: AttentionKind, layout: Layout, kernel: int) -> None:
    mask = attention_mask(kind, layout, kernel, CPU)
    assert mask.shape == (layout.positions, layout.positions)
    for query in range(layout.positions):
        seen = [key for key in range(layout.positions) if sees(kind, layout, kernel, query, key)]
        assert mask[query].nonzero().flatten().tolist() == seen, query
        assert seen_positions(kind, layout, kernel, query, CPU).tolist() == seen, query


@pytest.mark.parametrize("kernel", [Kernel.SDPA, Kernel.LINES])
@pytest.mark.parametrize("kind", AttentionKind)
@pytest.mark.parametrize(
    ("layout", "side"), [(Layout(5, 4), 3), (Layout(3, 6), 5), (Layout(2, 3), 7), (Layout(1, 1), 1)]
)
def test_fused_kernels_equal_plain_operations(
    kernel: Kernel, kind: AttentionKind, layout: Layout, side: int
) -> None:
    generator = torch.Generator().manual_seed(0)
    # all of a sequence, the text alone, some of the text, and some of the picture
    for length in {layout.positions, layout.prefix, 1, max(layout.positions - 2, 1)}:
        parts = torch.randn(3, 2, 2, length, 8, generator=generator, dtype=torch.float64)
        found = []
        for chosen in (kernel, Kernel.EAGER):
            inputs = parts.clone().requires_grad_()
            mixed = attend(*inputs.unbind(0), kind, layout, side, chosen)
            mixed.square().sum().backward()
            found.append((mixed.detach(), inputs.grad))
        for ours, expected in zip(*found, strict=True):
            torch.testing.assert_close(ours, expected, atol=1e-5, rtol=1e-5)


def test_rotation_keeps_lengths_and_depends_on_distance_alone() -> None:
    layout, generator = Layout(12, 4), torch.Generator().manual_seed(0)
    cosine, sine = rotary_table(layout, 24, CPU)
    query, key = torch.randn(2, 24, generator=generator).unbind(0)
    turned_query = rotate(query.expand(layout.positions, 24), cosine, sine)
    turned_key = rotate(key.expand(layout.positions, 24), cosine, sine)
    torch.testing.assert_close(turned_query.norm(dim=1), query.norm().expand(layout.positions))
    scores = turned_query @ turned_key.T
    text = scores[: layout.prefix, : layout.prefix]
    for distance in range(layout.prefix):
        same_distance = text.diagonal(-distance)
        torch.testing.assert_close(same_distance, same_distance[:1].expand_as(same_distance))
    # In the picture: one step down from any code scores alike.
    start, side = layout.prefix, layout.image_side
    down = torch.stack([scores[start + side + i, start + i] for i in range(side * (side - 1) - 1)])
    torch.testing.assert_close(down, down[:1].expand_as(down), atol=1e-4, rtol=1e-4)


def test_token_shift_takes_the_neighbours() -> None:
    layout = Layout(3, 3)
    x_BSD = torch.arange(layout.positions * 4).reshape(1, layout.positions, 4).float() + 1
    shifted = token_shift(x_BSD, layout)[0]
    for position in range(layout.positions):
        above = left = position - 1  # text: both quarters from the token before
        if position >= layout.prefix:
            row, column = divmod(position - layout.prefix, layout.image_side)
            above = position - layout.image_side if row else -1
            left = position - 1 if column else -1
        assert shifted[position, 0] == (x_BSD[0, above, 0] if above >= 0 else 0)
        assert shifted[position, 1] == (x_BSD[0, left, 1] if left >= 0 else 0)
        assert shifted[position, 2:].tolist() == x_BSD[0, position, 2:].tolist()
