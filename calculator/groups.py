"""The options of `Plan` in groups, and the names that other libraries have for them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from calculator.options import Option

TORCH: Final = "PyTorch"
TRANSFORMERS: Final = "transformers"
DEEPSPEED: Final = "DeepSpeed"
PEFT: Final = "peft"
TRL: Final = "TRL"


@dataclass(frozen=True, slots=True)
class Group:
    """Options that belong together, under a title."""

    title: str
    fields: tuple[str, ...]


PIPELINE: Final = ("pipeline_parallel", "pipeline_schedule", "pipeline_stages")
GROUPS: Final = (
    Group(
        "Model",
        (
            *("task", "labels", "freeze"),
            "attention",
            "dropout",
            "tied_embeddings",
            "sharing_groups",
            "reversible",
        ),
    ),
    Group("Batch", ("batch_size", "sequence_length", "target_length", "accumulation", "loop")),
    Group("Precision", ("precision", "gradient_scaler", "format")),
    Group(
        "Optimizer",
        ("optimizer", "optimizer_bits", "update", "paged_optimizer", "update_in_backward"),
    ),
    Group(
        "Saving memory",
        ("checkpointing", "checkpoint_every", "activation_offload", "chunked_loss", "offload"),
    ),
    Group(
        "Adapters (LoRA and QLoRA)",
        ("lora", "lora_targets", "lora_dropout", "lora_bias", "lora_modules", "quantization"),
    ),
    Group(
        "Many GPUs",
        (
            *("gpus", "data_parallel", "cpu_offload", "tensor_parallel", "sequence_parallel"),
            "expert_parallel",
            *("context_parallel", "context_rotation", *PIPELINE),
        ),
    ),
)
OTHERS: Final = "More options"

# What other libraries call an option: their argument, class or function. Those of transformers are
# arguments of `TrainingArguments` where nothing else is said, those of peft of `LoraConfig`, those
# of DeepSpeed keys of its configuration.
ELSEWHERE: Final[Mapping[str, Mapping[str, str]]] = {
    "batch_size": {
        TRANSFORMERS: "per_device_train_batch_size",
        DEEPSPEED: "train_micro_batch_size_per_gpu",
    },
    "sequence_length": {TRL: "max_length"},
    "accumulation": {
        TRANSFORMERS: "gradient_accumulation_steps",
        DEEPSPEED: "gradient_accumulation_steps",
    },
    "precision": {
        TORCH: "torch.autocast",
        TRANSFORMERS: "bf16",
        DEEPSPEED: "bf16",
    },
    "format": {TORCH: "torch.bfloat16, torch.float16", TRANSFORMERS: "bf16, fp16"},
    "gradient_scaler": {TORCH: "torch.amp", TRANSFORMERS: "fp16", DEEPSPEED: "fp16"},
    "optimizer": {TORCH: "torch.optim", TRANSFORMERS: "optim", DEEPSPEED: "optimizer"},
    "optimizer_bits": {TRANSFORMERS: "optim"},
    "update": {TORCH: "foreach, fused"},
    "paged_optimizer": {TRANSFORMERS: "optim"},
    "update_in_backward": {TORCH: "register_post_accumulate_grad_hook"},
    "attention": {TORCH: "sdpa_kernel", TRANSFORMERS: "attn_implementation of from_pretrained"},
    "checkpointing": {
        TORCH: "torch.utils.checkpoint",
        TRANSFORMERS: "gradient_checkpointing",
        DEEPSPEED: "activation_checkpointing",
    },
    "checkpoint_every": {TRANSFORMERS: "gradient_checkpointing_kwargs"},
    "offload": {DEEPSPEED: "zero_optimization.offload_optimizer"},
    "tied_embeddings": {TRANSFORMERS: "tie_word_embeddings of the configuration"},
    "lora": {PEFT: "r"},
    "lora_targets": {PEFT: "target_modules"},
    "lora_dropout": {PEFT: "lora_dropout"},
    "lora_bias": {PEFT: "bias"},
    "lora_modules": {PEFT: "modules_to_save"},
    "quantization": {TRANSFORMERS: "BitsAndBytesConfig"},
    "gpus": {TORCH: "torchrun --nproc-per-node"},
    "data_parallel": {
        TORCH: "DistributedDataParallel, ZeroRedundancyOptimizer, fully_shard",
        TRANSFORMERS: "fsdp",
        DEEPSPEED: "zero_optimization.stage",
    },
    "cpu_offload": {
        TORCH: "CPUOffloadPolicy",
        TRANSFORMERS: "cpu_offload of fsdp_config",
        DEEPSPEED: "zero_optimization.offload_param",
    },
    "tensor_parallel": {
        TORCH: "parallelize_module",
        DEEPSPEED: "tensor_parallel.autotp_size",
    },
    "sequence_parallel": {TORCH: "SequenceParallel"},
    "context_parallel": {
        TORCH: "context_parallel",
        TRANSFORMERS: "parallelism_config (cp_size of accelerate's ParallelismConfig)",
        DEEPSPEED: "sequence_parallel_size of Ulysses, which exchanges heads instead",
    },
    "context_rotation": {
        TORCH: "set_rotate_method",
        TRANSFORMERS: "cp_comm_strategy of accelerate's TorchContextParallelConfig",
    },
    "expert_parallel": {
        TRANSFORMERS: "ep_size of DistributedConfig",
        DEEPSPEED: "ep_size of moe.layer.MoE",
    },
    "pipeline_parallel": {TORCH: "PipelineStage", DEEPSPEED: "pipeline"},
    "pipeline_schedule": {TORCH: "ScheduleGPipe, Schedule1F1B, ScheduleInterleaved1F1B"},
}


def grouped(options: Mapping[str, Option]) -> Iterator[tuple[str, list[Option]]]:
    """The titles and options of all groups; options of none come last."""
    known = {field for group in GROUPS for field in group.fields}
    others = Group(OTHERS, tuple(field for field in options if field not in known))
    for group in (*GROUPS, others):
        found = [options[field] for field in group.fields if field in options]
        if found:
            yield group.title, found


def names_elsewhere(field: str) -> str:
    """The names of an option in other libraries, in one phrase; empty where they have none.

    >>> names_elsewhere("lora")
    'peft: r'
    """
    return "; ".join(f"{library}: {name}" for library, name in ELSEWHERE.get(field, {}).items())
