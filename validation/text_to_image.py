"""Our own text-to-image transformer, `training.model.transformer`, as a task to measure."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import torch

from calculator.architecture import Architecture
from calculator.errors import InputError
from calculator.plan import Checkpointing, Plan
from training.model import attention, layout
from training.model.configuration import TextToImageConfig
from training.model.transformer import TextToImageTransformer

TABLES = (
    attention.attention_mask,
    attention.rotary_table,
    layout.shift_sources,
    layout._padded_sources,
)


def check(architecture: Architecture, plan: Plan) -> None:
    """Refuse what the class has no code for.

    Raises:
        InputError: naming the option and the rule.
    """
    name = architecture.name
    if not architecture.gated:
        raise InputError("model", name, "training.model has gated feed-forward layers only")
    if not plan.tied_embeddings:
        raise InputError("tied_embeddings", False, f"{name} always ties them")
    if plan.checkpointing is not Checkpointing.NONE:
        raise InputError("checkpointing", plan.checkpointing, f"{name} has no such code")
    if plan.dropout:
        raise InputError("dropout", plan.dropout, f"{name} has no dropout")


def build(architecture: Architecture, plan: Plan, common: dict[str, Any]) -> TextToImageTransformer:
    """The class at the architecture's size; tables that an earlier model left are forgotten."""
    for table in TABLES:
        table.cache_clear()
    shares = plan.sharing_groups < architecture.shared_layers
    config = TextToImageConfig(
        text_vocabulary_size=architecture.vocabulary_size,
        text_length=architecture.text_length,
        image_vocabulary_size=architecture.image_vocabulary_size,
        image_side=architecture.image_side,
        hidden_size=architecture.hidden_size,
        num_hidden_layers=architecture.layers,
        num_attention_heads=architecture.heads,
        head_size=architecture.head_size,
        feed_forward_multiplier=architecture.feed_forward_size // architecture.hidden_size,
        sharing_groups=plan.sharing_groups if shares else None,
        reversible=plan.reversible,
        **common,
    )
    return TextToImageTransformer._from_config(config)  # type: ignore[no-any-return, no-untyped-call]


def inputs(architecture: Architecture, plan: Plan) -> dict[str, torch.Tensor]:
    """Text tokens and image codes, int64, (batch, tokens)."""
    batch, codes = plan.batch_size, architecture.image_side**2
    words = torch.randint(1, architecture.vocabulary_size, (batch, architecture.text_length))
    return {
        "text_ids": words,
        "image_codes": torch.randint(0, architecture.image_vocabulary_size, (batch, codes)),
    }


@contextmanager
def watch(
    model: TextToImageTransformer, on_logits: Callable[[torch.Tensor], None]
) -> Iterator[None]:
    """Call back with the text's logits and with the image's: the class has no module for them."""

    def watched(method: Callable[[torch.Tensor], torch.Tensor]) -> Any:
        def call(hidden: torch.Tensor) -> torch.Tensor:
            logits = method(hidden)
            on_logits(logits)
            return logits

        return call

    with (
        patch.object(model, "_text_logits", watched(model._text_logits)),
        patch.object(model, "image_logits", watched(model.image_logits)),
    ):
        yield
