"""The measured configurations: each model and option alone, then random pairs and triples.

A model type is added to `LISTED`, with a small odd `configs/TYPE.json` and checkpoints of the
catalog; `python -m validation grid --kind TYPE` measures its rows.
"""

import random
from collections.abc import Iterable, Iterator
from itertools import islice, product
from typing import Any, Final

from calculator.catalog import MODELS
from calculator.errors import InputError
from calculator.models.registry import TYPES, type_of
from calculator.plan import Plan
from validation.configuration import Configuration
from validation.subject import find_subject

SEED: Final = 2021
DRAWN_PAIRS: Final = 130
DRAWN_TRIPLES: Final = 130
SMALL: Final = ("bert-base", "t5-small", "gpt2-s")
REPRESENTATIVES: Final = ("bert-large", "t5-base", "gpt2-m", "gpt-j-6b", "dalle-together")

# Model types beside those of `MODELS`: small odd sizes as a config.json, true sizes by name.
LISTED: Final[dict[str, tuple[str, ...]]] = {
    "roberta": ("validation/configs/roberta.json", "FacebookAI/roberta-base"),
    "distilbert": (
        "validation/configs/distilbert.json",
        "distilbert/distilbert-base-uncased",
    ),
    "opt": ("validation/configs/opt.json", "facebook/opt-125m", "facebook/opt-350m"),
    "mt5": ("validation/configs/mt5.json", "google/mt5-small"),
    "t5": ("google/t5-v1_1-small", "google/flan-t5-base"),
    "bloom": ("validation/configs/bloom.json", "bigscience/bloom-560m"),
    "bart": ("validation/configs/bart.json", "facebook/bart-base"),
    "codegen": ("validation/configs/codegen.json", "Salesforce/codegen-350M-mono"),
    "mpt": ("validation/configs/mpt.json", "mosaicml/mpt-7b"),
    "gpt_neox": ("validation/configs/gpt_neox.json", "EleutherAI/pythia-160m"),
    "starcoder2": ("validation/configs/starcoder2.json", "bigcode/starcoder2-3b"),
    "phi": ("validation/configs/phi.json", "microsoft/phi-1_5"),
    "falcon": (
        *("validation/configs/falcon.json", "validation/configs/falcon-grouped.json"),
        *("tiiuae/falcon-7b", "tiiuae/falcon-40b"),
    ),
    "llama": ("validation/configs/llama.json", "HuggingFaceTB/SmolLM2-135M"),
    "mistral": (
        *("validation/configs/mistral.json", "validation/configs/mistral-single.json"),
        "mistralai/Mistral-7B-v0.1",
    ),
    "ministral3": ("validation/configs/ministral3.json",),
    "qwen2": ("validation/configs/qwen2.json", "Qwen/Qwen2.5-0.5B"),
    "qwen3": ("validation/configs/qwen3.json", "Qwen/Qwen3-0.6B"),
    "phi3": (
        *("validation/configs/phi3.json", "microsoft/Phi-3-mini-4k-instruct"),
        *("validation/configs/phi3-padded.json", "validation/configs/phi3-longrope.json"),
    ),
    "smollm3": ("validation/configs/smollm3.json", "HuggingFaceTB/SmolLM3-3B"),
    "granite": ("validation/configs/granite.json", "ibm-granite/granite-3.1-8b-base"),
    "olmo2": ("validation/configs/olmo2.json", "allenai/OLMo-2-0425-1B"),
    "gemma": ("validation/configs/gemma.json", "google/gemma-2b"),
    "gemma2": ("validation/configs/gemma2.json", "google/gemma-2-2b"),
    "gemma3_text": ("validation/configs/gemma3_text.json", "google/gemma-3-270m"),
    "gemma4_text": (
        *("validation/configs/gemma4_text.json", "validation/configs/gemma4_text-experts.json"),
        *("google/gemma-4-E2B", "google/gemma-4-26B-A4B"),
    ),
    "gpt2": ("cerebras/Cerebras-GPT-111M", "cerebras/Cerebras-GPT-256M"),
    "cohere2": ("validation/configs/cohere2.json", "CohereLabs/c4ai-command-r7b-12-2024"),
    "deberta-v2": ("validation/configs/deberta-v2.json", "microsoft/deberta-v3-small"),
    "whisper": ("validation/configs/whisper.json", "openai/whisper-tiny"),
    "vit": ("validation/configs/vit.json", "google/vit-base-patch16-224"),
    "modernbert": ("validation/configs/modernbert.json", "answerdotai/ModernBERT-base"),
    "mixtral": ("validation/configs/mixtral.json", "mistralai/Mixtral-8x7B-v0.1"),
    "qwen3_moe": ("validation/configs/qwen3_moe.json", "Qwen/Qwen3-30B-A3B"),
    "qwen3_next": (*("validation/configs/qwen3_next.json", "Qwen/Qwen3-Next-80B-A3B-Instruct"),),
    "qwen3_5_text": ("validation/configs/qwen3_5_text.json", "Qwen/Qwen3.5-9B"),
    "qwen3_5_moe_text": ("validation/configs/qwen3_5_moe_text.json", "Qwen/Qwen3.5-35B-A3B"),
    "glm4_moe": ("validation/configs/glm4_moe.json", "zai-org/GLM-4.5-Air"),
    "gpt_oss": ("validation/configs/gpt_oss.json", "openai/gpt-oss-20b"),
    "deepseek_v2": ("validation/configs/deepseek_v2.json", "deepseek-ai/DeepSeek-V2-Lite"),
    "deepseek_v3": ("validation/configs/deepseek_v3.json", "deepseek-ai/DeepSeek-V3"),
}

# What `measure` runs on a reader's card in about a minute, from what any card holds to what a large
# one does; each shows something that the others do not.
CARD_STEPS: Final = (
    "gpt2-s --batch-size 4 --attention eager",
    "bert-large --batch-size 8 --optimizer adam --optimizer-bits 8",
    "gpt2-m --batch-size 4 --precision half --checkpointing full",
    "Qwen/Qwen3-0.6B --checkpointing full --sequence-length 1024",
    "Qwen/Qwen3-1.7B --lora 16 --quantization nf4 --checkpointing full --sequence-length 1024",
    "Qwen/Qwen3-1.7B --checkpointing full --sequence-length 2048",
    "meta-llama/Llama-3.1-8B --precision half --checkpointing full --sequence-length 4096",
)

# What each of them is measured with: batch, length, layers, and options that meet.
MIXED: Final[tuple[tuple[int, int, int | None, dict[str, Any]], ...]] = (
    (1, 128, None, {}),
    (2, 100, None, {"precision": "half", "attention": "eager"}),
    (3, 256, None, {"precision": "fp32", "attention": "math"}),
    (4, 64, None, {"checkpointing": "full"}),
    (2, 200, 5, {"precision": "half", "checkpointing": "selective"}),
    (8, 100, 6, {"attention": "efficient", "optimizer": "adam", "optimizer_bits": 8}),
    (2, 256, None, {"precision": "mixed", "attention": "flash"}),
    (2, 128, 5, {"attention": "eager", "checkpointing": "selective"}),
    (1, 250, 6, {"precision": "fp32", "attention": "eager", "checkpointing": "full"}),
    (2, 96, 5, {"dropout": 0.2, "attention": "math", "accumulation": 2, "optimizer": "sgd"}),
    (3, 128, 6, {"dropout": 0.0, "attention": "eager", "update": "fused"}),
    (2, 72, 7, {"precision": "half", "attention": "math", "checkpointing": "full"}),
    (2, 256, 9, {"precision": "fp32", "sharing_groups": 2, "optimizer": "momentum"}),
    (4, 200, 5, {"precision": "half", "optimizer": "lamb", "optimizer_bits": 8}),
)

# LoRA: the same of it. Where peft has no default targets, or adapts experts, all linear layers or
# the outputs of attention stand for them.
ADAPTED: Final = (
    *("validation/configs/llama.json", "HuggingFaceTB/SmolLM2-135M", "Qwen/Qwen3-0.6B"),
    *("gpt2-s", "google/flan-t5-base", "bert-base", "validation/configs/mixtral.json"),
    *("google/gemma-3-270m", "microsoft/phi-1_5", "validation/configs/falcon-grouped.json"),
    *("validation/configs/deepseek_v3.json", "openai/whisper-tiny", "facebook/bart-base"),
    *("google/vit-base-patch16-224", "meta-llama/Llama-3.1-8B"),
)
ADAPTERS: Final[tuple[tuple[int, int, int | None, dict[str, Any]], ...]] = (
    (1, 128, None, {"lora": 16}),
    (2, 100, 5, {"lora": 8, "precision": "half", "lora_targets": "all-linear"}),
    (3, 200, 6, {"lora": 64, "precision": "fp32", "checkpointing": "full", "lora_dropout": 0.1}),
    (4, 96, None, {"lora": 16, "lora_targets": "all-linear", "checkpointing": "full"}),
    (2, 256, 5, {"lora": 4, "precision": "half", "attention": "eager", "lora_dropout": 0.05}),
    (2, 160, 4, {"lora": 32, "optimizer_bits": 8, "checkpointing": "selective"}),
)
# Biases and whole modules trained beside adapters: models, and what each is measured with.
BIASED: Final = (
    *("gpt2-s", "bert-base", "FacebookAI/roberta-base", "facebook/opt-125m", "microsoft/phi-1_5"),
    *("Qwen/Qwen2.5-0.5B", "validation/configs/starcoder2.json", "EleutherAI/pythia-160m"),
)
BIASES: Final[tuple[dict[str, Any], ...]] = (
    {"lora_bias": "all"},
    {"lora_bias": "lora_only", "precision": "half", "update": "loop"},
    {"lora_bias": "all", "precision": "half", "checkpointing": "full", "lora_dropout": 0.1},
    {"lora_bias": "all", "precision": "fp32", "optimizer_bits": 8},
)
COPIED: Final = (
    *("HuggingFaceTB/SmolLM2-135M", "Qwen/Qwen3-0.6B", "meta-llama/Llama-3.1-8B"),
    *(
        f"validation/configs/{kind}.json"
        for kind in (
            *("llama", "mistral", "ministral3", "qwen2", "phi3", "smollm3", "olmo2", "granite"),
        )
    ),
)
COPIES: Final[tuple[dict[str, Any], ...]] = (
    {"lora_modules": "embed_tokens,lm_head"},
    {"lora_modules": "embed_tokens", "precision": "half", "checkpointing": "full"},
    {"lora_modules": "lm_head", "checkpointing": "full", "update": "loop"},
    {"lora_modules": "embed_tokens,lm_head", "precision": "half", "update": "loop"},
)
# The update inside the backward pass: models, and what each is measured with.
UPDATED: Final = (
    *("gpt2-s", "bert-base", "t5-small", "Qwen/Qwen3-0.6B", "google/gemma-3-270m"),
    *("validation/configs/llama.json", "validation/configs/mixtral.json", "facebook/opt-125m"),
    *("validation/configs/gpt_oss.json", "openai/whisper-tiny", "meta-llama/Llama-3.1-8B"),
)
UPDATES: Final[tuple[dict[str, Any], ...]] = (
    {},
    {"precision": "half", "update": "loop", "checkpointing": "full"},
    {"precision": "fp32", "update": "fused"},
    {"optimizer_bits": 8, "checkpointing": "full"},
    {"optimizer": "momentum", "precision": "half"},
    {"optimizer": "lion", "optimizer_bits": 32, "batch_size": 1},
    {"optimizer": "sgd", "sharing_groups": 2},
    {"optimizer": "lamb", "optimizer_bits": 8, "precision": "half"},
    {"lora": 8, "lora_targets": "all-linear"},
)
# Muon: one model of each type at least, and several with what it is measured with.
MATRICES: Final = (
    *REPRESENTATIVES,
    *(names[0] for names in LISTED.values()),
    *("Qwen/Qwen3-0.6B", "meta-llama/Llama-3.1-8B"),
)
MIXES: Final[tuple[dict[str, Any], ...]] = (
    {"precision": "half", "update": "loop"},
    {"precision": "mixed", "update": "fused"},
    {"precision": "fp32", "offload": "optimizer"},
    {"precision": "fp32", "update": "fused", "sharing_groups": 2},
    {"lora": 8, "lora_targets": "all-linear"},
)
# QLoRA: models, and what each is measured with; more than 1,536 tokens, for which bitsandbytes
# makes whole weights on every card.
PACKED: Final = (
    *("HuggingFaceTB/SmolLM2-135M", "Qwen/Qwen3-0.6B", "google/gemma-3-270m"),
    "meta-llama/Llama-3.1-8B",
    *(
        f"validation/configs/{kind}.json"
        for kind in (
            *("mistral", "ministral3", "qwen2", "phi3", "smollm3", "starcoder2", "gemma"),
            *("gemma2", "cohere2", "olmo2", "mixtral"),
        )
    ),
)
PACKINGS: Final[tuple[dict[str, Any], ...]] = (
    {"quantization": "nf4", "precision": "half"},
    {"quantization": "nf4-double", "checkpointing": "full"},
    {"quantization": "fp4", "precision": "fp32", "lora_dropout": 0.1},
    {"quantization": "fp4-double", "precision": "half", "checkpointing": "full"},
    {"quantization": "nf4-double", "optimizer_bits": 8},
)

# Several GPUs: what one model of each type is measured with, and more for a few of them.
REPLICATED: Final[tuple[tuple[int, int, dict[str, Any]], ...]] = (
    (1, 128, {"gpus": 2}),
    (2, 96, {"gpus": 8, "data_parallel": "ddp-view", "precision": "half"}),
)
REPLICATED_MORE: Final[tuple[tuple[int, int, dict[str, Any]], ...]] = (
    (2, 128, {"gpus": 1024, "precision": "mixed", "checkpointing": "full", "accumulation": 2}),
    (4, 100, {"gpus": 3, "data_parallel": "ddp-view", "attention": "eager"}),
    (2, 256, {"gpus": 4, "data_parallel": "ddp-view", "precision": "half", "update": "fused"}),
    (1, 200, {"gpus": 64, "precision": "fp32", "accumulation": 3, "optimizer": "sgd"}),
    (3, 64, {"gpus": 2, "optimizer_bits": 8, "lora": 16}),
    (2, 160, {"gpus": 2, "data_parallel": "ddp-view", "lora": 8, "checkpointing": "full"}),
    (2, 100, {"gpus": 16, "data_parallel": "ddp-view", "checkpointing": "selective"}),
    (1, 100, {"gpus": 4, "data_parallel": "zero1"}),
    (2, 96, {"gpus": 8, "data_parallel": "zero1", "precision": "half", "update": "loop"}),
    (1, 64, {"gpus": 64, "data_parallel": "zero1", "optimizer": "momentum", "accumulation": 2}),
    (2, 100, {"gpus": 3, "data_parallel": "zero1", "precision": "fp32", "update": "fused"}),
    (2, 120, {"gpus": 2, "data_parallel": "zero1", "precision": "half", "checkpointing": "full"}),
    (1, 80, {"gpus": 16, "data_parallel": "zero1", "lora": 8}),
)
# What FSDP's types are measured with.
SHARDED: Final[tuple[tuple[int, int, dict[str, Any]], ...]] = (
    (1, 128, {"gpus": 2, "precision": "mixed"}),
    (2, 100, {"gpus": 4, "precision": "half"}),
    (2, 256, {"gpus": 8, "precision": "fp32", "attention": "math"}),
    (4, 96, {"gpus": 64, "precision": "mixed", "checkpointing": "full"}),
    (1, 200, {"gpus": 4, "precision": "half", "checkpointing": "full", "update": "fused"}),
    (3, 72, {"gpus": 2, "precision": "mixed", "accumulation": 2, "update": "loop"}),
    (2, 160, {"gpus": 64, "precision": "half", "attention": "eager", "optimizer": "sgd"}),
    (2, 128, {"gpus": 1024, "precision": "mixed", "optimizer": "momentum"}),
    (2, 64, {"gpus": 8, "precision": "mixed", "checkpointing": "selective", "accumulation": 3}),
    (1, 256, {"gpus": 3, "precision": "fp32", "checkpointing": "full"}),
    (2, 100, {"gpus": 7, "precision": "mixed", "dropout": 0.1}),
    (1, 500, {"gpus": 16, "precision": "half", "optimizer": "momentum", "update": "loop"}),
    (8, 64, {"gpus": 32, "precision": "mixed", "tied_embeddings": False}),
    (2, 96, {"gpus": 5, "precision": "mixed", "tied_embeddings": True}),
)
# models, and layers of each; None is all
SHARDED_MODELS: Final[tuple[tuple[str, int | None], ...]] = (
    ("validation/configs/llama.json", None),
    ("validation/configs/qwen2.json", None),
    ("validation/configs/qwen3.json", None),
    ("gpt2-s", 5),
    ("HuggingFaceTB/SmolLM2-135M", None),
    ("Qwen/Qwen2.5-0.5B", 6),
    ("Qwen/Qwen3-0.6B", 7),
    ("gpt2-l", 3),
    ("cerebras/Cerebras-GPT-111M", 4),
    ("gpt2-s", 1),
    ("validation/configs/llama.json", 2),
    ("meta-llama/Llama-3.1-8B", None),
)

# One model of each other type, and what it is measured with; adapters where peft adapts all layers.
SHARDED_TYPES: Final[tuple[tuple[str, int | None], ...]] = (
    ("validation/configs/mistral.json", None),
    ("validation/configs/phi3.json", None),
    ("validation/configs/mixtral.json", None),
    *(
        (f"validation/configs/{kind}.json", None)
        for kind in ("starcoder2", "gemma", "gemma2", "gemma3_text")
    ),
    ("gpt-j-6b", 3),
)
SHARDED_EACH: Final[tuple[tuple[int, int, dict[str, Any]], ...]] = (
    (1, 128, {"gpus": 2, "precision": "mixed"}),
    (2, 100, {"gpus": 8, "precision": "half", "checkpointing": "full"}),
    (2, 72, {"gpus": 3, "precision": "fp32", "accumulation": 2}),
    (2, 96, {"gpus": 64, "precision": "half", "lora": 8, "lora_targets": "all-linear"}),
)
# Of these, those with which the rest is measured.
SHARDED_TOO: Final = (*SHARDED_MODELS[:5], SHARDED_MODELS[7], SHARDED_MODELS[11])

# The same with weights that stay whole between the two passes.
SHARDED_ONCE: Final[tuple[tuple[int, int, dict[str, Any]], ...]] = (
    (1, 128, {"gpus": 2, "precision": "mixed"}),
    (2, 100, {"gpus": 8, "precision": "half", "update": "fused"}),
    (2, 96, {"gpus": 64, "precision": "mixed", "checkpointing": "full", "accumulation": 2}),
    (3, 72, {"gpus": 3, "precision": "fp32", "attention": "eager", "optimizer": "momentum"}),
    (2, 64, {"gpus": 4, "precision": "half", "lora": 16, "lora_targets": "all-linear"}),
)
# The same with shards in RAM; of models whose shards fit this machine's.
SHARDED_IN_RAM: Final[tuple[tuple[int, int, dict[str, Any]], ...]] = (
    (1, 128, {"gpus": 2, "precision": "mixed"}),
    (2, 100, {"gpus": 8, "precision": "half", "data_parallel": "zero2", "update": "fused"}),
    (2, 96, {"gpus": 64, "precision": "mixed", "checkpointing": "full", "accumulation": 2}),
    (3, 72, {"gpus": 3, "precision": "fp32", "attention": "eager", "optimizer": "momentum"}),
    (2, 64, {"gpus": 4, "precision": "half", "lora": 16, "checkpointing": "full"}),
    (1, 80, {"gpus": 16, "precision": "mixed", "lora": 8, "data_parallel": "zero2"}),
)
# Packed weights in shards: models, and what they are measured with; more than 1,536 tokens, see
# `PACKINGS`.
SHARDED_PACKED: Final[tuple[tuple[int, dict[str, Any]], ...]] = (
    (2, {"quantization": "nf4"}),
    (4, {"quantization": "nf4-double", "data_parallel": "zero2", "checkpointing": "full"}),
    (3, {"quantization": "fp4", "precision": "fp32", "lora_dropout": 0.1}),
    (64, {"quantization": "fp4-double", "checkpointing": "full", "accumulation": 2}),
    (8, {"quantization": "nf4", "cpu_offload": True}),
)
# LoRA: what it is measured with.
SHARDED_ADAPTERS: Final[tuple[tuple[int, int, dict[str, Any]], ...]] = (
    (1, 128, {"gpus": 2, "precision": "half", "lora": 16}),
    (2, 100, {"gpus": 8, "precision": "mixed", "lora": 16, "lora_targets": "all-linear"}),
    (2, 96, {"gpus": 4, "precision": "half", "lora": 8, "checkpointing": "full"}),
    (3, 72, {"gpus": 64, "precision": "mixed", "lora": 4, "checkpointing": "full"}),
    (2, 160, {"gpus": 3, "precision": "fp32", "lora": 16, "optimizer": "sgd"}),
    (2, 64, {"gpus": 8, "precision": "half", "lora": 32, "accumulation": 2, "update": "loop"}),
    (1, 256, {"gpus": 16, "precision": "half", "lora": 64, "checkpointing": "selective"}),
    (4, 80, {"gpus": 1024, "precision": "mixed", "lora": 8, "checkpointing": "full"}),
)
# what each of these has beside
ADAPTER_DETAILS: Final[tuple[dict[str, Any], ...]] = (
    {},
    {"lora_dropout": 0.1},
    {"lora_targets": "all-linear"},
)

PARALLEL: Final = (
    *("gpt2-s", "bert-base", "HuggingFaceTB/SmolLM2-135M", "Qwen/Qwen3-0.6B"),
    *("Qwen/Qwen2.5-0.5B", "google/flan-t5-base", "meta-llama/Llama-3.1-8B", "gpt2-l"),
)

# The loss in chunks, and checkpoints in RAM: a model of each type, what all are measured with, and
# what a few are measured with too.
LAST_TYPES: Final = (
    *("gpt2-s", "EleutherAI/pythia-160m", "HuggingFaceTB/SmolLM2-135M", "Qwen/Qwen3-0.6B"),
    "meta-llama/Llama-3.1-8B",
    *(
        f"validation/configs/{kind}.json"
        for kind in (
            *("llama", "mistral", "ministral3", "qwen2", "phi3", "smollm3", "olmo2", "gemma"),
            *("starcoder2", "mixtral", "qwen3_moe"),
        )
    ),
)
CHUNKED: Final[tuple[tuple[int, int, dict[str, Any]], ...]] = (
    (1, 128, {}),
    (2, 100, {"precision": "half"}),
)
CHUNKED_MORE: Final[tuple[tuple[int, int, dict[str, Any]], ...]] = (
    (3, 250, {"precision": "mixed", "checkpointing": "full"}),
    (4, 96, {"precision": "fp32", "attention": "eager", "update": "fused", "accumulation": 2}),
    (2, 120, {"lora": 8, "lora_targets": "all-linear"}),
    (1, 333, {"lora": 16, "precision": "half", "checkpointing": "full", "lora_dropout": 0.1}),
    (2, 64, {"update_in_backward": True, "optimizer": "momentum"}),
    (2, 200, {"update_in_backward": True, "precision": "half", "checkpointing": "full"}),
    (1, 3, {"precision": "half", "optimizer": "sgd"}),
    (1, 1000, {"precision": "half", "tied_embeddings": False, "optimizer": "adafactor"}),
    (5, 77, {"tied_embeddings": True, "optimizer": "muon"}),
    (2, 128, {"sharing_groups": 2, "precision": "half", "accumulation": 3}),
    (2, 100, {"offload": "optimizer", "checkpointing": "selective"}),
)
# more than 1,536 tokens, see `PACKINGS`
CHUNKED_PACKED: Final[tuple[dict[str, Any], ...]] = (
    {"quantization": "nf4", "precision": "half", "checkpointing": "full"},
    {"quantization": "nf4-double"},
)
MOVED: Final[tuple[tuple[int, int, dict[str, Any]], ...]] = (
    (2, 128, {"activation_offload": "pinned"}),
    (1, 100, {"activation_offload": "pageable", "precision": "half"}),
)
MOVED_MORE: Final[tuple[tuple[int, int, dict[str, Any]], ...]] = (
    (3, 200, {"precision": "mixed", "accumulation": 2}),
    (2, 96, {"precision": "fp32", "update": "loop", "attention": "math"}),
    (2, 300, {"precision": "half", "chunked_loss": "torch", "optimizer_bits": 8}),
    (4, 64, {"lora": 8, "lora_targets": "all-linear", "chunked_loss": "torch"}),
    (2, 160, {"lora": 16, "precision": "half", "lora_dropout": 0.1}),
    (2, 80, {"update_in_backward": True, "dropout": 0.1}),
    (2, 128, {"sharing_groups": 2, "optimizer": "lion"}),
)
LAST_MODELS: Final = ("gpt2-s", "Qwen/Qwen3-0.6B")

# Checkpoints of every n-th layer: what a model of each type is measured with, and more for a few.
SPARED: Final[tuple[tuple[int, int, int | None, dict[str, Any]], ...]] = (
    (2, 100, 7, {"checkpoint_every": 2}),
    (1, 128, 9, {"checkpoint_every": 3, "precision": "half"}),
)
SPARED_MORE: Final[tuple[tuple[int, int, int | None, dict[str, Any]], ...]] = (
    (2, 96, None, {"checkpoint_every": 2, "precision": "mixed", "accumulation": 2}),
    (3, 200, 5, {"checkpoint_every": 4, "precision": "fp32", "attention": "math"}),
    (2, 120, 6, {"checkpoint_every": 2, "lora": 8, "lora_targets": "all-linear"}),
    (2, 128, 6, {"checkpoint_every": 3, "lora": 16, "precision": "half", "lora_dropout": 0.1}),
    (2, 100, None, {"checkpoint_every": 5, "precision": "half", "chunked_loss": "torch"}),
    (2, 160, 8, {"checkpoint_every": 2, "update_in_backward": True, "dropout": 0.1}),
    (2, 96, 7, {"checkpoint_every": 2, "gpus": 4}),
    (2, 64, 7, {"checkpoint_every": 3, "gpus": 8, "data_parallel": "fsdp", "precision": "mixed"}),
    (1, 100, None, {"checkpoint_every": 9, "attention": "eager", "update": "loop"}),
    (2, 80, 5, {"checkpoint_every": 30}),
)

# Checkpoints that keep results of some operations: the same.
KEEPING: Final[tuple[tuple[int, int, int | None, dict[str, Any]], ...]] = (
    (2, 100, 5, {}),
    (1, 128, 7, {"precision": "half"}),
)
KEEPING_MORE: Final[tuple[tuple[int, int, int | None, dict[str, Any]], ...]] = (
    (2, 96, None, {"precision": "mixed", "accumulation": 2}),
    (3, 200, 5, {"precision": "fp32", "attention": "efficient"}),
    (2, 128, 6, {"attention": "math", "update": "fused"}),
    (2, 160, 5, {"attention": "eager", "precision": "half"}),
    (2, 120, 6, {"lora": 8, "lora_targets": "all-linear"}),
    (2, 128, 6, {"lora": 16, "precision": "half", "lora_dropout": 0.1}),
    (2, 100, None, {"precision": "half", "chunked_loss": "torch", "checkpoint_every": 3}),
    (2, 160, 8, {"update_in_backward": True, "dropout": 0.1}),
    (2, 96, 7, {"gpus": 4}),
    (2, 64, 7, {"gpus": 8, "data_parallel": "fsdp", "precision": "mixed"}),
    (1, 300, 6, {"gpus": 4, "data_parallel": "zero2", "precision": "half"}),
    (4, 80, 6, {"sharing_groups": 2, "precision": "half"}),
    (2, 90, 6, {"gradient_scaler": True}),
    (2, 80, 6, {"gpus": 3, "data_parallel": "zero1"}),
    (2, 90, 6, {"gpus": 4, "data_parallel": "fsdp", "precision": "half", "lora": 8}),
    (2, 96, 6, {"optimizer": "adafactor", "tied_embeddings": False}),
)
# heads that kernels pad, or sum up in 32 bits, and values of another width than queries
KEEPING_HEADS: Final = (
    *("cerebras/Cerebras-GPT-256M", "google/gemma-3-270m", "validation/configs/gemma.json"),
    *("validation/configs/phi3-padded.json", "validation/configs/falcon-grouped.json"),
    *("validation/configs/deepseek_v3.json", "validation/configs/mistral-single.json"),
)
KEEPING_KERNELS: Final[tuple[tuple[int, int, int | None, dict[str, Any]], ...]] = (
    (2, 100, 5, {"attention": "flash", "precision": "half"}),
    (2, 96, 5, {"attention": "efficient"}),
    (1, 128, 5, {"attention": "efficient", "precision": "half"}),
    (2, 200, 5, {"precision": "fp32"}),
)

# and where weights are in 4 bits, or layers in shares or stages
KEEPING_PACKED: Final[tuple[dict[str, Any], ...]] = (
    {"quantization": "nf4", "precision": "half"},
    {"quantization": "fp4-double", "lora_dropout": 0.1},
)
KEEPING_SPLIT: Final[tuple[tuple[int, int, dict[str, Any]], ...]] = (
    (2, 100, {}),
    (1, 128, {"precision": "half"}),
)
KEEPING_PARTED: Final[tuple[tuple[int, int, int, dict[str, Any]], ...]] = (
    (2, 96, 2, {}),
    (1, 192, 4, {"precision": "half", "attention": "eager"}),
)
KEEPING_PIPED: Final[tuple[tuple[int, int, int, int, dict[str, Any]], ...]] = (
    (2, 100, 2, 3, {}),
    (1, 128, 3, 4, {"precision": "half", "pipeline_schedule": "gpipe"}),
    (2, 80, 2, 4, {"pipeline_schedule": "interleaved", "attention": "eager"}),
    (2, 96, 2, 2, {"lora": 8, "lora_targets": "all-linear"}),
)
# models of which the last stage is the fullest, under autocast with 16-bit copies of its weights
KEEPING_LAST: Final = (
    *("HuggingFaceTB/SmolLM2-135M", "Qwen/Qwen3-0.6B", "meta-llama/Llama-3.2-1B"),
    "meta-llama/Llama-3.1-8B",
)

# Weights in float16, of types whose code asks for the format or widens in other ways.
FP16_TYPES: Final = (
    *("t5-small", "google/mt5-small", "openai/whisper-tiny", "bigscience/bloom-560m"),
    *("validation/configs/mixtral.json", "validation/configs/qwen3_moe.json"),
    *("validation/configs/gemma4_text.json", "validation/configs/deepseek_v3.json"),
)
FP16: Final[tuple[dict[str, Any], ...]] = (
    {"precision": "half", "attention": "eager"},
    {"precision": "mixed", "checkpointing": "full"},
)

# A gradient scaler: what a model of each type is measured with, and more for a few.
SCALED: Final[tuple[tuple[int, int, int | None, dict[str, Any]], ...]] = (
    (2, 100, 5, {}),
    (1, 128, 6, {"update": "fused", "checkpointing": "full"}),
    (2, 112, 5, {"attention": "eager", "dropout": 0.1}),
)
SCALED_MORE: Final[tuple[tuple[int, int, int | None, dict[str, Any]], ...]] = (
    (2, 96, 5, {"optimizer": "sgd", "accumulation": 2, "attention": "math"}),
    (2, 96, 5, {"optimizer": "momentum", "update": "fused", "checkpointing": "selective"}),
    (3, 64, 6, {"optimizer_bits": 8}),
    (2, 200, 4, {"optimizer": "lion", "attention": "efficient"}),
    (2, 128, 5, {"optimizer": "adafactor", "checkpointing": "full", "checkpoint_every": 2}),
    (2, 120, 6, {"lora": 8, "lora_targets": "all-linear", "update": "loop"}),
    (2, 96, 5, {"gpus": 4}),
    (4, 80, 5, {"optimizer": "lamb", "optimizer_bits": 32, "sharing_groups": 2}),
)

# Layers split over several GPUs: models with their layers, and what each is measured with.
SPLIT_MODELS: Final[tuple[tuple[str, int | None], ...]] = (
    *((f"validation/configs/{kind}.json", None) for kind in ("llama", "mistral", "qwen2")),
    ("HuggingFaceTB/SmolLM2-135M", 6),
    ("Qwen/Qwen2.5-0.5B", 7),
    ("meta-llama/Llama-3.1-8B", None),
    ("mistralai/Mistral-7B-v0.1", 5),
    ("HuggingFaceTB/SmolLM3-3B", 6),
    ("ibm-granite/granite-3.1-8b-base", 5),
    ("validation/configs/ministral3.json", None),
)
MOST_SPLIT: Final = 8
SPLIT: Final[tuple[tuple[int, int, dict[str, Any]], ...]] = (
    (1, 128, {}),
    (2, 100, {"precision": "half"}),
    (2, 256, {"precision": "fp32", "attention": "math"}),
    (4, 96, {"precision": "mixed", "checkpointing": "full"}),
    (1, 200, {"precision": "half", "checkpointing": "full", "update": "fused"}),
    (3, 72, {"accumulation": 2, "update": "loop"}),
    (2, 160, {"precision": "half", "attention": "eager", "optimizer": "sgd"}),
    (2, 128, {"checkpointing": "selective", "optimizer": "momentum"}),
    (2, 96, {"checkpointing": "full", "checkpoint_every": 2, "dropout": 0.1}),
)
# The same beside split tokens, on as many GPUs.
PARTED: Final[tuple[tuple[int, int, int, dict[str, Any]], ...]] = (
    (1, 128, 2, {}),
    (2, 96, 2, {"precision": "half"}),
    (2, 256, 2, {"precision": "fp32", "attention": "math", "update": "loop"}),
    (4, 96, 2, {"precision": "mixed", "checkpointing": "full"}),
    (1, 192, 4, {"precision": "half", "checkpointing": "full", "update": "fused"}),
    (3, 72, 2, {"accumulation": 2, "optimizer": "momentum"}),
    (2, 160, 4, {"precision": "half", "attention": "eager", "optimizer": "sgd"}),
    (2, 128, 2, {"checkpointing": "selective"}),
    (2, 96, 8, {"checkpointing": "full", "checkpoint_every": 2, "dropout": 0.1}),
)

# Experts divided among GPUs: models with their layers and numbers of GPUs, and what each is
# measured with; of small ones with all of it.
EXPERTS_SMALL: Final[tuple[tuple[str, tuple[int, ...]], ...]] = (
    ("mixtral", (5,)),
    *(("qwen3_moe", (3, 9)), ("qwen3_next", (3, 9)), ("qwen3_5_moe_text", (3, 9))),
    *(("gpt_oss", (3, 9)), ("glm4_moe", (2, 12))),
    *(("deepseek_v2", (4, 12)), ("deepseek_v3", (2, 6))),
)
EXPERTS: Final[tuple[tuple[int, int, dict[str, Any]], ...]] = (
    (1, 180, {}),
    (2, 90, {"precision": "half"}),
    (2, 180, {"precision": "fp32", "attention": "math"}),
    (4, 90, {"precision": "mixed", "checkpointing": "full"}),
    (1, 180, {"precision": "half", "checkpointing": "full", "update": "fused"}),
    (2, 90, {"accumulation": 2, "update": "loop"}),
    (2, 180, {"precision": "half", "attention": "eager", "optimizer": "sgd"}),
    (2, 180, {"checkpointing": "selective", "optimizer": "momentum"}),
    (2, 90, {"checkpointing": "full", "checkpoint_every": 2, "dropout": 0.1}),
)
EXPERTS_MODELS: Final[tuple[tuple[str, int, tuple[int, ...]], ...]] = (
    ("mistralai/Mixtral-8x7B-v0.1", 3, (2, 4, 8)),
    ("Qwen/Qwen3-30B-A3B", 3, (2, 16, 64)),
    ("openai/gpt-oss-20b", 4, (4, 32)),
    ("deepseek-ai/DeepSeek-V2-Lite", 3, (8, 64)),
    ("zai-org/GLM-4.5-Air", 3, (8, 64)),
)
EXPERTS_AT_SIZE: Final[tuple[tuple[int, int, dict[str, Any]], ...]] = (
    (1, 2048, {"precision": "half"}),
    (2, 1024, {"checkpointing": "full"}),
)

# Stages of a pipeline: models with their layers, and what each is measured with: sequences,
# tokens, stages, micro-batches and options.
GPIPE: Final = {"pipeline_schedule": "gpipe"}
PIPED_TYPES: Final = (*("llama", "mistral", "qwen2", "qwen3", "phi3", "smollm3", "ministral3"),)
PIPED_EACH: Final[tuple[tuple[int, int, int, int, dict[str, Any]], ...]] = (
    (1, 128, 2, 2, {}),
    (2, 100, 3, 4, {"precision": "half", **GPIPE}),
)
PIPED: Final[tuple[tuple[int, int, int, int, dict[str, Any]], ...]] = (
    (2, 96, 3, 5, {"precision": "fp32", "attention": "math"}),
    (1, 64, 4, 6, {"precision": "mixed", "checkpointing": "full", **GPIPE}),
    (1, 120, 7, 7, {"checkpointing": "full"}),
    (3, 72, 2, 3, {"attention": "eager", "optimizer": "momentum", "update": "fused"}),
    (2, 120, 7, 9, {"precision": "half", "attention": "eager", "update": "loop"}),
    (2, 110, 3, 3, {"checkpointing": "selective", "precision": "half"}),
    (2, 64, 5, 6, {"precision": "half", "optimizer_bits": 8, **GPIPE}),
)
# Sequences divided among several GPUs: models, and what each is measured with: sequences, tokens,
# GPUs, of which so many divide a sequence, and options. At most a few tokens less than the window
# of a model that has one.
FSDP: Final = {"data_parallel": "fsdp", "precision": "mixed"}
ALL_TO_ALL: Final = {"context_rotation": "alltoall"}
DIVIDED_MODELS: Final = (
    *("validation/configs/llama.json", "HuggingFaceTB/SmolLM2-135M", "Qwen/Qwen3-0.6B"),
    *("Qwen/Qwen2.5-0.5B", "validation/configs/phi3.json", "validation/configs/smollm3.json"),
    *("validation/configs/ministral3.json", "validation/configs/qwen3.json"),
    "meta-llama/Llama-3.2-1B",
)
DIVIDED_MORE: Final = (*zip(DIVIDED_MODELS[:3], (None, 6, 3), strict=True),)
DIVIDED_EACH: Final[tuple[tuple[int, int, int, int, dict[str, Any]], ...]] = (
    (1, 128, 2, 2, {}),
    (2, 192, 6, 3, {"precision": "half", "checkpointing": "full", "update": "loop"}),
)
DIVIDED: Final[tuple[tuple[int, int, int, int, dict[str, Any]], ...]] = (
    (2, 128, 4, 4, ALL_TO_ALL),
    (1, 512, 64, 64, {**FSDP, "checkpointing": "full"}),
    (3, 160, 8, 4, {"data_parallel": "zero2", "precision": "mixed", "accumulation": 2}),
    (2, 256, 16, 16, {"data_parallel": "ddp-view", "precision": "half", **ALL_TO_ALL}),
    (2, 320, 32, 32, {"checkpointing": "selective"}),
    (1, 250, 10, 5, {"attention": "flash", "optimizer": "momentum", "update": "fused"}),
    (2, 128, 8, 8, {"gradient_scaler": True, "accumulation": 2}),
    (2, 128, 4, 2, {"dropout": 0.1}),
    (2, 96, 6, 3, {"lora": 8, "lora_targets": "all-linear", "precision": "half"}),
    (1, 128, 4, 4, {**FSDP, "lora": 16, "checkpointing": "full", **ALL_TO_ALL}),
    (1, 64, 2, 2, {**FSDP, "cpu_offload": True}),
    (2, 192, 6, 3, {"data_parallel": "fsdp", "precision": "half", "checkpointing": "full"}),
    (1, 192, 8, 4, {"checkpointing": "full", "checkpoint_every": 2, "optimizer_bits": 8}),
)
# at true sizes: models, and layers
DIVIDED_LARGE: Final = (("meta-llama/Llama-3.1-8B", 4), ("Qwen/Qwen3-8B", 3))
DIVIDED_LONG: Final[tuple[tuple[int, int, int, int, dict[str, Any]], ...]] = (
    (1, 131_072, 8, 8, {**FSDP, "checkpointing": "full"}),
    (1, 131_072, 32, 16, {**FSDP, "checkpointing": "full", **ALL_TO_ALL}),
    (1, 1_048_576, 64, 64, {**FSDP, "checkpointing": "full"}),
    (2, 16_384, 8, 2, {**FSDP, "checkpointing": "selective"}),
)
DIVIDED_WHOLE: Final = (
    (("HuggingFaceTB/SmolLM2-135M", None), DIVIDED[1]),
    (("meta-llama/Llama-3.1-8B", None), DIVIDED_LONG[0]),
    (("meta-llama/Llama-3.1-70B", None), DIVIDED_LONG[3]),
)
PIPED_MODELS: Final[tuple[tuple[str, int | None], ...]] = (
    ("meta-llama/Llama-3.2-1B", None),
    ("meta-llama/Llama-3.1-8B", None),
    ("mistralai/Mistral-7B-v0.1", None),
    ("Qwen/Qwen2.5-0.5B", None),
    ("Qwen/Qwen3-0.6B", None),
    ("HuggingFaceTB/SmolLM2-135M", None),
)
PIPED_AT_SIZE: Final[tuple[tuple[int, int, int, int, dict[str, Any]], ...]] = (
    (1, 256, 4, 4, {}),
    (2, 128, 4, 6, {"precision": "mixed", **GPIPE}),
    (1, 200, 5, 7, {"dropout": 0.1}),
)
# and the first two of them with more stages
PIPED_LONG: Final[tuple[tuple[int, int, int, int, dict[str, Any]], ...]] = (
    (1, 512, 8, 8, {"precision": "half", "checkpointing": "full"}),
    (1, 128, 16, 16, {"precision": "half", "optimizer": "sgd"}),
)

# The same with several stages on each GPU: of a small model of each type, of four of them, and of
# models at their size.
TURNED: Final = {"pipeline_schedule": "interleaved"}
TURNED_EACH: Final[tuple[tuple[int, int, int, int, dict[str, Any]], ...]] = (
    (1, 100, 2, 4, {**TURNED}),
)
TURNED_MORE: Final[tuple[tuple[int, int, int, int, dict[str, Any]], ...]] = (
    (2, 64, 3, 6, {"precision": "fp32", "attention": "eager", "update": "fused", **TURNED}),
    (2, 96, 2, 3, {"precision": "half", "checkpointing": "selective", **TURNED}),
    (1, 120, 2, 6, {"checkpointing": "full", "pipeline_stages": 3, "dropout": 0.1, **TURNED}),
    (3, 72, 3, 2, {"precision": "mixed", "optimizer": "momentum", **TURNED}),
)
TURNED_AT_SIZE: Final[tuple[tuple[str, int, int, int, int, dict[str, Any]], ...]] = (
    ("meta-llama/Llama-3.2-1B", 1, 256, 4, 8, {**TURNED, "precision": "half"}),
    (
        "meta-llama/Llama-3.2-1B",
        2,
        128,
        2,
        5,
        {**TURNED, "pipeline_stages": 4, "checkpointing": "full"},
    ),
    (
        "meta-llama/Llama-3.1-8B",
        1,
        512,
        8,
        8,
        {**TURNED, "checkpointing": "full", "precision": "mixed"},
    ),
    (
        "meta-llama/Llama-3.1-8B",
        1,
        128,
        4,
        8,
        {**TURNED, "pipeline_stages": 4, "precision": "half"},
    ),
    (
        "mistralai/Mistral-7B-v0.1",
        1,
        200,
        4,
        6,
        {**TURNED, "pipeline_stages": 3, "optimizer_bits": 8},
    ),
    ("Qwen/Qwen2.5-0.5B", 2, 128, 4, 10, {**TURNED, "attention": "eager"}),
    ("Qwen/Qwen3-0.6B", 1, 160, 5, 7, {**TURNED, "pipeline_stages": 3, "update": "loop"}),
)

# Types whose class changes what its first layer gets, or has norms after attention; tied
# embeddings, which the first and the last GPU have each; and adapters.
PIPED_TOO: Final[tuple[tuple[str, int | None], ...]] = (
    ("gpt2-s", 7),
    ("validation/configs/granite.json", None),
    ("validation/configs/olmo2.json", None),
)
# Paged states: what a model of each type is measured with, more for some, and QLoRA's.
PAGED_EACH: Final[tuple[tuple[int, int, int | None, dict[str, Any]], ...]] = (
    (2, 72, 5, {"optimizer_bits": 8}),
)
PAGED_MODELS: Final = (
    *("gpt2-s", "bert-base", "t5-small", "HuggingFaceTB/SmolLM2-135M", "Qwen/Qwen3-0.6B"),
    *("google/gemma-3-270m", "meta-llama/Llama-3.1-8B"),
)
PAGED: Final[tuple[tuple[int, int, int | None, dict[str, Any]], ...]] = (
    (1, 128, None, {}),
    (2, 96, 5, {"optimizer_bits": 8, "accumulation": 3}),
    (2, 128, 6, {"precision": "half", "checkpointing": "full"}),
    (1, 160, 5, {"precision": "mixed", "optimizer_bits": 8, "checkpointing": "full"}),
    (2, 80, 5, {"precision": "fp32", "optimizer": "lion", "checkpointing": "selective"}),
    (3, 64, 6, {"precision": "half", "optimizer": "lion", "optimizer_bits": 8}),
    (2, 100, 5, {"update_in_backward": True, "optimizer_bits": 8, "sharing_groups": 2}),
    (2, 96, None, {"lora": 16, "lora_targets": "all-linear", "optimizer_bits": 8}),
    (2, 120, 5, {"lora": 64, "precision": "half", "checkpointing": "full", "accumulation": 2}),
    (1, 100, 5, {"gpus": 4, "optimizer_bits": 8}),
    (2, 72, 6, {"gpus": 2, "data_parallel": "ddp-view", "lora": 64, "precision": "half"}),
    (2, 80, 5, {"gradient_scaler": True}),
    (2, 64, 5, {"reversible": True, "optimizer_bits": 8}),
)
PAGED_ADAPTERS: Final = {"sequence_length": 512, "quantization": "nf4-double"}
PAGED_PACKED: Final[tuple[dict[str, Any], ...]] = (
    {"batch_size": 4, "lora": 64, "optimizer_bits": 8, "precision": "half"},
    {"batch_size": 4, "lora": 16, "checkpointing": "full", "accumulation": 2},
)

PIPED_TIED: Final[tuple[tuple[str, int | None], ...]] = (
    *PIPED_TOO[:2],
    *((f"validation/configs/{kind}.json", None) for kind in ("llama", "qwen2", "qwen3", "smollm3")),
)
TIED_EACH: Final[tuple[tuple[int, int, int, int, dict[str, Any]], ...]] = (
    (1, 80, 2, 3, {}),
    (2, 64, 3, 3, {"precision": "half", "update": "fused", **TURNED}),
)
PIPED_ADAPTERS: Final[tuple[tuple[int, int, int, int, dict[str, Any]], ...]] = (
    (1, 96, 3, 4, {"lora": 8, "lora_targets": "all-linear", "checkpointing": "full"}),
    (2, 64, 2, 4, {"lora": 16, "precision": "half", "lora_dropout": 0.1, **TURNED}),
)
PIPED_LAST: Final[tuple[tuple[str, int, int, int, int, dict[str, Any]], ...]] = (
    ("gpt2-l", 1, 256, 4, 6, {"tied_embeddings": True, "precision": "half"}),
    ("cerebras/Cerebras-GPT-111M", 2, 128, 2, 4, {"tied_embeddings": True, **TURNED}),
    ("HuggingFaceTB/SmolLM2-135M", 1, 200, 5, 6, {"tied_embeddings": True}),
    ("Qwen/Qwen3-0.6B", 2, 96, 4, 8, {"tied_embeddings": True, "precision": "mixed", **GPIPE}),
    ("ibm-granite/granite-3.1-8b-base", 1, 128, 4, 4, {"precision": "half"}),
    ("allenai/OLMo-2-0425-1B", 1, 160, 4, 8, {**TURNED}),
    ("meta-llama/Llama-3.1-8B", 1, 512, 4, 8, {"lora": 16, "checkpointing": "full"}),
)

# Options are tried on shallow stacks, which cost less to measure and in which a wrong layer weighs
# more; models and shapes are measured at full depth.
DEPTHS: Final = (5, 6, 7, 9)

BATCHES: Final = (1, 2, 3, 4, 8)
LENGTHS: Final = (64, 100, 128, 256, 384, 500, 512, 768, 1000, 1024, 1536, 2048)

OPTIMIZERS: Final[tuple[dict[str, Any], ...]] = (
    {"optimizer": "adam", "update": "fused"},
    {"optimizer": "adam", "update": "loop"},
    {"optimizer": "adam", "optimizer_bits": 8},
    {"optimizer": "adam", "optimizer_bits": 32},
    {"optimizer": "lamb", "optimizer_bits": 32},
    {"optimizer": "lamb", "optimizer_bits": 8},
    {"optimizer": "lion", "optimizer_bits": 32},
    {"optimizer": "lion", "optimizer_bits": 8},
    {"optimizer": "sgd"},
    {"optimizer": "sgd", "update": "fused"},
    {"optimizer": "sgd", "update": "loop"},
    {"optimizer": "momentum"},
    {"optimizer": "momentum", "update": "fused"},
    {"optimizer": "momentum", "update": "loop"},
    {"optimizer": "momentum", "optimizer_bits": 8},
    {"optimizer": "adafactor"},
    {"optimizer": "adafactor", "update": "loop"},
)

TECHNIQUES: Final[dict[str, tuple[dict[str, Any], ...]]] = {
    "precision": tuple({"precision": name} for name in ("fp32", "mixed", "half")),
    "optimizer": OPTIMIZERS,
    "attention": tuple({"attention": name} for name in ("eager", "flash", "efficient", "math")),
    "checkpointing": tuple({"checkpointing": name} for name in ("full", "selective")),
    "offload": ({"offload": "optimizer"},),
    "sharing_groups": tuple({"sharing_groups": count} for count in (1, 2, 3, 4)),
    "reversible": ({"reversible": True}, {"reversible": False}),
    "dropout": tuple({"dropout": share} for share in (0.0, 0.1, 0.2)),
    "accumulation": tuple({"accumulation": count} for count in (2, 4)),
    "tied_embeddings": ({"tied_embeddings": False}, {"tied_embeddings": True}),
}


def grid() -> list[Configuration]:
    """All configurations, each once, in an order that never changes and soon shows all kinds."""
    listed = (
        *_models(),
        *_alone(),
        *_shapes(),
        *_drawn(),
        *_listed(),
        *_crossed(),
        *_adapted(),
        *_packed(),
        *_trained_beside(),
        *_updated(),
        *_orthogonal(),
        *_replicated(),
        *_sharded(),
        *_sharded_adapters(),
        *_sharded_once(),
        *_sharded_in_ram(),
        *_sharded_packed(),
        *_chunked(),
        *_moved(),
        *_spared(),
        *_keeping(),
        *_split(),
        *_parted(),
        *_experts(),
        *_pipelined(),
        *_divided(),
        *_scaled(),
        *_in_fp16(),
        *_paged(),
    )
    found = {(item.subject, item.resolved): item for item in reversed(listed)}
    configurations = list(found.values())
    random.Random(SEED).shuffle(configurations)
    return configurations


def _models() -> Iterator[Configuration]:
    """Every model at its defaults, in every precision, and checkpointed."""
    for model in MODELS:
        yield from _valid(model, {})
        for choice in TECHNIQUES["precision"]:
            yield from _valid(model, choice)
        yield from _valid(model, {"checkpointing": "full"})


def _alone() -> Iterator[Configuration]:
    """One model of each family with each value of each option, some in fp32 too."""
    for model in REPRESENTATIVES:
        for name, choices in TECHNIQUES.items():
            for choice in choices:
                yield from _valid(model, choice, DEPTHS[1])
                if name in ("attention", "checkpointing", "dropout", "sharing_groups"):
                    fp32 = {"batch_size": 2, "precision": "fp32", **choice}
                    yield from _valid(model, fp32, DEPTHS[1])


def _shapes() -> Iterator[Configuration]:
    """Batches and lengths away from the defaults."""
    draw = random.Random(SEED)
    for model in MODELS:
        for _ in range(3):
            yield from _valid(model, _shape(draw, model))


def _crossed() -> Iterator[Configuration]:
    """Small models with every kind of checkpointing, kernel and precision, some reversible too."""
    sizes = {"batch_size": 2, "sequence_length": 200}
    names = ("precision", "attention", "checkpointing")
    choices = [({}, *TECHNIQUES[name]) for name in names]
    for model in SMALL:
        for crossed in product(*choices):
            options = dict(item for choice in crossed for item in choice.items())
            yield from _valid(model, sizes | options, DEPTHS[0])
            if options.keys() & {"checkpointing"}:
                yield from _valid(model, sizes | options | {"reversible": True}, DEPTHS[0])


def _adapted() -> Iterator[Configuration]:
    """Models with adapters beside some of their layers, in every mixture."""
    for name, (batch, length, layers, mixed) in product(ADAPTED, ADAPTERS):
        options = {"batch_size": batch, **_lengths(name, length), **mixed}
        choices: tuple[dict[str, str], ...] = (
            {},
            {"lora_targets": "all-linear"},
            {"lora_targets": "o_proj"},
        )
        yield from next(
            filter(None, (_valid(name, options | more, layers) for more in choices)), []
        )


def _packed() -> Iterator[Configuration]:
    """Models with adapters beside frozen weights in 4 bits."""
    for name, mixed in product(PACKED, PACKINGS):
        options = {"batch_size": 8, "sequence_length": 256, "lora": 16, **mixed}
        choices: tuple[dict[str, str], ...] = (
            {"lora_targets": "all-linear"},
            {"lora_targets": "o_proj"},
        )
        yield from next(filter(None, (_valid(name, options | more, 4) for more in choices)), [])


def _trained_beside() -> Iterator[Configuration]:
    """Models with adapters, and biases or whole modules trained beside them."""
    listed = [*product(BIASED, BIASES), *product(COPIED, COPIES)]
    for name, mixed in listed:
        sizes = {"batch_size": 2, **_lengths(name, 120), "lora": 8, "lora_targets": "all-linear"}
        yield from _valid(name, sizes | mixed, DEPTHS[2])


def _updated() -> Iterator[Configuration]:
    """Models whose weights are updated in the backward pass."""
    for name, mixed in product(UPDATED, UPDATES):
        sizes = {"batch_size": 2, **_lengths(name, 120), "update_in_backward": True}
        yield from _valid(name, sizes | mixed, DEPTHS[2])


def _orthogonal() -> Iterator[Configuration]:
    """Every type under Muon, some in other formats too."""
    listed: list[tuple[str, dict[str, Any]]] = [(name, {}) for name in MATRICES]
    for name, mixed in [*listed, *product((*SMALL, *MATRICES[-2:]), MIXES)]:
        sizes = {"optimizer": "muon", **_lengths(name, 48)}
        yield from _valid(name, sizes | mixed, DEPTHS[1])


def _replicated() -> Iterator[Configuration]:
    """A copy of the model on each of several GPUs."""
    first = (
        "bert-base",
        "t5-small",
        "gpt2-s",
        "gpt-j-6b",
        *(names[0] for names in LISTED.values()),
    )
    tried = [(name, mix) for name in first for mix in REPLICATED]
    tried += [(name, mix) for name in PARALLEL for mix in REPLICATED_MORE]
    for name, (batch, length, mixed) in tried:
        options = {"batch_size": batch, **_lengths(name, length), **mixed}
        depth = None if name.startswith("validation/") else DEPTHS[0]
        yield from _valid(name, options, depth)


def _sharded() -> Iterator[Configuration]:
    """FSDP's shards."""
    tried = [*product(SHARDED_MODELS, SHARDED), *product(SHARDED_TYPES, SHARDED_EACH)]
    for (name, depth), (batch, length, mixed) in tried:
        options = {"batch_size": batch, **_lengths(name, length), **mixed}
        yield from _valid(name, {**options, "data_parallel": "fsdp"}, depth)


def _sharded_once() -> Iterator[Configuration]:
    """Shards that are gathered once in a micro-step."""
    for (name, depth), (batch, length, mixed) in product(SHARDED_TOO, SHARDED_ONCE):
        options = {"batch_size": batch, **_lengths(name, length), **mixed}
        yield from _valid(name, {**options, "data_parallel": "zero2"}, depth)


def _sharded_in_ram() -> Iterator[Configuration]:
    """Shards that stand in RAM."""
    models = (*SHARDED_TOO[:-1], *SHARDED_TYPES[:-1])
    for (name, depth), (batch, length, mixed) in product(models, SHARDED_IN_RAM):
        options = {"batch_size": batch, **_lengths(name, length), "data_parallel": "fsdp", **mixed}
        yield from _valid(name, {**options, "cpu_offload": True}, depth)


def _sharded_packed() -> Iterator[Configuration]:
    """Adapters beside packed weights in shards."""
    models = (*PACKED, "validation/configs/qwen3.json")
    for name, (gpus, mixed) in product(models, SHARDED_PACKED):
        options = {"batch_size": 8, "sequence_length": 256, "precision": "half", "gpus": gpus}
        adapted = {"data_parallel": "fsdp", "lora": 16, "lora_targets": "all-linear"}
        yield from _valid(name, options | adapted | mixed, 4)


def _sharded_adapters() -> Iterator[Configuration]:
    """Adapters on FSDP's shards."""
    tried = [*product(SHARDED_TOO, SHARDED_ADAPTERS)]
    tried.append((("meta-llama/Llama-3.1-70B", None), SHARDED_ADAPTERS[2]))
    for number, ((name, depth), (batch, length, mixed)) in enumerate(tried):
        details = ADAPTER_DETAILS[number % len(ADAPTER_DETAILS)]
        options = {"batch_size": batch, **_lengths(name, length), **details, **mixed}
        yield from _valid(name, {**options, "data_parallel": "fsdp"}, depth)


def _chunked() -> Iterator[Configuration]:
    """Losses that never make all logits."""
    tried = [*product((*LAST_TYPES, "google/gemma-3-270m"), CHUNKED)]
    tried += product(LAST_MODELS, CHUNKED_MORE)
    for name, (batch, length, mixed) in tried:
        options = {"batch_size": batch, "sequence_length": length, **mixed}
        yield from _valid(name, {**options, "chunked_loss": "torch"}, DEPTHS[0])
    for name, mixed in product(LAST_MODELS, CHUNKED_PACKED):
        options = {"batch_size": 8, "sequence_length": 256, "lora": 16, **mixed}
        more = {"lora_targets": "all-linear", "chunked_loss": "torch"}
        yield from _valid(name, options | more, 4)


def _moved() -> Iterator[Configuration]:
    """Inputs of checkpointed layers in RAM."""
    tried = [*product((*LAST_TYPES, "microsoft/phi-1_5", "validation/configs/granite.json"), MOVED)]
    tried += product(LAST_MODELS, MOVED_MORE)
    for name, (batch, length, mixed) in tried:
        options = {"batch_size": batch, "sequence_length": length, "checkpointing": "full"}
        moved = {"activation_offload": "pinned", **mixed}
        yield from _valid(name, options | moved, DEPTHS[0])


def _spared() -> Iterator[Configuration]:
    """Checkpoints of some layers only."""
    listed = [*product(MATRICES, SPARED), *product((*SMALL, LAST_MODELS[-1]), SPARED_MORE)]
    for name, (batch, length, depth, mixed) in listed:
        options = {"batch_size": batch, **_lengths(name, length), "checkpointing": "full"}
        yield from _valid(name, options | mixed, depth)


def _keeping() -> Iterator[Configuration]:
    """Checkpoints that keep results of some operations."""
    listed = [*product(MATRICES, KEEPING), *product(KEEPING_HEADS, KEEPING_KERNELS)]
    listed += product((*SMALL, *LAST_MODELS[1:], MATRICES[-1]), KEEPING_MORE)
    for name, (batch, length, depth, mixed) in listed:
        options = {"batch_size": batch, **_lengths(name, length), "checkpointing": "operations"}
        yield from _valid(name, options | mixed, depth)
    for name, mixed in product(PACKED, KEEPING_PACKED):
        options = {"batch_size": 2, "sequence_length": 100, "lora": 8, **mixed}
        more = {"lora_targets": "all-linear", "checkpointing": "operations"}
        yield from _valid(name, options | more, 5)
    for (name, depth), (batch, length, mixed) in product(SPLIT_MODELS, KEEPING_SPLIT):
        options = {"batch_size": batch, "sequence_length": length, **mixed}
        yield from islice(_for_all(name, options | {"checkpointing": "operations"}, depth), 1)
    for (name, depth), (batch, length, gpus, mixed) in product(SPLIT_MODELS, KEEPING_PARTED):
        options = {"batch_size": batch, "sequence_length": length, **mixed}
        split = {"tensor_parallel": gpus, "sequence_parallel": True}
        yield from _valid(name, {**options, **split, "checkpointing": "operations"}, depth)


def _scaled() -> Iterator[Configuration]:
    """Losses that are scaled before the backward pass."""
    types = (*LAST_TYPES, "microsoft/phi-1_5", "validation/configs/granite.json")
    for name, (batch, length, depth, mixed) in (
        *product(types, SCALED),
        *product(LAST_MODELS, SCALED_MORE),
    ):
        options = {"batch_size": batch, "sequence_length": length, "gradient_scaler": True}
        yield from _valid(name, options | mixed, depth)


def _in_fp16() -> Iterator[Configuration]:
    """Weights in float16: a wide softmax in one kernel, and streams that are clamped."""
    for name, options in product(FP16_TYPES, FP16):
        yield from _valid(name, {"batch_size": 2, "format": "fp16", **options})


def _paged() -> Iterator[Configuration]:
    """States in managed memory."""
    for name, (batch, length, depth, mixed) in (
        *product(MATRICES, PAGED_EACH),
        *product(PAGED_MODELS, PAGED),
    ):
        adapted = {"lora_targets": "all-linear"} if "lora" in mixed else {}
        options = {"batch_size": batch, **_lengths(name, length), **adapted, **mixed}
        yield from _valid(name, options | {"paged_optimizer": True}, depth)
    for name, mixed in product((*PACKED, "validation/configs/llama.json"), PAGED_PACKED):
        options = PAGED_ADAPTERS | {"lora_targets": "all-linear", "paged_optimizer": True}
        yield from _valid(name, options | mixed, None if "0.6B" in name else 4)


def _split() -> Iterator[Configuration]:
    """Layers split over as many GPUs as each model's heads allow: the fewest, and the most."""
    for (name, depth), (batch, length, mixed) in product(SPLIT_MODELS, SPLIT):
        options = {"batch_size": batch, "sequence_length": length, **mixed}
        found = [*_for_all(name, options, depth)]
        yield from {found[0]: 0, found[-1]: 0} if found else ()


def _parted() -> Iterator[Configuration]:
    """Split layers whose tokens are split between their products, where the heads allow it."""
    for (name, depth), (batch, length, gpus, mixed) in product(SPLIT_MODELS, PARTED):
        options = {"batch_size": batch, "sequence_length": length, **mixed}
        split = {"tensor_parallel": gpus, "sequence_parallel": True}
        yield from _valid(name, {**options, **split}, depth)


def _experts() -> Iterator[Configuration]:
    """Experts divided among GPUs."""
    small = (
        (f"validation/configs/{kind}.json", None, gpus, mixed)
        for (kind, worlds), mixed in product(EXPERTS_SMALL, EXPERTS)
        for gpus in worlds
    )
    at_size = (
        (name, depth, gpus, mixed)
        for (name, depth, worlds), mixed in product(EXPERTS_MODELS, EXPERTS_AT_SIZE)
        for gpus in worlds
    )
    for name, depth, gpus, (batch, length, mixed) in (*small, *at_size):
        options = {"batch_size": batch, "sequence_length": length, **mixed}
        yield from _valid(name, {**options, "expert_parallel": gpus}, depth)


def _pipelined() -> Iterator[Configuration]:
    """Stages of a pipeline; embeddings and output layer are on different GPUs."""
    small = [f"validation/configs/{kind}.json" for kind in PIPED_TYPES]
    tried = [*product(((name, None) for name in small), PIPED_EACH)]
    tried += product(((name, None) for name in small[:4]), PIPED)
    tried += [*product(PIPED_MODELS, PIPED_AT_SIZE), *product(PIPED_MODELS[:2], PIPED_LONG)]
    tried += product(((name, None) for name in small), TURNED_EACH)
    tried += product(((name, None) for name in small[:4]), TURNED_MORE)
    tried += product(PIPED_TOO, (*PIPED_EACH, *PIPED[:4], *TURNED_EACH, TURNED_MORE[1]))
    tied = [(*sizes, {**mixed, "tied_embeddings": True}) for *sizes, mixed in TIED_EACH]
    tried += product(PIPED_TIED, tied)
    tried += product((*((name, None) for name in small), *PIPED_TOO), PIPED_ADAPTERS)
    tried += [
        ((name, None), (*sizes, mixed)) for name, *sizes, mixed in (*TURNED_AT_SIZE, *PIPED_LAST)
    ]
    keeping = [
        (*sizes, {**mixed, "checkpointing": "operations"}) for *sizes, mixed in KEEPING_PIPED
    ]
    tried += product((*((name, None) for name in small), *PIPED_TOO), keeping[:2])
    tried += product((*((name, None) for name in small[:2]), *PIPED_TOO[:2]), keeping[2:])
    last = [(1, 512, 4, 4, {"checkpointing": each}) for each in ("operations", "full")]
    tried += product(((name, None) for name in KEEPING_LAST), last)
    for (name, depth), (batch, length, stages, count, mixed) in tried:
        options = {"batch_size": batch, "sequence_length": length, "tied_embeddings": False}
        split = {"pipeline_parallel": stages, "accumulation": count}
        yield from _valid(name, {**options, **split, **mixed}, depth)


def _divided() -> Iterator[Configuration]:
    """Sequences divided among several GPUs."""
    tried = [*product(((name, None) for name in DIVIDED_MODELS), DIVIDED_EACH)]
    tried += product(DIVIDED_MORE, DIVIDED)
    tried += [*product(DIVIDED_LARGE, DIVIDED_LONG), *DIVIDED_WHOLE]
    for (name, depth), (batch, length, gpus, parts, mixed) in tried:
        options = {"batch_size": batch, "sequence_length": length, "gpus": gpus}
        yield from _valid(name, {**options, "context_parallel": parts, **mixed}, depth)


def _for_all(name: str, options: dict[str, Any], depth: int | None) -> Iterator[Configuration]:
    for gpus in range(2, MOST_SPLIT + 1):
        yield from _valid(name, {**options, "tensor_parallel": gpus}, depth)


def _lengths(name: str, length: int) -> dict[str, int]:
    """The lengths that a model reads of those it can have."""
    subject = find_subject(name, None)
    fixed = subject.kind in TYPES and TYPES[subject.kind].has_fixed_length
    lengths = {} if fixed else {"sequence_length": length}
    return {**lengths, "target_length": length * 3 // 4} if subject.has_target else lengths


def _listed() -> Iterator[Configuration]:
    """Each listed model with every mixture; a decoder of its own reads fewer tokens.

    A kernel or a way to checkpoint that the model has no code for makes place for another.
    """
    for names in LISTED.values():
        for name in names:
            for batch, length, layers, mixed in MIXED:
                options = {"batch_size": batch, **_lengths(name, length), **mixed}
                plain = options | {"attention": "sdpa"}
                whole = plain | {"checkpointing": "full"}
                tried = (_valid(name, choice, layers) for choice in (options, plain, whole))
                yield from next(filter(None, tried), [])


def _drawn() -> Iterator[Configuration]:
    """Pairs and triples of options with a fixed seed, at drawn batches and lengths."""
    draw = random.Random(SEED + 1)
    yield from islice(_combinations(draw, 2), DRAWN_PAIRS)
    yield from islice(_combinations(draw, 3), DRAWN_TRIPLES)


def _combinations(draw: random.Random, count: int) -> Iterator[Configuration]:
    while True:
        model = draw.choice(list(MODELS))
        options = _shape(draw, model)
        for name in draw.sample(list(TECHNIQUES), count):
            options |= draw.choice(TECHNIQUES[name])
        yield from _valid(model, options, draw.choice(DEPTHS))


def _shape(draw: random.Random, model: str) -> dict[str, Any]:
    architecture = MODELS[model]
    if type_of(architecture).has_fixed_length:
        return {"batch_size": draw.choice(BATCHES)}
    longest = architecture.positions or 2048
    lengths = [length for length in LENGTHS if length <= longest]
    shape = {"batch_size": draw.choice(BATCHES), "sequence_length": draw.choice(lengths)}
    if type_of(architecture).has_target:
        shape["target_length"] = draw.choice(lengths)
    return shape


def _valid(
    model: str, options: dict[str, Any], layers: int | None = None
) -> Iterable[Configuration]:
    """The configuration where the model and a real optimizer have code for it."""
    from validation.session import check

    configuration = Configuration(model, Plan.parse(options), layers)
    if isinstance(configuration.subject.counted, InputError):  # no such model of so few layers
        return []
    try:
        check(configuration)
    except InputError:
        return []
    return [configuration]
