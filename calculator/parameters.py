"""The tensors of weights that a model has, and how many numbers they hold.

Source: transformers (the classes' constructors), training/model.py for DALL-E.
"""

from dataclasses import dataclass
from math import prod
from typing import assert_never

from calculator.architecture import Architecture, Family
from calculator.techniques import ResolvedPlan


@dataclass(frozen=True, slots=True)
class ParameterTensor:
    """`copies` tensors of the same shape; one that is not `trained` never gets a gradient."""

    name: str
    shape: tuple[int, ...]
    copies: int = 1
    trained: bool = True

    @property
    def elements(self) -> int:
        """Numbers in one of them."""
        return prod(self.shape)


def parameter_tensors(architecture: Architecture, plan: ResolvedPlan) -> list[ParameterTensor]:
    """Every tensor of weights, shared ones once."""
    match architecture.family:
        case Family.BERT:
            return _bert(architecture, plan)
        case Family.T5:
            return _t5(architecture, plan)
        case Family.GPT2:
            return _gpt2(architecture, plan)
        case Family.GPTJ:
            return _gptj(architecture, plan)
        case Family.DALLE:
            return _dalle(architecture, plan)
        case _:
            assert_never(architecture.family)


def count_parameters(architecture: Architecture, plan: ResolvedPlan) -> int:
    r"""Numbers in all weights.

    $$P = \sum_i \prod_j n_{ij}$$

    with n_ij the sizes of weight tensor i; shared and tied weights count once.

    >>> from calculator.catalog import MODELS
    >>> from calculator.techniques import Plan, resolve
    >>> gpt2 = MODELS["gpt2-s"]
    >>> count_parameters(gpt2, resolve(gpt2, Plan()))  # transformers' GPT2LMHeadModel
    124439808

    Source: transformers
    """
    return sum(item.elements * item.copies for item in parameter_tensors(architecture, plan))


def position_count(architecture: Architecture, plan: ResolvedPlan) -> int:
    """Learned positions, enlarged where the sequence is longer than the model's own."""
    return max(architecture.positions, plan.sequence_length)


def _distinct_layers(architecture: Architecture, plan: ResolvedPlan) -> int:
    return min(plan.sharing_groups, architecture.shared_layers) + int(architecture.own_last_layer)


def _linear(name: str, inputs: int, outputs: int, copies: int) -> list[ParameterTensor]:
    return [
        ParameterTensor(f"{name}.weight", (outputs, inputs), copies),
        ParameterTensor(f"{name}.bias", (outputs,), copies),
    ]


def _norm(name: str, size: int, copies: int = 1) -> list[ParameterTensor]:
    return [
        ParameterTensor(f"{name}.weight", (size,), copies),
        ParameterTensor(f"{name}.bias", (size,), copies),
    ]


def _bert(m: Architecture, plan: ResolvedPlan) -> list[ParameterTensor]:
    d, a, f, n = m.hidden_size, m.attention_size, m.feed_forward_size, _distinct_layers(m, plan)
    tensors = [
        ParameterTensor("word_embeddings", (m.vocabulary_size, d)),
        ParameterTensor("position_embeddings", (position_count(m, plan), d)),
        ParameterTensor("token_type_embeddings", (m.token_types, d)),
        *_norm("embeddings.norm", d),
    ]
    for name in ("query", "key", "value"):
        tensors += _linear(f"layer.{name}", d, a, n)
    tensors += _linear("layer.output", a, d, n) + _norm("layer.attention_norm", d, n)
    tensors += _linear("layer.intermediate", d, f, n) + _linear("layer.contract", f, d, n)
    tensors += _norm("layer.output_norm", d, n)
    tensors += _linear("head.dense", d, d, 1) + _norm("head.norm", d)
    tensors.append(ParameterTensor("head.bias", (m.vocabulary_size,)))
    if not plan.tied_embeddings:  # the class then has a second bias, which it does not use
        tensors.append(ParameterTensor("head.unused_bias", (m.vocabulary_size,), trained=False))
    return tensors + _untied_head(m, plan)


def _untied_head(m: Architecture, plan: ResolvedPlan) -> list[ParameterTensor]:
    if plan.tied_embeddings:
        return []
    return [ParameterTensor("head.weight", (m.vocabulary_size, m.hidden_size))]


def _t5(m: Architecture, plan: ResolvedPlan) -> list[ParameterTensor]:
    d, a, f = m.hidden_size, m.attention_size, m.feed_forward_size
    encoder = min(plan.sharing_groups, m.layers)
    decoder = min(plan.sharing_groups, m.decoder_layers)
    attentions = encoder + 2 * decoder
    return [
        ParameterTensor("shared", (m.vocabulary_size, d)),
        ParameterTensor("relative_attention_bias", (m.relative_buckets, m.heads), 2),
        ParameterTensor("attention.query_key_value", (a, d), 3 * attentions),
        ParameterTensor("attention.output", (d, a), attentions),
        ParameterTensor("feed_forward.expand", (f, d), encoder + decoder),
        ParameterTensor("feed_forward.contract", (d, f), encoder + decoder),
        ParameterTensor("norm", (d,), 2 * encoder + 3 * decoder + 2),
    ]


def _gpt2(m: Architecture, plan: ResolvedPlan) -> list[ParameterTensor]:
    d, a, f, n = m.hidden_size, m.attention_size, m.feed_forward_size, _distinct_layers(m, plan)
    return [
        ParameterTensor("token_embedding", (m.vocabulary_size, d)),
        ParameterTensor("position_embedding", (position_count(m, plan), d)),
        *_norm("layer.norm_1", d, n),
        *_linear("layer.query_key_value", d, 3 * a, n),
        *_linear("layer.output", a, d, n),
        *_norm("layer.norm_2", d, n),
        *_linear("layer.expand", d, f, n),
        *_linear("layer.contract", f, d, n),
        *_norm("final_norm", d),
        *_untied_head(m, plan),
    ]


def _gptj(m: Architecture, plan: ResolvedPlan) -> list[ParameterTensor]:
    d, f, v, n = m.hidden_size, m.feed_forward_size, m.vocabulary_size, _distinct_layers(m, plan)
    return [
        ParameterTensor("token_embedding", (v, d)),
        *_norm("layer.norm", d, n),
        ParameterTensor("layer.attention", (d, d), 4 * n),
        *_linear("layer.expand", d, f, n),
        *_linear("layer.contract", f, d, n),
        *_norm("final_norm", d),
        *_untied_head(m, plan),
        ParameterTensor("head.bias", (v,)),
    ]


def _dalle(m: Architecture, plan: ResolvedPlan) -> list[ParameterTensor]:
    d, a, f, n = m.hidden_size, m.attention_size, m.feed_forward_size, _distinct_layers(m, plan)
    text = m.vocabulary_size + m.text_length  # padding has a token for each text position
    tables = 1 if plan.tied_embeddings else 2
    return [
        ParameterTensor("text_embedding", (text, d), tables),
        ParameterTensor("image_embedding", (m.image_vocabulary_size, d), tables),
        ParameterTensor("layer.query_key_value", (3 * a, d), n),
        *_linear("layer.output", a, d, n),
        *_linear("layer.expand", d, 2 * f if m.gated else f, n),
        *_linear("layer.contract", f, d, n),
        ParameterTensor("depth.norms_and_scales", (d,), 6 * m.layers),
        *_norm("final_norm", d),
        ParameterTensor("text_bias", (text,)),
        ParameterTensor("image_bias", (m.image_vocabulary_size,)),
    ]
