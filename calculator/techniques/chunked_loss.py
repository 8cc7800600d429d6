"""Losses that never make the logits of all tokens.

Counted is PyTorch's `linear_cross_entropy` in the place of output layer and loss
(`calculator.layers.chunked_loss`), with labels shifted as transformers shifts them. It has no rule
for autocast: under `amp` it computes in the format of the weights, 32 bits.

Liger's fused linear cross-entropy works in the same way with other buffers and is not counted: its
kernels need Triton. torchtune's `LinearCrossEntropyLoss` keeps the logits of every chunk for the
backward pass unless it is compiled, and is not counted either.

Source: linear_cross_entropy
"""

from collections.abc import Iterator
from typing import Final

from calculator.layers.chunked_loss import tokens_of_chunk
from calculator.plan import ChunkedLoss, Precision
from calculator.techniques.effect import Answer, Effect
from calculator.units import format_count


def _notes(answer: Answer) -> Iterator[str]:
    """A sentence on the chunks, and on their format under autocast."""
    plan, architecture = answer.plan, answer.architecture
    tokens = plan.batch_size * plan.predicted_length
    chunk = tokens_of_chunk(tokens, architecture.vocabulary_size, architecture.hidden_size)
    is_amp = plan.precision is Precision.AMP
    autocast = " It computes in 32 bits: it has no rule for autocast." if is_amp else ""
    yield (
        f"PyTorch's linear_cross_entropy makes the logits of {format_count(chunk)} of "
        f"{format_count(tokens)} tokens at a time, and the gradients of the output layer in the "
        f"forward pass.{autocast}"
    )


EFFECT: Final = Effect(
    used=lambda plan: plan.chunked_loss is not ChunkedLoss.NONE,
    mode=lambda _: {"chunked_loss": True},
    notes=_notes,
)
