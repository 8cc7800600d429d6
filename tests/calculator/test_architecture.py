from dataclasses import FrozenInstanceError

import pytest

from calculator.catalog import MODELS


def test_attention_is_as_wide_as_all_heads_together() -> None:
    # Raffel et al., 2019: T5 11B has 128 heads of 128 on a width of 1,024
    model = MODELS["t5-11b"]
    assert (model.attention_size, model.hidden_size) == (16_384, 1024)


def test_a_last_layer_of_its_own_cannot_be_shared() -> None:
    assert MODELS["dalle-together"].layers == 64
    assert MODELS["dalle-together"].shared_layers == 63
    assert MODELS["gpt2-s"].shared_layers == MODELS["gpt2-s"].layers


def test_a_model_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        MODELS["gpt2-s"].layers = 1  # type: ignore[misc]
