"""Values of a config.json that change what a class computes, and are not counted."""

import json
from pathlib import Path
from typing import Any

import pytest

from calculator.errors import InputError
from calculator.hf_config import can_read, from_config
from calculator.models.keys import declared
from calculator.models.registry import TYPES
from tests.calculator.models.test_any_config import NEEDED

FOLDER = Path(__file__).parents[3] / "validation/configs"
FULL = "full_attention"


def refused(kind: str, **values: Any) -> str:
    """The key by which a configuration is refused."""
    with pytest.raises(InputError) as caught:
        from_config({**NEEDED.get(kind, {}), **values, "model_type": kind}, "x")
    return caught.value.field


def another(value: object) -> object:
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case _:
            return "another"


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
@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("bart", {"decoder_attention_heads": 8}),
        ("bert", {"hidden_dropout_prob": 1.5}),
        ("bert", {"chunk_size_feed_forward": 64}),
        ("bert", {"pruned_heads": {"0": [1]}}),
        ("codegen", {"n_head": 2}),
        ("cohere2", {"use_qk_norm": True}),
        ("falcon", {"multi_query": False}),
        ("falcon", {"parallel_attn": False}),
        ("falcon", {"rope_scaling": {"rope_type": "longrope"}}),
        ("gemma3_text", {"layer_types": [{"a": 1}, FULL], "num_hidden_layers": 2}),
        ("gemma4_text", {"num_kv_shared_layers": 29}),
        ("gemma4_text", {"global_head_dim": 260}),
        ("gemma4_text", {"use_bidirectional_attention": "all"}),
        ("gpt_neo", {"attention_types": [[["global", "ring"], 12]]}),
        ("gpt_neo", {"attention_types": [["global"]], "num_layers": 1}),
        ("gpt_neo", {"attention_types": [[["global"], 23]]}),
        ("gpt_neox", {"rotary_pct": 0.02}),
        ("gpt_neox", {"rope_parameters": {"rope_type": "yarn"}}),
        ("gptj", {"rotary_dim": 63}),
        ("gptj", {"rotary_dim": 258}),
        ("gptj", {"rotary_dim": None}),
        ("llama", {"num_key_value_heads": 5}),
        ("llama", {"head_dim": 15}),
        ("llama", {"rope_scaling": {"rope_type": "longrope"}}),
        ("llama", {"quantization_config": 4}),
        ("llama", {"add_cross_attention": True}),
        ("llama", {"is_decoder": True}),
        ("llama", {"torchscript": True}),
        ("llama", {"tie_encoder_decoder": True}),
        ("llama", {"tie_word_embeddings": "false"}),
        ("llama", {"output_hidden_states": True}),
        ("llama", {"a_key_nobody_knows": False}),
        ("modernbert", {"layer_types": [FULL]}),
        ("modernbert", {"layer_types": [{"a": 1}, FULL], "num_hidden_layers": 2}),
        ("mpt", {"attn_config": []}),
        ("mt5", {"feed_forward_proj": "gated-silu"}),
        ("nemotron", {"partial_rotary_factor": 1.0}),
        ("phi", {"qk_layernorm": True}),
        ("phi", {"num_key_value_heads": 8}),
        ("phi", {"partial_rotary_factor": "half"}),
        ("phi3", {"partial_rotary_factor": 2}),
        ("phi3", {"rope_scaling": {"rope_type": "linear"}}),
        ("qwen2", {"use_mrope": True}),
        ("qwen2", {"max_window_layers": -1}),
        ("qwen3", {"layer_types": [FULL]}),
        ("qwen3", {"layer_types": [FULL] * 7 + ["linear_attention"], "num_hidden_layers": 8}),
        ("qwen3_5_text", {"attn_output_gate": False}),
        ("qwen3_5_text", {"layer_types": [{"a": 1}, FULL], "num_hidden_layers": 2}),
        ("qwen3_next", {"linear_num_value_heads": 24}),
        ("roberta", {"pad_token_id": 0}),
        ("roberta", {"max_position_embeddings": 2}),
        ("smollm3", {"no_rope_layers": [1]}),
        ("smollm3", {"no_rope_layers": [1] * 7 + [2], "num_hidden_layers": 8}),
        ("smollm3", {"no_rope_layers": [True] * 8, "num_hidden_layers": 8}),
        ("smollm3", {"no_rope_layers": [1] * 7 + [[]], "num_hidden_layers": 8}),
        ("t5", {"is_gated_act": True}),
        ("t5", {"dense_act_fn": "gelu_new"}),
        ("vit", {"image_size": [224, 224]}),
        ("vit", {"patch_size": 225}),
        ("whisper", {"decoder_attention_heads": 8}),
    ],
    ids=str,
)
def test_what_is_not_counted_is_refused_by_name(kind: str, values: dict[str, object]) -> None:
    assert refused(kind, **values) == next(iter(values))


# of small models with experts, and of DeBERTa's third version
@pytest.mark.parametrize(
    ("name", "key", "value"),
    [
        ("mixtral", "output_router_logits", True),
        ("mixtral", "num_experts_per_tok", 6),  # of 5
        ("mixtral", "intermediate_size", 204),  # PyTorch's grouped products: rows of 16 bytes
        ("mixtral", "hidden_size", 90),
        ("qwen3_moe", "moe_intermediate_size", 57),
        ("qwen3_moe", "mlp_only_layers", 3),
        ("qwen3_moe", "mlp_only_layers", [1.0]),
        ("glm4_moe", "partial_rotary_factor", 2),
        ("glm4_moe", "topk_group", 4),  # of 3
        ("glm4_moe", "first_k_dense_replace", -1),
        ("gpt_oss", "layer_types", ["chunked_attention"] * 7),
        ("deepseek_v2", "num_experts_per_tok", None),
        ("deepseek_v2", "topk_method", "noaux_tc"),
        ("deepseek_v2", "scoring_func", "sigmoid"),
        ("deepseek_v3", "scoring_func", "softmax"),
        ("deepseek_v3", "topk_method", "greedy"),
        ("deepseek_v3", "num_key_value_heads", 2),
        ("deepseek_v3", "qk_rope_head_dim", 15),
        ("deberta-v2", "conv_kernel_size", 3),
        ("deberta-v2", "embedding_size", 36),
        ("deberta-v2", "legacy", False),
        ("deberta-v2", "norm_rel_ebd", "none"),
        ("deberta-v2", "pos_att_type", ["c2p"]),
        ("deberta-v2", "position_buckets", None),
        ("deberta-v2", "position_biased_input", True),
        ("deberta-v2", "relative_attention", False),
        ("deberta-v2", "share_att_key", False),
        ("deberta-v2", "type_vocab_size", 2),
    ],
)
def test_so_it_is_of_a_published_shape(name: str, key: str, value: object) -> None:
    shape = json.loads((FOLDER / f"{name}.json").read_text())
    assert refused(name, **{**shape, key: value}) == key
