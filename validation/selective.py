"""Checkpoint the attention core only: scores, softmax, dropout, weighted sum.

Korthikanti et al., 2022, section 5: this is what costs memory with the square of the sequence and
little to compute again.
"""

import sys
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from transformers import AttentionInterface
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS

from calculator.errors import InputError

PREFIX = "checkpointed_"


def checkpoint_attention(model: Any, preserve_rng: bool) -> None:
    """Make the model's attention core recompute itself in backward.

    Raises:
        InputError: for a class whose attention has no core of its own.
    """
    again = partial(checkpoint, use_reentrant=False, preserve_rng_state=preserve_rng)
    attentions: list[Any] = [module for module in model.modules() if hasattr(module, "_attn")]
    for attention in attentions:  # GPT-J's and CodeGen's cores are methods
        attention._attn = partial(again, type(attention)._attn, attention)
    if attentions:
        return
    plain = model.config._attn_implementation
    name = PREFIX + plain
    core = _core(model, plain)

    def checkpointed(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
        return again(core, module, *args, **kwargs)

    AttentionInterface.register(name, checkpointed)
    ALL_MASK_ATTENTION_FUNCTIONS.register(name, ALL_MASK_ATTENTION_FUNCTIONS[plain])
    for module in model.modules():
        if hasattr(module, "config"):
            module.config._attn_implementation = name
    torch.nn.Module.train(model)


def _core(model: Any, plain: str) -> Any:
    """The class's own eager function, or transformers' function for the kernel."""
    if plain == "eager":
        code = sys.modules[type(model).__module__]
        if not hasattr(code, "eager_attention_forward"):
            rule = f"{type(model).__name__}'s attention has no core of its own"
            raise InputError("checkpointing", "selective", rule)
        return code.eager_attention_forward
    return AttentionInterface()[plain]
