"""Real Hugging Face models from the calculator's architectures, without weights."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, assert_never

import torch
from torch import nn
from transformers import (
    BertConfig,
    BertForMaskedLM,
    GPT2Config,
    GPT2LMHeadModel,
    GPTJConfig,
    GPTJForCausalLM,
    T5Config,
    T5ForConditionalGeneration,
)

from calculator.architecture import Architecture, Family
from calculator.errors import InputError
from calculator.techniques import Attention, Precision, ResolvedPlan
from validation import text_to_image
from validation.configuration import Configuration
from validation.reversible import make_reversible

OnLogits = Callable[[torch.Tensor], None]


@dataclass(frozen=True, slots=True)
class Task:
    """A model with its loss, and one micro-batch.

    `watch` calls back when the logits exist. `keeps_tables` says that the first forward pass makes
    tensors that stay; `unused` names parameters that never get a gradient.
    """

    model: nn.Module
    watch: Callable[[OnLogits], AbstractContextManager[None]]
    inputs: dict[str, torch.Tensor]
    keeps_tables: bool = False
    unused: tuple[str, ...] = ()


def build_task(configuration: Configuration, device: str) -> Task:
    """The real class at its real size with random inputs on the device."""
    architecture, plan = configuration.architecture, configuration.resolved
    with torch.device(device):
        model = _build_model(architecture, plan, _weight_type(configuration))
        inputs = _inputs(architecture, plan, configuration.padding)
    if architecture.family is Family.DALLE:
        model.train()
        return Task(model, partial(text_to_image.watch, model), inputs, True)
    _share(architecture, plan, model)
    if plan.reversible:
        make_reversible(model)
    model.train()
    watch = partial(_watch, _head(architecture, model))
    return Task(model, watch, inputs, unused=_unused(architecture, plan))


def _unused(architecture: Architecture, plan: ResolvedPlan) -> tuple[str, ...]:
    """BERT's head has two biases, which are one when the embeddings are tied."""
    untied_bert = architecture.family is Family.BERT and not plan.tied_embeddings
    return ("cls.predictions.bias",) if untied_bert else ()


def check_model(architecture: Architecture, plan: ResolvedPlan) -> None:
    """Refuse what the model's class has no code for.

    Raises:
        InputError: naming the option and the rule.
    """
    match architecture.family:
        case Family.DALLE:
            text_to_image.check(architecture, plan)
        case Family.BERT | Family.GPTJ | Family.T5 if plan.reversible:
            raise InputError("reversible", True, f"{architecture.name} has no reversible class")
        case _:
            pass


def _weight_type(configuration: Configuration) -> torch.dtype:
    if configuration.resolved.precision in (Precision.MIXED, Precision.HALF):
        return getattr(torch, configuration.half_type)  # type: ignore[no-any-return]
    return torch.float32


def _build_model(architecture: Architecture, plan: ResolvedPlan, weight_type: torch.dtype) -> Any:
    eager = plan.attention is Attention.EAGER or architecture.family is Family.GPTJ
    common = {
        "attn_implementation": "eager" if eager else "sdpa",
        "use_cache": False,
        "dtype": weight_type,
        "tie_word_embeddings": plan.tied_embeddings,
    }
    match architecture.family:
        case Family.BERT:
            return BertForMaskedLM._from_config(_bert(architecture, plan.dropout, common))
        case Family.GPT2:
            return GPT2LMHeadModel._from_config(_gpt2(architecture, plan.dropout, common))
        case Family.GPTJ:
            return GPTJForCausalLM._from_config(_gptj(architecture, plan.dropout, common))
        case Family.T5:
            return T5ForConditionalGeneration._from_config(_t5(architecture, plan.dropout, common))
        case Family.DALLE:
            return text_to_image.build(architecture, plan, common)
        case other:
            assert_never(other)


def _bert(shape: Architecture, dropout: float, common: dict[str, Any]) -> BertConfig:
    return BertConfig(
        vocab_size=shape.vocabulary_size,
        hidden_size=shape.hidden_size,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        intermediate_size=shape.feed_forward_size,
        max_position_embeddings=shape.positions,
        type_vocab_size=shape.token_types,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
        **common,
    )


def _gpt2(shape: Architecture, dropout: float, common: dict[str, Any]) -> GPT2Config:
    return GPT2Config(
        vocab_size=shape.vocabulary_size,
        n_positions=shape.positions,
        n_embd=shape.hidden_size,
        n_layer=shape.layers,
        n_head=shape.heads,
        n_inner=shape.feed_forward_size,
        resid_pdrop=dropout,
        embd_pdrop=dropout,
        attn_pdrop=dropout,
        **common,
    )


def _gptj(shape: Architecture, dropout: float, common: dict[str, Any]) -> GPTJConfig:
    return GPTJConfig(
        vocab_size=shape.vocabulary_size,
        n_positions=shape.sequence_length,
        n_embd=shape.hidden_size,
        n_layer=shape.layers,
        n_head=shape.heads,
        n_inner=shape.feed_forward_size,
        rotary_dim=shape.rotary_size,
        resid_pdrop=dropout,
        embd_pdrop=dropout,
        attn_pdrop=dropout,
        **common,
    )


def _t5(shape: Architecture, dropout: float, common: dict[str, Any]) -> T5Config:
    special: dict[str, Any] = {"decoder_start_token_id": 0}  # not in the class's signature
    return T5Config(
        vocab_size=shape.vocabulary_size,
        d_model=shape.hidden_size,
        d_kv=shape.head_size,
        d_ff=shape.feed_forward_size,
        num_layers=shape.layers,
        num_decoder_layers=shape.decoder_layers,
        num_heads=shape.heads,
        relative_attention_num_buckets=shape.relative_buckets,
        dropout_rate=dropout,
        pad_token_id=0,
        **special,
        **common,
    )


def layer_lists(architecture: Architecture, model: Any) -> list[nn.ModuleList]:
    """The model's stacks of layers."""
    match architecture.family:
        case Family.BERT:
            return [model.bert.encoder.layer]
        case Family.GPT2 | Family.GPTJ:
            return [model.transformer.h]
        case Family.T5:
            return [model.encoder.block, model.decoder.block]
        case Family.DALLE:
            raise InputError("model", architecture.name, "shares its layers by itself")
        case other:
            assert_never(other)


def _share(architecture: Architecture, plan: ResolvedPlan, model: Any) -> None:
    """Layer i becomes the very module of layer i modulo the number of groups."""
    for layers in layer_lists(architecture, model):
        for index in range(plan.sharing_groups, len(layers)):
            layers[index] = layers[index % plan.sharing_groups]


def _head(architecture: Architecture, model: Any) -> nn.Module:
    """The last module before the loss: it makes the logits."""
    if architecture.family is Family.BERT:
        return model.cls.predictions.decoder  # type: ignore[no-any-return]
    return model.lm_head  # type: ignore[no-any-return]


@contextmanager
def _watch(head: nn.Module, on_logits: OnLogits) -> Iterator[None]:
    handle = head.register_forward_hook(lambda _module, _inputs, logits: on_logits(logits))
    try:
        yield
    finally:
        handle.remove()


def _inputs(architecture: Architecture, plan: ResolvedPlan, padding: bool) -> dict[str, Any]:
    """Token ids and labels, int64, (batch, sequence)."""
    if architecture.family is Family.DALLE:
        return text_to_image.inputs(architecture, plan)
    size = (plan.batch_size, plan.sequence_length)
    inputs = {"input_ids": torch.randint(0, architecture.vocabulary_size, size)}
    labels = (plan.batch_size, plan.target_length or plan.sequence_length)
    inputs["labels"] = torch.randint(0, architecture.vocabulary_size, labels)
    if padding:
        inputs["attention_mask"] = torch.ones(size, dtype=torch.int64)
    return inputs
