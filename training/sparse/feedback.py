"""The part of a peer's updates that has not been sent yet."""

import torch

from training.sparse.codec import Update, decode, encode
from training.sparse.layout import Layout


class ErrorFeedback:
    r"""Adds up what a peer has learned; sends the largest part of it, and keeps the rest.

    .. math::
        e \leftarrow e + \Delta, \quad
        \hat\Delta = D(E(e)), \quad
        e \leftarrow e - \hat\Delta

    with the pseudo-gradient Delta, encoded by E and decoded by D. The last step is only made when
    a round took the update: nothing that was learned is ever lost.
    Source: SparseLoCo, arXiv:2508.15706, algorithm 1, with beta = 1.

    Attributes:
        residual: e, float32 [layout.elements].
    """

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.residual = torch.zeros(layout.elements)
        self._offered: Update | None = None

    @torch.no_grad()
    def offer(self, difference: torch.Tensor) -> bytes:
        """Add a pseudo-gradient, and encode the update to send; `settle` must follow.

        Raises:
            RuntimeError: the update before has not been settled.
            InputError: the pseudo-gradient is not finite, or of another length.
        """
        if self._offered is not None:
            raise RuntimeError("settle the last update first")
        total = self.residual + difference.to(self.residual.device)
        content = encode(total, self.layout)
        self.residual = total
        self._offered = decode(content, self.layout)
        return content

    @torch.no_grad()
    def settle(self, was_taken: bool) -> None:
        """Take note of the round's closing: what it took has been sent, what it left has not."""
        offered, self._offered = self._offered, None
        if was_taken and offered is not None:
            self.residual[offered.places] -= offered.values
