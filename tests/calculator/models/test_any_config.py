"""Hostile values for every type that is read: a count or a refusal, and soon."""

import time
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calculator.configuration import Configuration
from calculator.errors import InputError
from calculator.estimate import estimate
from calculator.hf_config import can_read, from_config
from calculator.models.registry import TYPES

KINDS = [kind for kind in TYPES if can_read(kind)]
# seconds of the processor: a list of a million layers takes longer, a slow machine does not
STUCK = 20
# what a type cannot be read without
NEEDED: dict[str, dict[str, Any]] = {
    "deepseek_v2": {"num_experts_per_tok": 6, "moe_intermediate_size": 1408},
    "deberta-v2": {"position_buckets": 256, "relative_attention": True, "type_vocab_size": 0}
    | {"pos_att_type": "p2c|c2p", "position_biased_input": False, "share_att_key": True}
    | {"norm_rel_ebd": "layer_norm"},
    "esm": {"position_embedding_type": "rotary", "token_dropout": True, "vocab_size": 33},
    "glm4_moe": {"head_dim": 128},
}
FULL, SLIDING = "full_attention", "sliding_attention"
HOSTILE = st.sampled_from(
    [
        *(None, True, 0, 1, 2, 3, 64, 1000, 1_000_000, -1, 0.5, 1e308, "x", "", [], {}),
        *([1], [{"a": 1}], [[1]], [None] * 4, [SLIDING, FULL] * 2, {"a": 1}, {FULL: None}),
        *({"rope_type": ["yarn"]}, {"rope_type": "yarn", "partial_rotary_factor": "x"}),
    ]
)


class Asked(Configuration):
    """A configuration that lists the keys it was asked for."""

    def __init__(self, values: dict[str, object]) -> None:
        super().__init__(values)
        self.keys: set[str] = set()

    def value(self, key: str, *aliases: str) -> Any:
        self.keys |= {key, *aliases}
        return super().value(key, *aliases)


@cache
def keys_of(kind: str) -> list[str]:
    config = Asked({"model_type": kind, **NEEDED.get(kind, {})})
    TYPES[kind].read(config, kind)
    return sorted(config.keys - {"model_type"})


def check_message(error: InputError) -> None:
    assert str(error).isprintable()
    assert len(str(error)) < 1200


@given(st.data(), st.sampled_from(KINDS))
@settings(max_examples=100, deadline=None, derandomize=True)
def test_any_value_of_any_key_of_any_type_is_counted_or_refused(
    data: st.DataObject, kind: str
) -> None:
    keys = st.sampled_from(keys_of(kind)) | st.text(max_size=8)
    changed = data.draw(st.dictionaries(keys, HOSTILE, max_size=3))
    began = time.process_time()
    try:
        report = estimate(from_config({"model_type": kind, **NEEDED.get(kind, {}), **changed}, "x"))
    except InputError as error:
        check_message(error)
    else:
        assert report.gpu.total == sum(report.as_json()["gpu"]["parts"].values())
    assert time.process_time() - began < STUCK


@pytest.mark.parametrize(
    ("kind", "more", "is_counted"),
    [
        ("qwen2", {"use_sliding_window": True, "max_window_layers": 500_000}, False),
        ("smollm3", {"no_rope_layer_interval": 64}, False),
        ("gemma3_text", {"sliding_window_pattern": 500_000}, False),
        ("deepseek_v3", {"first_k_dense_replace": 500_000}, False),
        ("gemma4_text", {"num_kv_shared_layers": 20}, False),
        ("gemma2", {"sliding_window_pattern": 8}, True),
        ("smollm3", {"no_rope_layer_interval": 1_000_001}, True),
        ("qwen2", {"use_sliding_window": True, "max_window_layers": 0}, True),
    ],
)
def test_a_million_layers_are_counted_in_a_short_turn_else_refused(
    kind: str, more: dict[str, Any], is_counted: bool
) -> None:
    config = {"model_type": kind, "num_hidden_layers": 1_000_000, **more}
    began = time.process_time()
    if is_counted:
        assert estimate(from_config(config, "x")).gpu.total > 0
    else:
        with pytest.raises(InputError, match=r"layers = '\d+': must be at most 128"):
            from_config(config, "x")
    assert time.process_time() - began < STUCK
