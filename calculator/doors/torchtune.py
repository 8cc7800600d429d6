"""Keys of torchtune's YAML.

Source: torchtune (recipes/, training/, models/, modules/loss/)
"""

import re
from typing import Final

from calculator.doors.table import Facts, Named, Table, either, flag, is_off

_BUILDER: Final = re.compile(r"torchtune\.models\.\w+\.(q?lora_)?(\w+)")
_MODELS: Final = {
    "llama2": "meta-llama/Llama-2-{}-hf",
    "code_llama2": "codellama/CodeLlama-{}-hf",
    "llama3": "meta-llama/Meta-Llama-3-{}",
    "llama3_1": "meta-llama/Llama-3.1-{}",
    "llama3_2": "meta-llama/Llama-3.2-{}",
    "llama3_3": "meta-llama/Llama-3.3-{}-Instruct",
    "qwen2": "Qwen/Qwen2-{}",
    "qwen2_5": "Qwen/Qwen2.5-{}",
    "qwen3": "Qwen/Qwen3-{}",
    "gemma": "google/gemma-{}",
    "gemma2": "google/gemma-2-{}",
    "mistral": "mistralai/Mistral-{}-v0.1",
}
_OTHERS: Final = {
    "phi3_mini": "microsoft/Phi-3-mini-4k-instruct",
    "phi4_14b": "microsoft/phi-4",
}
_ATTENTION: Final = {"output_proj": "o_proj"}
_MORE: Final = Named("what this method holds beside the model is not counted", "more")


def _model(value: object) -> Facts | Named:
    """The model that a builder makes, and what its name says of adapters."""
    built = _BUILDER.fullmatch(str(value))
    if built is None:
        return Named("is a model of its own", "either")
    kind, name = built.groups()
    facts: dict[str, object] = {"model": _named(name)} if _named(name) else {}
    if kind:
        facts |= {"adapter": kind.rstrip("_")}
    if kind == "qlora_":
        facts |= {"four_bits": True, "four_bits_double": True}
    if not _named(name):
        return Named("this model is not counted: give --model", "either", facts)
    return facts


def _named(name: str) -> str:
    family, _, size = name.removesuffix("_base").removesuffix("_instruct").rpartition("_")
    begun, _, whole = family.rpartition("_")
    if family not in _MODELS and begun in _MODELS:  # 0_6b is 0.6 billion
        family, size = begun, f"{whole}.{size}"
    if name in _OTHERS:
        return _OTHERS[name]
    return _MODELS[family].format(size.upper()) if family in _MODELS else ""


def _optimizer(value: object) -> Facts | Named:
    name = str(value).rpartition(".")[2].lower()
    facts: dict[str, object] = {"optimizer": "adam"}
    if name in ("adamw", "adam"):
        return facts
    if "adam" in name:
        facts |= {"paged_optimizer": True} if "paged" in name else {}
        facts |= {"optimizer_bits": 8} if "8bit" in name else {}
        return facts
    return {"optimizer": "sgd"} if name == "sgd" else Named("this optimizer is not counted")


def _loss(value: object) -> Facts | Named:
    name = str(value).rpartition(".")[2]
    if "CrossEntropy" in name and ("Linear" in name or "Chunked" in name):
        words = "its chunks are counted as those of PyTorch's loss in chunks"
        return Named(words, "", {"chunked_loss": "torch"})
    if "CEWithChunkedOutput" in name:
        return Named("is counted as PyTorch's loss in chunks", "", {"chunked_loss": "torch"})
    return (
        Named("a pair is counted as two sequences", "more", {"pairs": True})
        if ("DPO" in name)
        else _MORE
    )


def _targets(value: object) -> Facts:
    names = value if isinstance(value, list) else [value]
    return {"attention_targets": ",".join(_ATTENTION.get(str(n), str(n)) for n in names)}


def _length(value: object) -> Facts:
    return {} if is_off(value) else {"sequence_length": value}


def _finish(facts: dict[str, object]) -> None:
    """Adapters beside the feed-forward layers stand in a key of their own."""
    names = str(facts.pop("attention_targets", "q_proj,v_proj"))
    if facts.pop("mlp_targets", False):
        names += ",gate_proj,up_proj,down_proj"
    if facts.get("adapter"):
        facts["lora_targets"] = names
    if facts.get("tensor_parallel") not in (None, 1):
        facts["data_parallel"] = "fsdp"
    if facts.get("checkpointing") != "full":
        facts.pop("activation_offload", None)


TABLE: Final = Table(
    title="torchtune",
    marks=("model._component_+optimizer._component_", "training.optimizer._component_"),
    keys={
        "model._component_": _model,
        "batch_size": "batch_size",
        "gradient_accumulation_steps": "accumulation",
        "tokenizer.max_seq_len": _length,
        "dtype": {"bf16": {"weights": "bf16"}, "fp32": {"weights": "fp32"}},
        "optimizer._component_": _optimizer,
        "optimizer.fused": either({"update": "fused"}, {"update": "foreach"}),
        "optimizer_in_bwd": flag(update_in_backward=True),
        "loss._component_": _loss,
        "enable_activation_checkpointing": either(
            {"checkpointing": "full"}, {"checkpointing": "none"}
        ),
        "enable_activation_offloading": flag(activation_offload="pinned"),
        "model.lora_rank": "lora",
        "model.lora_dropout": "lora_dropout",
        "model.lora_attn_modules": _targets,
        "model.apply_lora_to_mlp": flag(mlp_targets=True),
        "model.quantize_base": flag(four_bits=True, four_bits_double=True),
        "fsdp_cpu_offload": flag(offload_states=True, offload_weights=True, data_parallel="fsdp"),
        "fsdp.cpu_offload": flag(offload_states=True, offload_weights=True, data_parallel="fsdp"),
        "tensor_parallel_dim": "tensor_parallel",
        "context_parallel_dim": "context_parallel",
        "data_parallel_shard_dim": {"1": {}, "-1": {"data_parallel": "fsdp"}},
        "custom_sharded_layers": Named("", "", {"data_parallel": "fsdp"}),
        "compile": Named("compiled operations keep fewer results", "less"),
    },
    harmless="""
    output_dir tokenizer.* checkpointer.* seed device metric_logger.* log_* epochs name
    max_steps_per_epoch num_steps shuffle dataset* datasets* dataloader.* collate_fn profiler.*
    lr_* lr_scheduler.* clip_grad_norm optimizer.lr optimizer.weight_decay optimizer.betas
    optimizer.eps resume_from_checkpoint save_* run_val_every_n_steps batch_size_val
    model.lora_alpha low_cpu_ram tensor_parallel_plan.* data_parallel_replicate_dim
    use_distributed_state_dict base_model_path loss.* packed memory_efficient_fsdp_wrap use_flex
    model.max_seq_len model.attn_dropout model.norm_eps kd_ratio stop_token_ids top_k
    temperature debug_* apply_chat_template keep_last* enable_async_checkpointing
    """,
    named=(
        (Named("the output layer's adapter is not counted", "more"), "model.apply_lora_to_output"),
        (Named("DoRA keeps a norm of each weight, and more results", "more"), "model.use_dora"),
        (Named("pictures are not counted", "more"), "model.image_size"),
        (Named("which parts are trained is not counted", "either"), "model.*_trainable"),
        (Named("is of a model that is not counted", "either"), "model.*"),
        (Named("is counted as full checkpointing", "more"), "ac_mode ac_option"),
        (Named("this optimizer's option is not counted", "either"), "optimizer.*"),
        (
            Named("rounded weights beside the step are not counted", "more"),
            "quantizer._component_ quantizer.*",
        ),
        (Named("is not counted with shards", "less"), "expert_parallel*"),
        (
            Named("what this method holds beside the model is not counted", "more"),
            "teacher_* kd_loss.* ref_checkpointer.* ref_policy_* value_* reward_* "
            "policy_model.* forward_batch_size max_generated_tokens ppo_* grpo_* "
            "orchestration.* inference.* training.* postprocessing.* whiten_* kl_coeff gamma "
            "lmbda min_response* penalise* enable_kv_cache max_new_tokens",
        ),
    ),
    defaults={"batch_size": 1, "accumulation": 1, "weights": "bf16", "lora": 8},
    edits={
        "checkpointing=full": {"enable_activation_checkpointing": True},
        "activation_offload=pinned": {"enable_activation_offloading": True},
        "optimizer_bits=8": {"optimizer._component_": "bitsandbytes.optim.AdamW8bit"},
        "update=fused": {"optimizer.fused": True},
        "update_in_backward=true": {"optimizer_in_bwd": True},
        "quantization=nf4-double": {"model.quantize_base": True},
        "sequence_length": {"tokenizer.max_seq_len": None},
        "cpu_offload=true": {"fsdp_cpu_offload": True},
    },
    finish=_finish,
)
