"""Files that are no config.json: their keys are those of the libraries that write them."""

import json

import pytest

from calculator import configuration
from tests.calculator.answers import refused

PAGE = "<!DOCTYPE html>\n<html><head><title>config.json · Qwen</title></head></html>"
POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 135"
ADAPTER = {"peft_type": "LORA", "r": 16, "base_model_name_or_path": "meta-llama/Llama-3.1-8B"}
PARAMS = {"dim": 4096, "n_heads": 32, "n_layers": 32, "vocab_size": 128_256}
INDEX = {"metadata": {"total_size": 5}, "weight_map": {"lm_head.weight": "a.safetensors"}}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (ADAPTER, "is an adapter_config.json: give the config.json of its base model, meta-llama/"),
        (PARAMS, "is a params.json of Meta's format"),
        (INDEX, "is an index of weights"),
        ({"zero_optimization": {"stage": 3}}, "is a configuration of DeepSpeed"),
        ({"_diffusers_version": "0.30", "unet": []}, "only transformers are counted"),
        ({"transformers_version": "5.0", "temperature": 0.6}, "is a generation_config.json"),
        ([{"idx": 0, "type": "sentence_transformers.models.Transformer"}], "is a list"),
        (5, "is one value"),
        (PAGE, "is a web page: give the file itself"),
        (POINTER, "is a pointer of Git LFS"),
        ("", "is empty"),
        ("{'model_type': 'gpt2'}", "Expecting property name"),
        ("x" * 5_000_000, "of at most 2,000,000 characters"),
    ],
)
def test_another_file_is_named_for_what_it_is(given: object, words: str) -> None:
    text = given if isinstance(given, str) else json.dumps(given)
    with refused("model", words) as caught:
        configuration.parse(text, "config.json")
    assert len(str(caught.value)) < 300


def test_a_configuration_with_a_type_is_never_taken_for_another_file() -> None:
    values = {"model_type": "gpt2", **ADAPTER, **PARAMS, **INDEX}
    assert configuration.parse(json.dumps(values), "config.json") == values
