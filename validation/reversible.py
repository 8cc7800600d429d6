"""GPT-2 with reversible layers: attention and feed-forward add to two streams in turn.

`training.model.reversible` does the work: y1 = x1 + attention(x2), y2 = x2 + feed_forward(y1),
each with its norm; both streams start as the embeddings and their mean is the output.
"""

from functools import partial
from typing import Any

import torch
from torch import nn

from training.model.reversible import ReversibleLayer, run_layers


class ReversibleStack(nn.Module):
    """All blocks of a GPT-2 as one module that keeps only its outputs for backward."""

    def __init__(self, blocks: nn.ModuleList) -> None:
        super().__init__()
        self.blocks = blocks

    def forward(
        self, hidden: torch.Tensor, _cache: Any, mask: torch.Tensor | None, *_: Any, **__: Any
    ) -> torch.Tensor:
        """Hidden states after all blocks, (batch, sequence, hidden)."""
        layers = [_layer(block, mask) for block in self.blocks]
        first, second = run_layers(layers, hidden, hidden, reversible=True)
        return (first + second) / 2


def make_reversible(model: Any) -> None:
    """Replace the blocks of a GPT-2 by one reversible stack of the same blocks."""
    model.transformer.h = nn.ModuleList([ReversibleStack(model.transformer.h)])


def _layer(block: Any, mask: torch.Tensor | None) -> ReversibleLayer:
    return ReversibleLayer(
        f=partial(_attention, block, mask),
        g=partial(_feed_forward, block),
        f_parameters=(*block.ln_1.parameters(), *block.attn.parameters()),
        g_parameters=(*block.ln_2.parameters(), *block.mlp.parameters()),
    )


def _attention(block: Any, mask: torch.Tensor | None, hidden: torch.Tensor) -> torch.Tensor:
    return block.attn(block.ln_1(hidden), attention_mask=mask)[0]  # type: ignore[no-any-return]


def _feed_forward(block: Any, hidden: torch.Tensor) -> torch.Tensor:
    return block.mlp(block.ln_2(hidden))  # type: ignore[no-any-return]
