"""Values of a config.json that change what a class computes, and are not counted."""

from typing import Any

import pytest

from calculator.errors import InputError
from calculator.hf_config import can_read, from_config
from calculator.models.keys import declared
from calculator.models.registry import TYPES
from tests.calculator.models.test_any_config import NEEDED
from tests.calculator.real import small_config

FULL = "full_attention"


def refused(kind: str, **values: Any) -> str:
    """The key by which a configuration is refused."""
    with pytest.raises(InputError) as caught:
        from_config({**NEEDED.get(kind, {}), **values, "model_type": kind}, "x")
    return caught.value.field


def another(value: object) -> object:
    if isinstance(value, bool):
        return not value
    return value + 1 if isinstance(value, int | float) else "another"


@pytest.mark.parametrize("kind", [kind for kind in TYPES if can_read(kind)])
def test_a_key_with_one_value_that_is_counted_takes_no_other(kind: str) -> None:
    texts = declared(TYPES[kind], "texts") or {}
    wanted = {key: values[0] for key, values in texts.items()}
    wanted |= declared(TYPES[kind], "only") or {}
    for key, value in wanted.items():
        assert refused(kind, **{key: another(value)}) == key


def test_heads_must_fill_the_width() -> None:
    assert refused("bert", hidden_size=64, num_attention_heads=7) == "hidden size"


# what a class does with these is in its own code
OF_CLASSES: dict[str, list[dict[str, object]]] = {
    "bart": [{"decoder_attention_heads": 8}],
    "bert": [
        *({"hidden_dropout_prob": 1.5}, {"chunk_size_feed_forward": 64}),
        {"pruned_heads": {"0": [1]}},
    ],
    "codegen": [{"n_head": 2}],
    "cohere2": [{"use_qk_norm": True}],
    "falcon": [
        *({"multi_query": False}, {"parallel_attn": False}),
        {"rope_scaling": {"rope_type": "longrope"}},
    ],
    "gemma3_text": [{"layer_types": [{"a": 1}, FULL], "num_hidden_layers": 2}],
    "gemma4_text": [
        *({"num_kv_shared_layers": 29}, {"global_head_dim": 260}),
        {"use_bidirectional_attention": "all"},
    ],
    "gpt_neo": [
        {"attention_types": [[["global", "ring"], 12]]},
        {"attention_types": [["global"]], "num_layers": 1},
        {"attention_types": [[["global"], 23]]},
    ],
    "gpt_neox": [{"rotary_pct": 0.02}, {"rope_parameters": {"rope_type": "yarn"}}],
    "gptj": [{"rotary_dim": 63}, {"rotary_dim": 258}, {"rotary_dim": None}],
    "llama": [
        *({"num_key_value_heads": 5}, {"head_dim": 15}, {"quantization_config": 4}),
        *({"rope_scaling": {"rope_type": "longrope"}}, {"add_cross_attention": True}),
        *({"is_decoder": True}, {"torchscript": True}, {"tie_encoder_decoder": True}),
        *({"tie_word_embeddings": "false"}, {"output_hidden_states": True}),
        {"a_key_nobody_knows": False},
    ],
    "modernbert": [
        {"layer_types": [FULL]},
        {"layer_types": [{"a": 1}, FULL], "num_hidden_layers": 2},
    ],
    "mpt": [{"attn_config": []}],
    "mt5": [{"feed_forward_proj": "gated-silu"}],
    "nemotron": [{"partial_rotary_factor": 1.0}],
    "phi": [
        *({"qk_layernorm": True}, {"num_key_value_heads": 8}, {"partial_rotary_factor": "half"})
    ],
    "phi3": [{"partial_rotary_factor": 2}, {"rope_scaling": {"rope_type": "linear"}}],
    "qwen2": [{"use_mrope": True}, {"max_window_layers": -1}],
    "qwen3": [
        {"layer_types": [FULL]},
        {"layer_types": [FULL] * 7 + ["linear_attention"], "num_hidden_layers": 8},
    ],
    "qwen3_5_text": [
        {"attn_output_gate": False},
        {"layer_types": [{"a": 1}, FULL], "num_hidden_layers": 2},
    ],
    "qwen3_next": [{"linear_num_value_heads": 24}],
    "roberta": [{"pad_token_id": 0}, {"max_position_embeddings": 2}],
    "smollm3": [
        {"no_rope_layers": [1]},
        {"no_rope_layers": [1] * 7 + [2], "num_hidden_layers": 8},
        {"no_rope_layers": [True] * 8, "num_hidden_layers": 8},
        {"no_rope_layers": [1] * 7 + [[]], "num_hidden_layers": 8},
    ],
    "t5": [{"is_gated_act": True}, {"dense_act_fn": "gelu_new"}],
    "vit": [{"image_size": [224, 224]}, {"patch_size": 225}],
    "whisper": [{"decoder_attention_heads": 8}],
}
# of small models with experts, and of DeBERTa's third version
OF_SHAPES: dict[str, list[dict[str, object]]] = {
    "mixtral": [
        *({"output_router_logits": True}, {"num_experts_per_tok": 6}),  # of 5
        *({"intermediate_size": 204}, {"hidden_size": 90}),  # grouped products: rows of 16 bytes
    ],
    "qwen3_moe": [
        *({"moe_intermediate_size": 57}, {"mlp_only_layers": 3}, {"mlp_only_layers": [1.0]})
    ],
    "glm4_moe": [
        *({"partial_rotary_factor": 2}, {"first_k_dense_replace": -1}),
        {"topk_group": 4},  # of 3
    ],
    "gpt_oss": [{"layer_types": ["chunked_attention"] * 7}],
    "deepseek_v2": [
        *({"num_experts_per_tok": None}, {"topk_method": "noaux_tc"}, {"scoring_func": "sigmoid"})
    ],
    "deepseek_v3": [
        *({"scoring_func": "softmax"}, {"topk_method": "greedy"}, {"num_key_value_heads": 2}),
        {"qk_rope_head_dim": 15},
    ],
    "deberta-v2": [
        *({"conv_kernel_size": 3}, {"embedding_size": 36}, {"legacy": False}),
        *({"norm_rel_ebd": "none"}, {"pos_att_type": ["c2p"]}, {"position_buckets": None}),
        *({"position_biased_input": True}, {"relative_attention": False}),
        *({"share_att_key": False}, {"type_vocab_size": 2}),
    ],
}


CASES = [
    (kind, shape, values)
    for table in (OF_CLASSES, OF_SHAPES)
    for kind, every in table.items()
    for shape in [small_config(kind) if table is OF_SHAPES else {}]
    for values in every
]


@pytest.mark.parametrize(("kind", "shape", "values"), CASES, ids=lambda value: str(value)[:40])
def test_what_is_not_counted_is_refused_by_name(
    kind: str, shape: dict[str, Any], values: dict[str, object]
) -> None:
    assert refused(kind, **{**shape, **values}) == next(iter(values))
