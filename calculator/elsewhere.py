"""Words of other libraries where people type them: options, and values that name several."""

from collections.abc import Mapping
from typing import Final

from calculator.errors import InputError
from calculator.optimizers.registry import names_elsewhere

# other flags of an option: of transformers' TrainingArguments and from_pretrained, TRL, peft,
# LLaMA-Factory and axolotl
FLAGS: Final[Mapping[str, tuple[str, ...]]] = {
    "batch_size": ("per_device_train_batch_size", "micro_batch_size"),
    "sequence_length": ("max_seq_length", "max_length", "cutoff_len", "model_max_length"),
    "accumulation": ("gradient_accumulation_steps",),
    "optimizer": ("optim",),
    "attention": ("attn_implementation",),
    "lora": ("lora_r", "lora_rank"),
    "lora_targets": ("lora_target_modules", "target_modules"),
}

_FLASH: Final = {"attention": "flash"}
_FSDP: Final = {"data_parallel": "fsdp"}
# what a value of another library stands for, by the option that it is given to; optimizers say it
# themselves
VALUES: Final[Mapping[str, Mapping[str, Mapping[str, object]]]] = {
    "attention": dict.fromkeys(("flash_attention_2", "flash_attention", "flash_attn"), _FLASH),
    "data_parallel": dict.fromkeys(("fsdp2", "full_shard"), _FSDP),
    "checkpointing": {"true": {"checkpointing": "full"}, "false": {"checkpointing": "none"}},
}
_ZERO3: Final = (
    "DeepSpeed's third stage shards what fsdp shards, and holds more beside it (buckets, weights "
    "fetched ahead). Choose fsdp, and leave room"
)
_KERNEL_3: Final = "FlashAttention 3 is not counted: choose flash, which is version 2"
# values that nothing here stands for, and what to choose
OTHERS: Final[Mapping[str, Mapping[str, str]]] = {
    "optimizer": {
        "lomo": "LOMO is SGD whose update is made in the backward pass: choose sgd, and update in "
        "backward",
        "adalomo": "AdaLOMO keeps factored states and updates in the backward pass: choose "
        "adafactor, and update in backward",
        **dict.fromkeys(
            ("galore_adamw", "adamw_apex_fused", "ademamix", "rmsprop", "adagrad"),
            "is not counted; none of the optimizers here has its states",
        ),
    },
    "attention": {"flash_attention_3": _KERNEL_3},
    "checkpointing": {
        "unsloth": "Unsloth's keeps the layers' inputs in RAM: choose full, and activation offload"
    },
    "data_parallel": dict.fromkeys(("zero3", "zero-3", "deepspeed", "stage3"), _ZERO3),
}


def flags_of(field: str) -> list[str]:
    """Other flags of an option, with hyphens and as Python's names.

    >>> flags_of("optimizer"), flags_of("lora")
    (['--optim'], ['--lora-r', '--lora_r', '--lora-rank', '--lora_rank'])
    """
    names = FLAGS.get(field, ())
    spelled = (f"--{name}" for found in names for name in (found.replace("_", "-"), found))
    return list(dict.fromkeys(spelled))


def in_our_words(given: Mapping[str, object]) -> dict[str, object]:
    """The options with every value of another library replaced; what is given beside it stays.

    >>> in_our_words({"optimizer": "paged_adamw_8bit", "batch_size": 4})
    {'optimizer': 'adam', 'optimizer_bits': 8, 'paged_optimizer': True, 'batch_size': 4}

    Raises:
        InputError: for a value that stands for nothing here; it says what to choose.
    """
    found = dict(given)
    for field in (VALUES.keys() | OTHERS.keys()) & given.keys():
        value = str(given[field]).strip().lower()
        if rule := OTHERS.get(field, {}).get(value):
            raise InputError(field, given[field], rule)
        values = names_elsewhere() if field == "optimizer" else VALUES.get(field, {})
        if stands_for := values.get(value):
            others = {name: item for name, item in found.items() if name != field}
            found = {**stands_for, **others}
    return found
