"""Names of models: which shape a variant has is read from its config.json on the Hub."""

import pytest

from calculator.catalog import find_model
from calculator.catalog.checkpoints import CHECKPOINTS, SAME_SHAPE
from calculator.catalog.names import hub_id, of_the_same_size, same_shape, shape_key
from tests.calculator.answers import refused

SHAPES = {
    "meta-llama/Llama-3.1-405B": ["hugging-quants/Meta-Llama-3.1-405B-BNB-NF4-BF16"],
    "meta-llama/Llama-3.1-8B": [
        *("meta-llama/Llama-3.1-8B-Instruct", "unsloth/Meta-Llama-3.1-8B-Instruct-bnb-4bit"),
        *("llama-3.1-8b", "llama3.1:8b", "https://hf.co/bartowski/Meta-Llama-3.1-8B-Instruct-GGUF"),
        *("bartowski/Meta-Llama-3.1-8B-Instruct-GGUF:Q4_K_M", "ollama run llama3.1:8b"),
        *("neuralmagic/Meta-Llama-3.1-8B-Instruct-quantized.w4a16", "meta-llama/Llama-Guard-3-8B"),
        *("/data/models/Llama-3.1-8B-Instruct", "llama-3.1-8b-instruct-iq4_xs.gguf"),
    ],
    "Qwen/Qwen2.5-7B": [
        *("Qwen/Qwen2.5-7B-Instruct", "https://huggingface.co/Qwen/Qwen2.5-7B/tree/main"),
        *("Qwen/Qwen2.5-Coder-7B-Instruct", "unsloth/DeepSeek-R1-Distill-Qwen-7B-GGUF"),
        *("qwen 2.5 7b", "unsloth/Qwen2.5-7B-unsloth-bnb-4bit", "Qwen/Qwen2.5-7B-Instruct-AWQ"),
        *("huggingface.co/Qwen/Qwen2.5-7B-Instruct?library=transformers", "qwen/qwen2.5-7b"),
        *("qwen2.5-coder:7b-instruct-q4_K_M", "deepseek-r1:7b"),
    ],
    "meta-llama/Llama-3.3-70B-Instruct": ["deepseek-r1-distill-llama-70b", "deepseek-r1:70b"],
    "Qwen/Qwen3-4B": [
        *("Qwen/Qwen3-4B-Instruct-2507", "Qwen/Qwen3-4B-Base", "qwen3:4b-instruct-2507-q8_0"),
        "lmstudio-community/Qwen3-4B-Instruct-2507-MLX-4bit",
    ],
    "Qwen/Qwen3-8B": ["nvidia/Qwen3-8B-NVFP4", "Qwen3-8B-Q4_K_M.gguf", "deepseek-r1:8b"],
    "Qwen/Qwen3-30B-A3B": ["qwen3:30b-a3b", "Qwen/Qwen3-Coder-30B-A3B-Instruct"],
    "mistralai/Mixtral-8x7B-v0.1": ["mixtral:8x7b"],
    "mistralai/Mistral-Small-24B-Base-2501": ["unsloth/Devstral-Small-2507-GGUF"],
    "google/gemma-3-4b-pt": ["google/gemma-3-4b-it", "unsloth/gemma-3-4b-it-GGUF", "gemma3:4b"],
    "google/gemma-3-27b-pt": ["gemma3:27b-it-qat"],
    "mistralai/Mistral-7B-v0.3": ["mistralai/Mistral-7B-Instruct-v0.3", "mistral:7b"],
    "mistralai/Mistral-Nemo-Base-2407": ["mistralai/Mistral-Nemo-Instruct-2407"],
    "meta-llama/Llama-2-7b-hf": ["TheBloke/Llama-2-7B-Chat-GGUF"],
    "openai-community/gpt2": ["gpt2", "https://huggingface.co/gpt2/tree/main"],
    "google-bert/bert-base-uncased": ["bert-base-uncased", "BAAI/bge-base-en-v1.5"],
    "deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B": ["unsloth/DeepSeek-R1-Distill-Qwen-1.5B"],
}


@pytest.mark.parametrize(
    ("text", "name"), [(text, name) for name, texts in SHAPES.items() for text in texts]
)
def test_a_variant_is_the_catalogs_model_of_its_shape_and_a_note_says_so(
    text: str, name: str
) -> None:
    found, own = find_model(text), find_model(name)
    assert found.name == name
    said = hub_id(text) or text
    is_same = said.lower() == name.lower()
    note = "" if is_same else f"{said} has the same shape as {name}, which is counted."
    assert found.note.startswith(note)
    assert is_same == (found == own)


def test_packed_weights_are_said_to_be_a_choice_of_the_plan() -> None:
    assert "choice of the plan" in find_model("unsloth/Qwen3-4B-unsloth-bnb-4bit").note
    assert "choice of the plan" not in find_model("Qwen/Qwen3-4B-Base").note


@pytest.mark.parametrize(
    "text",
    [
        # their config.json differs from every model of the catalog
        *("mistralai/Ministral-8B-Instruct-2410", "microsoft/Phi-3-mini-128k-instruct"),
        *("meta-llama/Llama-3.2-11B-Vision-Instruct", "Qwen/Qwen2.5-VL-7B-Instruct"),
        *("deepseek-ai/DeepSeek-R1-Distill-Llama-8B", "Qwen/Qwen2.5-7B-Instruct-1M"),
        *("t5", "bert", "", "x" * 100_000, "../Llama-3.1-8B/", "meta-llama/Llama-3.1-9B"),
    ],
)
def test_another_model_is_no_variant(text: str) -> None:
    assert same_shape(text, CHECKPOINTS) is None


def test_no_two_models_of_the_catalog_are_taken_for_one() -> None:
    names = [*CHECKPOINTS, *SAME_SHAPE]
    assert len({shape_key(name) for name in names}) == len(names)
    assert set(SAME_SHAPE.values()) <= CHECKPOINTS.keys()


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("Llama-3.1-8B-Vision", "did you mean 'meta-llama/Llama-3.1-8B'?"),
        ("gemma-9b", "did you mean 'google/gemma-2-9b'?"),
        ("llama3.3", "did you mean 'meta-llama/Llama-3.3-70B-Instruct'?"),
        ("mistral-nemo", "did you mean 'mistralai/Mistral-Nemo-Base-2407'?"),
        ("teknium/OpenHermes-2.5-Mistral-7B", "did you mean 'mistralai/Mistral-7B-v0.3'?"),
        ("llama-19b", "must be a name"),
        # of another line, or another version of one
        *((name, "must be a name") for name in ("chatglm3-6b", "gemma3n:e4b", "kimi-k2", "gpt-4o")),
        *((name, "must be a name") for name in ("phi3.5", "ibm-granite/granite-3.3-8b-instruct")),
        *(
            (f"{name}", "must be a name")
            for name in ("Mistral-Small-Instruct-2409", "Llama-3.2-VISION.11B")
        ),
        # of several sizes
        ("gpt-oss", "say which: openai/gpt-oss-120b, openai/gpt-oss-20b"),
        ("ollama run llama3.2", "say which: meta-llama/Llama-3.2-3B, meta-llama/Llama-3.2-1B"),
        # not first the small ones with names such as bert_uncased_L-8_H-512_A-8
        ("bert", "say which: google-bert/bert-large-cased, google-bert/bert-large-uncased"),
        ("phi3", "say which: microsoft/Phi-3-medium-4k-instruct, microsoft/Phi-3-mini-4k-instruct"),
    ],
)
def test_a_hint_has_the_size_and_the_version_that_were_typed_or_lists_sizes(
    text: str, rule: str
) -> None:
    with refused(f"model = '{text}': {rule}"):
        find_model(text)


def test_sizes_are_read_from_names() -> None:
    names = ["a-7b", "a-70B", "a-1.7b", "a-8x7B", "a-30B-A3B", "a"]
    assert of_the_same_size("new-7B", names) == ["a-7b"]
    assert of_the_same_size("new-8x7b", names) == ["a-8x7B"]
    assert of_the_same_size("new", names) == names
