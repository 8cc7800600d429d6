"""The loss of a run as a line without axes, below the figure of its swarm."""

from collections.abc import Sequence

WIDTH, HEIGHT = 560, 64


def draw_loss(losses: Sequence[float]) -> str:
    """The loss over the steps as SVG."""
    low, high = min(losses), max(losses)
    across = WIDTH / max(1, len(losses) - 1)

    def place(index: int) -> str:
        y = (high - losses[index]) / ((high - low) or 1) * (HEIGHT - 8) + 4
        return f"{index * across:.1f} {y:.1f}"

    points = [place(index) for index in range(len(losses))]
    line = "L".join(points)
    return (
        f'<svg class="plot swarm__loss" viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none" '
        f'aria-hidden="true"><path class="area" d="M0 {HEIGHT}L{line}L{WIDTH} {HEIGHT}Z"/>'
        f'<path class="line" d="M{line}"/></svg>'
    )
