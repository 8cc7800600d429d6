"""Rows of tasks beside language modeling, and of frozen parts."""

from collections.abc import Iterator
from typing import Final

from calculator.models.registry import TYPES
from calculator.task import OF_PAIRS
from validation.configuration import Configuration, parse

# types whose heads are code of their own: each with eight plans
OWN: Final = ("roberta", "distilbert", "deberta-v2", "modernbert", "llama")
OLDER: Final = {"bert": "bert-base --layers 5", "gpt2": "gpt2-s --layers 5"}
# those that have the same heads as Llama: with two
ALIKE: Final = (
    *("mistral", "ministral3", "qwen2", "qwen3", "smollm3", "phi3", "gemma", "gemma2"),
    *("starcoder2", "olmo", "olmo2", "olmo3", "arcee", "seed_oss", "exaone4"),
    *("glm", "glm4", "hunyuan_v1_dense", "stablelm"),
)
PLANS: Final = (
    "--batch-size 3 --labels 3",
    "--batch-size 2 --freeze embeddings,0 --labels 5",
    "--batch-size 4 --precision half --optimizer sgd",
    "--batch-size 2 --precision fp32 --dropout 0 --attention eager --labels 3",
    "--batch-size 3 --precision mixed --checkpointing full --accumulation 2",
    "--batch-size 3 --freeze body --precision half --optimizer-bits 8 --labels 7",
    "--batch-size 8 --freeze embeddings,0-1 --checkpointing full",
    "--batch-size 2 --freeze 0-1 --precision mixed --update fused",
)
# those of tasks whose sequences are pairs
PAIRS: Final = (
    "--batch-size 4",
    "--batch-size 2 --freeze embeddings,0",
    "--batch-size 4 --precision half --optimizer sgd",
    "--batch-size 2 --precision fp32 --dropout 0 --attention eager",
    "--batch-size 6 --precision mixed --checkpointing full --accumulation 2",
    "--batch-size 4 --gpus 2 --data-parallel fsdp",
    "--batch-size 8 --freeze embeddings,0-1 --checkpointing full",
    "--batch-size 2 --freeze 0-1 --precision mixed --update fused",
)
# those of a class for each recording
RECORDINGS: Final = "validation/configs/whisper.json --task audio"
OF_RECORDINGS: Final = (
    "--batch-size 3 --labels 3",
    "--batch-size 4 --precision half --optimizer sgd",
    "--batch-size 2 --precision fp32 --dropout 0 --attention eager --labels 3",
    "--batch-size 3 --precision mixed --checkpointing full --accumulation 2",
    "--batch-size 2 --lora 8 --lora-targets all-linear --labels 5",
    "--batch-size 3 --lora 4 --lora-targets q_proj,v_proj --checkpointing full --precision half",
    "--batch-size 8 --lora 8 --lora-targets all-linear --quantization nf4 --labels 4",
    "--batch-size 2 --gpus 2 --data-parallel fsdp --precision mixed --update fused",
)
# those of GradCache, of three encoders and a causal model
CACHED: Final = (
    "bert-base --layers 5 --sequence-length 48 --batch-size 16 --mini-batch-size 2",
    "bert-base --layers 5 --sequence-length 60 --batch-size 24 --mini-batch-size 4 --precision fp32"
    " --dropout 0 --attention eager",
    "validation/configs/distilbert.json --sequence-length 48 --batch-size 12 --mini-batch-size 2"
    " --precision half",
    "validation/configs/roberta.json --sequence-length 72 --batch-size 16 --mini-batch-size 4"
    " --precision mixed --checkpointing full --accumulation 2",
    "validation/configs/llama.json --sequence-length 48 --batch-size 16 --mini-batch-size 4",
    "validation/configs/llama.json --sequence-length 48 --batch-size 16 --mini-batch-size 1"
    " --lora 8 --lora-targets all-linear",
    "validation/configs/llama.json --sequence-length 48 --batch-size 256 --mini-batch-size 2"
    " --precision fp32 --freeze embeddings,0-1",
    "validation/configs/roberta.json --sequence-length 48 --batch-size 24 --mini-batch-size 4"
    " --checkpointing full --lora 8 --lora-targets query,value --optimizer sgd",
)
MEAN: Final = "validation/configs/tasks/modernbert-mean.json --task sequence"
# frozen parts of models with their own task
FROZEN: Final = (
    "validation/configs/vit.json --batch-size 2 --freeze embeddings,0-1",
    "validation/configs/vit.json --batch-size 3 --freeze body --precision half",
    "validation/configs/bart.json --batch-size 2 --sequence-length 64 --freeze embeddings,0",
    "validation/configs/llama.json --batch-size 2 --sequence-length 64 --freeze body",
    "gpt2-s --batch-size 3 --sequence-length 72 --freeze embeddings,2-9",
    "gpt2-s --batch-size 3 --sequence-length 72 --freeze embeddings,0-5 --accumulation 2",
    "bert-base --batch-size 4 --sequence-length 72 --freeze embeddings,0-7",
    "bert-base --batch-size 4 --sequence-length 72 --freeze 6-11 --checkpointing full",
)


def task_rows() -> Iterator[Configuration]:
    """Eight plans for each head of each type that has its own, two for the others."""
    models = {kind: f"validation/configs/{kind}.json" for kind in (*OWN, *ALIKE)} | OLDER
    for kind, model in models.items():
        for task in TYPES[kind].heads:
            plans = PAIRS if task in OF_PAIRS else PLANS
            most = 2 if kind in ALIKE else len(plans)
            for number, plan in enumerate(plans[:most]):
                if kind == "modernbert" and "body" in plan:
                    continue  # its masks die earlier than counted where nothing needs a gradient
                length = 48 + 12 * number
                yield parse(f"{model} --sequence-length {length} --task {task} {plan}".split())
    for number, plan in enumerate(PLANS[:5]):
        yield parse(f"{MEAN} --sequence-length {48 + 12 * number} {plan}".split())
    for plan in CACHED:
        yield parse(f"{plan} --task embedding".split())
    for plan in OF_RECORDINGS:
        yield parse(f"{RECORDINGS} {plan}".split())
    for words in FROZEN:
        yield parse(words.split())
