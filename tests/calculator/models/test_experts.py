"""Types with experts: what they read, refuse and count."""

from typing import Any

import pytest

from calculator.catalog import find_model
from calculator.hf_config import from_config
from calculator.models.sparse import DENSE, SPARSE
from calculator.parameters import count_active
from calculator.plan import Plan
from calculator.resolution import resolve
from tests.calculator.real import small_config


@pytest.mark.parametrize(
    ("kind", "config", "pattern"),
    [
        ("qwen3_moe", {"mlp_only_layers": None}, (SPARSE,)),
        ("qwen3_moe", {"mlp_only_layers": [], "decoder_sparse_step": 2}, (DENSE, SPARSE)),
        ("deepseek_v3", {"first_k_dense_replace": 3}, (DENSE,) * 3 + (SPARSE,) * 4),
        ("glm4_moe", {"first_k_dense_replace": 0}, (SPARSE,)),
        ("glm4_moe", {"first_k_dense_replace": 99}, (DENSE,)),
    ],
)
def test_dense_layers_stand_where_the_configuration_says(
    kind: str, config: dict[str, Any], pattern: tuple[str, ...]
) -> None:
    assert from_config({**small_config(kind), **config}, "x").pattern == pattern


# parameters that a token meets, as the models' makers print them, in billions: Mixtral of Experts
# (2401.04088, section 2), Qwen3's report (2505.09388, table 2), gpt-oss's card (2508.10925,
# table 1; without the embedding), DeepSeek-V2's and V3's reports (2405.04434, 2412.19437,
# abstracts), and GLM-4.5's (2508.06471, table 1)
@pytest.mark.parametrize(
    ("name", "printed", "within"),
    [
        ("mistralai/Mixtral-8x7B-v0.1", 13, 0.5),
        ("Qwen/Qwen3-30B-A3B", 3.3, 0.1),
        ("Qwen/Qwen3-235B-A22B", 22, 0.5),
        ("deepseek-ai/DeepSeek-V2", 21, 0.5),
        ("deepseek-ai/DeepSeek-V3", 37, 1),
    ],
)
def test_active_parameters_are_those_that_a_token_meets(
    name: str, printed: float, within: float
) -> None:
    model = find_model(name)
    assert count_active(model, resolve(model, Plan())) / 1e9 == pytest.approx(printed, abs=within)
