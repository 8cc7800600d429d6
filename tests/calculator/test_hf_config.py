import importlib
import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from calculator.architecture import Family
from calculator.catalog import MODELS
from calculator.errors import InputError
from calculator.estimate import estimate
from calculator.hf_config import from_config, read_config
from calculator.parameters import count_parameters
from calculator.techniques import Plan, resolve

CLASSES = {
    "bert": "BertForMaskedLM",
    "t5": "T5ForConditionalGeneration",
    "gpt2": "GPT2LMHeadModel",
    "gptj": "GPTJForCausalLM",
}
# two of each: small, and with every size a prime or otherwise unlike the others
CONFIGS: dict[str, dict[str, Any]] = {
    "bert": {
        "model_type": "bert", "hidden_size": 96, "num_hidden_layers": 3, "num_attention_heads": 6,
        "intermediate_size": 211, "vocab_size": 1009, "max_position_embeddings": 67,
        "type_vocab_size": 3,
    },
    "bert-untied": {
        "model_type": "bert", "hidden_size": 64, "num_hidden_layers": 1, "num_attention_heads": 4,
        "intermediate_size": 128, "vocab_size": 503, "tie_word_embeddings": False,
    },
    "t5": {
        "model_type": "t5", "d_model": 96, "num_layers": 3, "num_decoder_layers": 3,
        "num_heads": 5, "d_kv": 17, "d_ff": 211, "vocab_size": 1009,
        "relative_attention_num_buckets": 16,
    },
    "t5-uneven": {
        "model_type": "t5", "d_model": 64, "num_layers": 2, "num_decoder_layers": 5,
        "num_heads": 4, "d_kv": 16, "d_ff": 128, "vocab_size": 503,
    },
    "t5-uneven-too": {
        "model_type": "t5", "d_model": 64, "num_layers": 4, "num_decoder_layers": 1,
        "num_heads": 4, "d_kv": 16, "d_ff": 128, "vocab_size": 503,
    },
    "gpt2": {
        "model_type": "gpt2", "n_embd": 96, "n_layer": 3, "n_head": 6, "n_positions": 67,
        "vocab_size": 1009, "n_inner": 211,
    },
    "gpt2-untied": {
        "model_type": "gpt2", "n_embd": 64, "n_layer": 2, "n_head": 4, "vocab_size": 503,
        "tie_word_embeddings": False,
    },
    "gptj": {
        "model_type": "gptj", "n_embd": 96, "n_layer": 3, "n_head": 6, "n_positions": 67,
        "vocab_size": 1009, "n_inner": 211, "rotary_dim": 8,
    },
    "gptj-tied": {
        "model_type": "gptj", "n_embd": 64, "n_layer": 2, "n_head": 4, "vocab_size": 503,
        "rotary_dim": 16, "tie_word_embeddings": True,
    },
}  # fmt: skip


def parameters(config: dict[str, Any]) -> int:
    architecture = from_config(config, "here")
    return count_parameters(architecture, resolve(architecture, Plan()))


@pytest.mark.skipif(
    not (find_spec("torch") and find_spec("transformers")),
    reason="the real classes are in torch and transformers, which the calculator does without",
)
@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore")  # of the libraries, which are not ours
def test_parameters_are_those_of_the_real_class(name: str) -> None:
    transformers = importlib.import_module("transformers")
    torch = importlib.import_module("torch")
    config = dict(CONFIGS[name])
    kind = config.pop("model_type")
    with torch.device("meta"):
        model = getattr(transformers, CLASSES[kind])(
            transformers.AutoConfig.for_model(kind, **config)
        )
    assert parameters(CONFIGS[name]) == sum(item.numel() for item in model.parameters())


@pytest.mark.parametrize(
    ("kind", "model"),
    [("bert", "bert-base"), ("t5", "t5-small"), ("gpt2", "gpt2-s"), ("gptj", "gpt-j-6b")],
)
def test_an_empty_config_is_the_librarys_default_model(kind: str, model: str) -> None:
    assert parameters({"model_type": kind}) == parameters_of(model)


def parameters_of(model: str) -> int:
    return count_parameters(MODELS[model], resolve(MODELS[model], Plan()))


@pytest.mark.parametrize("name", CONFIGS)
def test_a_config_can_be_estimated(name: str) -> None:
    architecture = from_config(CONFIGS[name], name)
    assert architecture.family in Family
    report = estimate(architecture)
    assert report.model == name
    assert report.gpu.total > 16 * report.parameters  # weights, gradients, states in 32 bits


def test_a_file_and_its_folder_are_the_same(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(CONFIGS["gpt2"]), encoding="utf-8")
    file, folder = read_config(tmp_path / "config.json"), read_config(tmp_path)
    assert (file.layers, file.hidden_size) == (folder.layers, folder.hidden_size) == (3, 96)


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    for path in (tmp_path / "config.json", tmp_path):
        with pytest.raises(InputError, match=r"model = .*there is no such file"):
            read_config(path)


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b'{"model_type": "gpt2"', b"[1]", b'"gpt2"', b"3", b"null", b"\xff\xfe\x00"],
)
def test_what_is_no_config_is_told(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"model = .*must be a config\.json"):
        read_config(path)


@pytest.mark.parametrize("kind", ["llama", "", None, 3, "dalle", ["gpt2"], {"a": 1}])
def test_a_model_without_code_is_refused(kind: object) -> None:
    with pytest.raises(InputError) as caught:
        from_config({"model_type": kind}, "here")
    assert (caught.value.field, caught.value.value) == ("model_type", str(kind))
    assert "bert, t5, gpt2, gptj" in caught.value.rule


SIZES = [
    *(("bert", name) for name in ("hidden_size", "num_hidden_layers", "num_attention_heads")),
    *(("bert", name) for name in ("intermediate_size", "vocab_size", "max_position_embeddings")),
    *(("t5", name) for name in ("d_model", "num_layers", "num_decoder_layers", "num_heads")),
    *(("t5", name) for name in ("d_kv", "d_ff", "vocab_size", "n_positions")),
    *(("gpt2", name) for name in ("n_embd", "n_layer", "n_head", "n_positions", "n_inner")),
    *(("gptj", name) for name in ("n_embd", "n_layer", "n_head", "rotary_dim", "vocab_size")),
]


@pytest.mark.parametrize(("kind", "field"), SIZES)
@pytest.mark.parametrize("value", [0, -1, 1.5, "12", True, [1]])
def test_a_size_that_is_none_is_refused_by_name(kind: str, field: str, value: object) -> None:
    with pytest.raises(InputError) as caught:
        from_config({"model_type": kind, field: value}, "here")
    assert (caught.value.field, caught.value.value) == (field, str(value))
    assert caught.value.rule == "must be a whole number of at least 1"


@pytest.mark.parametrize(
    ("kind", "field"),
    [
        ("bert", "hidden_dropout_prob"),
        ("t5", "dropout_rate"),
        ("gpt2", "resid_pdrop"),
        ("gptj", "resid_pdrop"),
    ],
)
@pytest.mark.parametrize("value", [-0.1, 1, 1.5, "0.1", True, float("nan"), float("inf")])
def test_a_dropout_that_is_no_probability_is_refused(kind: str, field: str, value: object) -> None:
    with pytest.raises(InputError) as caught:
        from_config({"model_type": kind, field: value}, "here")
    assert caught.value.field == field
    assert caught.value.rule == "must be a number of at least 0 and below 1"


@pytest.mark.parametrize(
    ("kind", "field", "value"),
    [
        ("bert", "hidden_act", "relu"),
        ("t5", "feed_forward_proj", "gated-gelu"),
        ("gpt2", "activation_function", "relu"),
        ("gptj", "activation_function", "gelu"),
    ],
)
def test_code_that_is_not_counted_is_refused(kind: str, field: str, value: str) -> None:
    with pytest.raises(InputError) as caught:
        from_config({"model_type": kind, field: value}, "here")
    assert (caught.value.field, caught.value.value) == (field, value)


@pytest.mark.parametrize(
    ("kind", "width", "heads"),
    [
        ("bert", "hidden_size", "num_attention_heads"),
        ("gpt2", "n_embd", "n_head"),
        ("gptj", "n_embd", "n_head"),
    ],
)
def test_heads_must_fill_the_width(kind: str, width: str, heads: str) -> None:
    with pytest.raises(InputError, match="multiple of the 7 heads"):
        from_config({"model_type": kind, width: 64, heads: 7}, "here")
