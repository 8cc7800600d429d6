"""The loss by PyTorch's linear_cross_entropy, which never makes the logits of all tokens."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any
from unittest.mock import patch

import torch
from torch import nn
from torch.nn.functional import pad
from transformers.modeling_outputs import CausalLMOutput
from transformers.models.bart.modeling_bart import shift_tokens_right
from transformers.models.mbart import modeling_mbart

from calculator.plan import ChunkedLoss, Plan
from validation.models import OnLogits, Task

IGNORED = -100


def chunk_loss(task: Task, plan: Plan) -> Task:
    """The task with its loss in chunks; called when the model is as it is trained."""
    if plan.chunked_loss is ChunkedLoss.NONE:
        return task
    model: Any = task.model
    model = model.get_base_model() if hasattr(model, "get_base_model") else model
    model.forward = made = _Chunked(model)
    return replace(task, watch=partial(watch_hidden, made))


class _Chunked:
    """The forward pass of a model up to what its output layer reads, then the loss of that.

    `on_hidden` hears of the hidden states, one row for each token. The layer itself hands on what
    it is given, so that the class does to it whatever it does to logits: only what BART adds to
    those has no place there.
    """

    def __init__(self, model: Any) -> None:
        self.model, self.whole = model, model.forward
        self.on_hidden: OnLogits = nobody
        self.head: nn.Linear = model.get_output_embeddings()
        self.head.forward = torch.nn.Identity().forward
        self.shifts_labels = type(model).__name__.endswith(("ForCausalLM", "LMHeadModel"))

    def __call__(self, labels: torch.Tensor, **inputs: Any) -> CausalLMOutput:
        shifted = inputs.pop("shift_labels", None)
        config = self.model.config
        if config.is_encoder_decoder:
            if config.model_type == "mbart":  # the last token, a language, comes first
                ids = modeling_mbart.shift_tokens_right(labels, config.pad_token_id)
            else:
                ids = shift_tokens_right(labels, config.pad_token_id, config.decoder_start_token_id)
            inputs["decoder_input_ids"] = ids
            del ids
        added = getattr(self.model, "final_logits_bias", None)
        if added is None:
            hidden, bias = self.whole(**inputs).logits, self.head.bias
        else:
            hidden, bias = self.model.base_model(**inputs).last_hidden_state, added[0]
        rows = hidden.view(-1, hidden.shape[-1])
        self.on_hidden(rows)
        from torch.nn import LinearCrossEntropyOptions  # PyTorch 2.13 brought both
        from torch.nn.functional import linear_cross_entropy

        if shifted is None:
            shifted = labels
            if self.shifts_labels:  # as transformers shifts them
                padded = pad(labels, (0, 1), value=IGNORED)
                shifted = padded[..., 1:].contiguous()
        # it asks for a GPU that can add up in 32 bits
        with patch("torch.cuda.is_available", lambda: True):
            loss = linear_cross_entropy(
                rows,
                self.head.weight,
                shifted.view(-1),
                linear_bias=bias,
                options=LinearCrossEntropyOptions(),
            )
        return CausalLMOutput(loss=loss)


def nobody(_rows: torch.Tensor) -> None:
    """Hear nothing."""


@contextmanager
def watch_hidden(loss: Any, on_hidden: OnLogits) -> Iterator[None]:
    """The hidden states stand for the logits: the loss lasts until their gradient exists."""
    loss.on_hidden = on_hidden
    try:
        yield
    finally:
        loss.on_hidden = nobody
