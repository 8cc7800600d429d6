"""Causal language models since Llama: what they read, refuse and count."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from calculator.errors import InputError
from calculator.hf_config import from_config
from calculator.models.decoder import FULL, SLIDING, in_turn
from calculator.models.registry import TYPES
from calculator.parameters import count_parameters
from calculator.peaks.prepare import prepare
from calculator.plan import Plan
from calculator.resolution import resolve
from tests.calculator.answers import refused
from tests.calculator.plans import attention_kernels
from tests.calculator.real import elements, libraries, oracle

SMALL: dict[str, Any] = {"hidden_size": 96, "num_attention_heads": 6, "num_key_value_heads": 2}
SMALL |= {"intermediate_size": 200, "num_hidden_layers": 8}


def kernels(length: int, **config: Any) -> set[str]:
    model = from_config({"model_type": "mistral", **SMALL, **config}, "m")
    return {*map(str, attention_kernels(model, Plan().precision, length))}


@pytest.mark.parametrize(
    ("length", "config", "lacking"),
    [
        # torch's sdp_utils.cpp: the efficient kernel has no grouped queries; flash-attn has windows
        (99, {"sliding_window": 100, "num_key_value_heads": 6}, set()),
        (99, {"sliding_window": 100}, {"efficient"}),
        (100, {"sliding_window": 100}, set()),
        (100, {"sliding_window": None}, {"efficient"}),
        # check_head_dim_size_flash; transformers' use_gqa_in_sdpa repeats keys for such heads
        (99, {"head_dim": 256}, {"efficient"}),
        (99, {"head_dim": 264}, {"flash"}),
    ],
)
def test_shared_heads_have_no_efficient_kernel_but_where_a_mask_or_their_width_repeats_them(
    length: int, config: dict[str, Any], lacking: set[str]
) -> None:
    every = {"eager", "sdpa", "flash", "efficient", "math"}
    assert kernels(length, **config) == every - lacking


def test_layers_in_turn_are_found() -> None:
    assert in_turn([FULL] * 5) == (FULL,)
    assert in_turn([SLIDING, FULL, SLIDING]) == (SLIDING, FULL)
    assert in_turn([SLIDING, FULL, FULL]) == (SLIDING, FULL, FULL)
    assert in_turn([SLIDING, FULL] * 400_000) == (SLIDING, FULL)
    with pytest.raises(InputError, match="at most 128"):
        in_turn([SLIDING] * 800_000 + [FULL])


LARGER = [
    ("gemma3", "gemma3_text", {"tie_word_embeddings": False}),  # which the class does not read
    ("gemma4", "gemma4_text", {}),
    ("qwen3_5", "qwen3_5_text", {"image_token_id": 5}),
    ("qwen3_5_moe", "qwen3_5_moe_text", {"num_hidden_layers": 3}),
    ("mistral3", "ministral3", {"vision_feature_layer": -1}),
]


def larger(kind: str, inner: str, top: dict[str, object]) -> dict[str, object]:
    return {"model_type": kind, **top, "text_config": {"model_type": inner, **SMALL}}


PICTURES = "What it has for pictures is not counted"
# with keys of published config.json files: around a text model, or beside its keys
MANY_PLACES = {"rope_scaling": {"rope_type": "default", "mrope_section": [24, 20, 20]}}
QWEN_25 = {"vision_start_token_id": 5, "vision_config": {"depth": 32}}
QWEN_25 |= {"rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24]}}
QWEN_3 = {"model_type": "qwen3_vl_text", **SMALL, **MANY_PLACES}
SEEING = [
    (larger("llava", "llama", {"image_token_index": 5}), "llama", PICTURES),
    (larger("mistral3", "mistral", {"vision_config": {}}), "mistral", PICTURES),
    (larger("internvl", "qwen2", {"vision_config": {}}), "qwen2", PICTURES),
    ({"model_type": "qwen3_vl", "text_config": QWEN_3}, "qwen3", PICTURES),
    ({"model_type": "qwen2_5_vl", **SMALL, **QWEN_25}, "qwen2", PICTURES),
]
SEEING += [
    (larger(kind, inner, top), inner, f"is of {kind}; counted is its text model alone")
    for kind, inner, top in LARGER
]


@pytest.mark.parametrize(("config", "inner", "note"), SEEING)
def test_of_a_model_of_pictures_and_text_the_text_model_is_counted_and_a_note_says_so(
    config: dict[str, object], inner: str, note: str
) -> None:
    model = from_config(config, "m")
    alone = from_config({"model_type": inner, **SMALL}, "m")
    assert note in model.note
    assert replace(model, note=alone.note) == alone


@oracle
@pytest.mark.parametrize(("kind", "inner", "top"), LARGER)
def test_the_class_of_the_text_model_reads_the_same_of_a_larger_models_configuration(
    kind: str, inner: str, top: dict[str, object], tmp_path: Path
) -> None:
    torch, transformers = libraries()
    config = larger(kind, inner, top)
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    real_class = getattr(transformers, TYPES[inner].counted)
    with torch.device("meta"):
        real = real_class(real_class.config_class.from_pretrained(tmp_path))
    counted = from_config(config, "m")
    plan = resolve(counted, Plan())
    assert count_parameters(counted, plan) == elements(real)
    assert plan.tied_embeddings == real.config.tie_word_embeddings


@pytest.mark.parametrize(
    ("packed", "words"),
    [
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "LoRA and quantization nf4."),
        (
            {"load_in_4bit": True, "bnb_4bit_quant_type": "fp4", "bnb_4bit_use_double_quant": True},
            "LoRA and quantization fp4-double.",
        ),
        ({"quant_method": "mxfp4"}, "by mxfp4; training unpacks them to 16 bits"),
        ({"quant_method": "fp8"}, "by fp8; training unpacks them to 16 bits"),
        ({"quant_method": "gptq", "bits": 4}, "by gptq, in which they cannot be trained"),
        ({"bits": 4}, "by an unnamed method"),
    ],
)
@pytest.mark.parametrize("larger", [False, True])
def test_packed_weights_are_counted_whole_with_a_note_on_what_training_does(
    packed: dict[str, object], words: str, larger: bool
) -> None:
    inner = {"model_type": "gemma3_text", **SMALL}
    config = {"model_type": "gemma3", "text_config": inner} if larger else inner
    found = from_config({**config, "quantization_config": packed}, "q")
    assert words in found.note
    assert replace(found, note="") == replace(from_config(config, "q"), note="")


@oracle
def test_a_type_with_the_layers_of_another_has_as_many_parameters() -> None:
    torch, transformers = libraries()
    small = {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4}
    camembert = {"model_type": "camembert", **small, "intermediate_size": 96, "vocab_size": 99}
    with torch.device("meta"):
        settings = transformers.CamembertConfig(**camembert)
        real = transformers.CamembertForMaskedLM(settings)
        text = transformers.Qwen3VLTextConfig(**SMALL)
        inner = transformers.Qwen3VLTextModel(text)
    counted = from_config(camembert, "c")
    plan = resolve(counted, Plan())
    assert count_parameters(counted, plan) == elements(real)
    counted = from_config({"model_type": "qwen3_vl_text", **SMALL}, "q")
    plan = resolve(counted, Plan(tied_embeddings=True))
    assert count_parameters(counted, plan) == elements(inner)


def test_whisper_has_no_target_longer_than_its_positions() -> None:
    # transformers' WhisperConfig: max_target_positions is 448
    model = from_config({"model_type": "whisper"}, "w")
    assert resolve(model, Plan(target_length=448)).target_length == 448
    with refused("target_length = '449': must be at most 448"):
        resolve(model, Plan(target_length=449))


def test_linear_attention_records_no_more_for_longer_sequences() -> None:
    # its loop over chunks of 64 tokens is put on the tape for at most four of them
    model = from_config({"model_type": "qwen3_5_text", **SMALL}, "q")
    steps = [
        prepare(model, resolve(model, Plan(sequence_length=length))).step
        for length in (256, 320, 64_000)
    ]
    assert steps[0] == steps[1] == steps[2]


def test_layers_of_several_kinds_share_no_weights() -> None:
    # measured, the class picks mask and tables by a layer's place, whatever weights it has
    model = from_config({"model_type": "gemma2", **SMALL}, "g")
    assert resolve(model, Plan(sharing_groups=8)).sharing_groups == 8
    with pytest.raises(InputError, match="sharing_groups = '2': g has layers of several kinds"):
        resolve(model, Plan(sharing_groups=2))
    alike = from_config({"model_type": "llama", **SMALL}, "l")
    assert resolve(alike, Plan(sharing_groups=2)).sharing_groups == 2
