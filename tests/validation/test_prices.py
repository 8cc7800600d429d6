"""Costs that the adviser puts into words, counted by PyTorch."""

from typing import Any

import pytest
import torch
from torch.utils.checkpoint import SelectiveCheckpointContext
from torch.utils.flop_counter import FlopCounterMode
from transformers import BertConfig, BertForMaskedLM, LlamaConfig, LlamaForCausalLM

from validation.results import PRODUCTS, kept_results

SMALL = {"vocab_size": 128, "num_hidden_layers": 4, "num_attention_heads": 8}
LLAMA = LlamaConfig(hidden_size=128, intermediate_size=448, num_key_value_heads=2, **SMALL)
BERT = BertConfig(hidden_size=128, intermediate_size=512, **SMALL)


def operations(model: Any, checkpoints: dict[str, Any] | None) -> int:
    """Floating-point operations of a step without its update."""
    model.train()
    if checkpoints is not None:
        model.activation_checkpointing_enable({"use_reentrant": False, **checkpoints})
    tokens = torch.zeros(1, 4, dtype=torch.long)
    with FlopCounterMode(display=False) as counter:
        model(input_ids=tokens, labels=tokens).loss.backward()
    return counter.get_total_flops()


@pytest.mark.parametrize(("kind", "config"), [(LlamaForCausalLM, LLAMA), (BertForMaskedLM, BERT)])
def test_layers_but_their_costly_results_take_at_most_a_sixth_more_operations(
    kind: Any, config: Any
) -> None:
    kept = operations(kind(config), None)
    again = operations(kind(config), {"context_fn": kept_results})
    whole = operations(kind(config), {})
    assert 1 < again / kept < 1 + 1 / 6
    assert again < whole < kept * (1 + 1 / 3)


def test_a_recomputation_that_asks_again_hears_what_the_forward_pass_heard() -> None:
    # PyTorch before 2.13 asks in both passes, and takes the kept results in order; five products
    # are an odd number, so a count that went on would begin the second pass with the other answer
    policy = kept_results()[0].policy_fn
    first, again = (
        [policy(SelectiveCheckpointContext(is_recompute=turn), PRODUCTS[0]) for _ in range(5)]
        for turn in (False, True)
    )
    assert first == again
    assert len(set(first)) == 2
