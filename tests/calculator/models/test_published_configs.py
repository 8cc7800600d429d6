"""A config.json as it lies beside published weights: keys that only other code reads."""

from typing import Any

import pytest

from calculator.hf_config import from_config

SMALL: dict[str, Any] = {"hidden_size": 128, "num_attention_heads": 4, "num_hidden_layers": 4}
SMALL |= {"intermediate_size": 256, "vocab_size": 1000}
EXPERTS = {"num_experts_per_tok": 2, "moe_intermediate_size": 64, "n_routed_experts": 8}
# what each type cannot do without
NEEDED: dict[str, dict[str, Any]] = {
    "deepseek_v2": EXPERTS,
    "deepseek_v3": {**EXPERTS, "n_group": 2, "topk_group": 1},
    "glm4_moe": {**EXPERTS, "head_dim": 64, "num_key_value_heads": 2},
    "qwen3_moe": {**EXPERTS, "n_routed_experts": None, "num_experts": 8},
    "qwen2": {"num_key_value_heads": 2},
    "opt": {"intermediate_size": None, "ffn_dim": 256},
    "falcon": {"intermediate_size": None, "ffn_hidden_size": 256},
}
# recalled from the files beside these weights: DeepSeek-V3 and V2-Lite, GLM-4.5-Air,
# Phi-4-mini-instruct, falcon-7b, Qwen2.5-0.5B, SmolLM2-135M
DEEPSEEK = {"aux_loss_alpha": 0.001, "ep_size": 1, "moe_layer_freq": 1, "seq_aux": True}
THIRD = {"scoring_func": "sigmoid", "topk_method": "noaux_tc", "num_nextn_predict_layers": 1}
PHI = {"full_attn_mod": 1, "interpolate_factor": 1, "lm_head_bias": False, "mlp_bias": False}
BESIDE_WEIGHTS: list[tuple[str, dict[str, Any]]] = [
    ("deepseek_v3", {**DEEPSEEK, **THIRD}),
    ("deepseek_v2", {**DEEPSEEK, "scoring_func": "softmax", "topk_method": "greedy"}),
    ("glm4_moe", {"routed_scaling_factor": 1.0, "num_nextn_predict_layers": 1}),
    ("phi3", PHI),
    ("opt", {"activation_dropout": 0.0}),
    ("falcon", {"apply_residual_connection_post_layernorm": False}),
    ("qwen2", {"use_mrope": False, "use_sliding_window": False, "max_window_layers": 0}),
    ("llama", {"is_llama_config": True, "transformers.js_config": {"dtype": "q4"}}),
    ("llama", {"unsloth_fixed": True, "unsloth_version": "2025.1.5"}),
]
# written in full inside composite configurations by transformers 4
FLAGS = ("add_cross_attention", "is_decoder", "tf_legacy_loss", "tie_encoder_decoder")
OF_EVERY_CLASS = dict.fromkeys((*FLAGS, "torchscript", "use_bfloat16"), False)
OF_EVERY_CLASS |= {"cross_attention_hidden_size": None, "pruned_heads": {}}


def values(kind: str, **more: Any) -> dict[str, Any]:
    return {"model_type": kind, **SMALL, **NEEDED.get(kind, {}), **more}


@pytest.mark.parametrize(("kind", "beside"), BESIDE_WEIGHTS)
def test_keys_that_only_other_code_reads_change_nothing(kind: str, beside: dict[str, Any]) -> None:
    assert from_config(values(kind, **beside), "x") == from_config(values(kind), "x")


@pytest.mark.parametrize("kind", ["bert", "llama", "opt", "gpt2", "t5", "whisper"])
def test_keys_of_every_class_change_nothing_with_their_defaults(kind: str) -> None:
    least = {"model_type": kind}
    assert from_config({**least, **OF_EVERY_CLASS}, "x") == from_config(least, "x")


@pytest.mark.parametrize(
    ("kind", "rope", "same"),
    [
        # transformers 5 writes the share where it writes the other positions' values
        ("phi3", {"partial_rotary_factor": 0.75}, {"partial_rotary_factor": 0.75}),
        ("phi3", {"partial_rotary_factor": None}, {}),
        ("glm4_moe", {"partial_rotary_factor": 0.25}, {"partial_rotary_factor": 0.25}),
        ("llama", {"rope_type": "default", "partial_rotary_factor": None}, {}),
        ("gpt_neox", {"rope_type": None, "partial_rotary_factor": None}, {}),
    ],
)
def test_a_share_of_a_head_is_read_beside_the_other_values_of_its_places(
    kind: str, rope: dict[str, Any], same: dict[str, Any]
) -> None:
    expected = from_config(values(kind, **same), "x")
    assert from_config(values(kind, rope_parameters=rope), "x") == expected
    assert from_config(values(kind, rope_parameters=rope, **same), "x") == expected
