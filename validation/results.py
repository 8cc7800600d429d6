"""Checkpointed layers that keep the results of some operations, by PyTorch's own contexts."""

from collections import Counter
from typing import Any, Final

import torch
from torch.utils.checkpoint import (
    CheckpointPolicy,
    SelectiveCheckpointContext,
    create_selective_checkpoint_contexts,
)

ATEN: Final = torch.ops.aten
PRODUCTS: Final = (ATEN.mm.default, ATEN.addmm.default)
ATTENTION: Final = (
    ATEN._scaled_dot_product_flash_attention.default,
    ATEN._scaled_dot_product_efficient_attention.default,
    ATEN._scaled_dot_product_cudnn_attention.default,
)
# of so many products in turn the first is kept, as torchtitan does
IN_TURN: Final = 2


def kept_results() -> Any:
    """The two contexts of a layer: of its forward pass, and of its recomputation."""
    products: Counter[bool] = Counter()  # PyTorch before 2.13 asks in the recomputation too

    def policy(
        context: SelectiveCheckpointContext, operation: Any, *_arguments: Any, **_options: Any
    ) -> CheckpointPolicy:
        is_kept = operation in ATTENTION
        if operation in PRODUCTS:
            products[context.is_recompute] += 1
            is_kept = products[context.is_recompute] % IN_TURN == 1
        return CheckpointPolicy.MUST_SAVE if is_kept else CheckpointPolicy.PREFER_RECOMPUTE

    return create_selective_checkpoint_contexts(policy)
