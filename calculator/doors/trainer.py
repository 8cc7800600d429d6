"""Arguments of transformers' Trainer, of TRL, and of peft and bitsandbytes beside them.

Source: transformers (training_args.py), TRL (trainer/base_config.py, sft_config.py, dpo_config.py,
model_config.py), peft (tuners/lora/config.py)
"""

from dataclasses import replace
from typing import Final

from calculator.doors.names import BY_CARD
from calculator.doors.table import (
    Facts,
    Meaning,
    Named,
    Table,
    attention,
    either,
    flag,
    in_words,
    optimizer,
    shards,
    strategy,
    targets,
)

_LIGER: Final = Named("Liger's kernels keep fewer results than what is counted", "less")
_PAIRS: Final = Named(
    "a pair is counted as two sequences, and no reference model", "more", {"pairs": True}
)
_KERNELS: Final = Named("Unsloth's kernels keep fewer results than what is counted", "less")
_GENERATES: Final = Named("what generates texts beside the step is not counted", "more")
_CHECKPOINTS: Final = either({"checkpointing": "full"}, {"checkpointing": "none"})


def _class(value: object) -> Facts | Named:
    """The facts of a program's classes."""
    names = in_words(value)
    facts = {"adapter": "lora"} if "loraconfig" in names else {}
    if "unsloth" in names:
        return replace(_KERNELS, facts=facts)
    if any(name in names for name in ("dpoconfig", "dpotrainer", "rewardconfig", "orpoconfig")):
        return replace(_PAIRS, facts={**facts, "pairs": True})
    return replace(_GENERATES, facts=facts) if "grpo" in names else facts


def _format(value: object) -> Facts:
    return {"weights": "card" if value == BY_CARD else in_words(value)}


def _autocast(value: object) -> Facts | Named:
    if value == BY_CARD:
        return {"autocast": "card"}
    found = either({"autocast": "bf16"}, {"autocast": ""}).get(in_words(value))
    return Named("this value is not known here") if found is None else found


def _unsloth(value: object) -> Facts:
    return {"checkpointing": "none" if in_words(value) in ("false", "none") else "full"}


def fsdp_keys(prefix: str) -> dict[str, Meaning]:
    """FSDP's configuration, whose keys have a prefix in some versions."""
    names: dict[str, Meaning] = {
        "offload_params": flag(offload_states=True, offload_weights=True),
        "activation_checkpointing": flag(checkpointing="full"),
        "reshard_after_forward": strategy,
        "sharding_strategy": strategy,
    }
    return {f"{prefix}{begun}{key}": it for begun in ("", "fsdp_") for key, it in names.items()}


ARGUMENTS: Final = """
    output_dir num_train_epochs max_steps learning_rate lr_scheduler* warmup_* optim_args
    weight_decay adam_* optim_target_modules average_tokens_across_devices max_grad_norm
    label_smoothing_factor *_full_eval tf32 activation_checkpointing_kwargs* torch_compile_*
    gradient_checkpointing_kwargs* liger_kernel_config* use_cache neftune_noise_alpha
    torch_empty_cache_steps logging_* log_* disable_tqdm report_to run_name project trackio_*
    include_* eval_* evaluation_strategy do_* per_device_eval_batch_size prediction_loss_only
    batch_eval_metrics save_* enable_jit_checkpoint push_to_hub* hub_* load_best_model_at_end
    metric_for_best_model greater_is_better ignore_data_skip restore_callback* full_determinism
    seed data_seed use_cpu accelerator_config* dataloader_* remove_unused_columns label_names
    train_sampling_strategy length_column_name group_by_length ddp_* debug skip_memory_metrics
    resume_from_checkpoint local_rank overwrite_output_dir no_cuda use_mps_device ray_*
    predict_with_generate generation_* class trust_remote_code token revision cache_dir
    device_map* low_cpu_mem_usage ignore_mismatched_sizes torchdynamo
    """
_TRL: Final = """
    dataset* model_revision model_init_kwargs* chat_template* assistant_only_loss
    truncation_mode completion_only_loss packing* padding_free eval_packing pad_to* pad_token
    eos_token shuffle_dataset router_aux_loss_coef test_split_size ignore_bias_buffers beta_*
    label_pad* loss_weights ld_alpha f_* label_smoothing use_weighting discopop_tau
    system_prompt max_prompt_length max_completion_length config
    gradient_checkpointing_use_reentrant bnb_4bit_compute_dtype bnb_4bit_quant_storage
    llm_int8_* lora_alpha lora_task_type use_rslora task_type inference_mode fan_in_fan_out
    init_lora_weights peft_type num_proc args tools base_model_name_or_path lora_fan_in_fan_out
    disable_dropout center_rewards_coefficient layers_pattern alpha_pattern auto_mapping
    peft_version megatron_* num_completions_to_print label2id id2label is_trainable return_dict
    subfolder max_memory* temperature top_k top_p loss_type precompute_ref_batch_size
    cache_implementation delta entropy_* epsilon* importance_sampling* mask_truncated* max_tool*
    min_p multi_objective* num_generations_eval off_policy* ref_model_* repetition_penalty
    reward_weights sapo_* scale_rewards top_entropy* use_adaptive_entropy use_bias_correction*
    vespo_* use_transformers_* random_state finetune_*_layers finetune_*_modules fast_inference
    full_finetuning auto_model batch_sampler load_in_16bit max_staleness offload_folder unsloth_*
    use_auth_token safe_serialization max_lora_rank gpu_memory_utilization embedding_learning_rate
    """
TABLE: Final = Table(
    title="transformers",
    marks=("per_device_train_batch_size", "gradient_checkpointing+learning_rate", "class"),
    keys={
        "class": _class,
        "model_name_or_path": "model",
        "per_device_train_batch_size": "batch_size",
        "gradient_accumulation_steps": "accumulation",
        "max_length": "sequence_length",
        "max_seq_length": "sequence_length",
        "model_max_length": "sequence_length",
        "optim": optimizer,
        "bf16": _autocast,
        "fp16": {**flag(autocast="fp16"), BY_CARD: {}},
        "dtype": _format,
        "torch_dtype": _format,
        "model_init_kwargs.dtype": _format,
        "model_init_kwargs.torch_dtype": _format,
        "gradient_checkpointing": _CHECKPOINTS,
        "activation_checkpointing": _CHECKPOINTS,
        "activation_offloading": flag(activation_offload="pinned"),
        "attn_implementation": attention,
        "model_init_kwargs.attn_implementation": attention,
        "_attn_implementation": attention,
        "use_flash_attention_2": flag(attention="flash"),
        "use_peft": flag(adapter="lora"),
        "lora_r": "lora",
        "lora_dropout": "lora_dropout",
        "lora_target_modules": targets,
        "lora_modules_to_save": "lora_modules",
        "lora_bias": "lora_bias",
        "load_in_4bit": flag(four_bits=True),
        "bnb_4bit_quant_type": "four_bits_type",
        "use_bnb_nested_quant": flag(four_bits_double=True),
        "bnb_4bit_use_double_quant": flag(four_bits_double=True),
        "fsdp": shards,
        **fsdp_keys("fsdp_config."),
        "deepspeed": "part",
        "num_labels": "labels",
        "head": "task",
        "adapter_class": Named("these adapters are counted as LoRA's", "either"),
        "use_gradient_checkpointing": _unsloth,
        "beta": _PAIRS,
        "torch_compile": Named("compiled operations keep fewer results", "less"),
    },
    harmless=ARGUMENTS + _TRL + "fsdp_config.* fsdp_min_num_params fsdp_transformer_*",
    named=(
        (
            Named("Liger's kernels keep fewer results than what is counted", "less"),
            "use_liger_kernel",
        ),
        (Named("8-bit weights (LLM.int8) are counted as 16-bit ones", "less"), "load_in_8bit"),
        (Named("8-bit weights are counted as 16-bit ones", "less"), "load_in_fp8"),
        (Named("embeddings in RAM are counted on the GPU", "less"), "offload_embedding"),
        (Named("DoRA keeps a norm of each weight, and more results", "more"), "use_dora"),
        (
            Named("adapters of experts are not counted", "more"),
            "lora_target_parameters target_parameters",
        ),
        (Named("adapters are counted in every layer", "less"), "layers_to_transform"),
        (Named("every adapter is counted with one rank", "either"), "rank_pattern*"),
        (Named("trained tokens are not counted", "more"), "trainable_token_indices"),
        (Named("changes the values of weights", ""), "loftq_config*"),
        (Named("this way to begin an adapter is not counted", "either"), "*_config"),
        (Named("QALoRA is not counted", "either"), "*qalora*"),
        (Named("is counted as LoRA", ""), "alora_invocation_tokens"),
        (Named("is counted untied", "less"), "ensure_weight_tying"),
        (Named("is counted as LoRA", "either"), "use_bdlora"),
        (Named("adapters are counted there too", "less"), "exclude_modules"),
        (Named("more layers than the model has", "more"), "layer_replication*"),
        (Named("may halve the micro-batch", "less"), "auto_find_batch_size"),
        (Named("give the sizes of its axes as options", "either"), "parallelism_config"),
        (
            Named("what generates texts beside the step is not counted", "more"),
            "num_generations use_vllm vllm_* steps_per_generation num_iterations",
        ),
        (Named("needs no reference model in the step", ""), "precompute_ref_log_probs"),
        (Named("keeps a reference model", "more"), "sync_ref_model"),
        (Named("the output layer in 32 bits is not counted", "more"), "cast_lm_head_to_fp32"),
        (Named("gathers every weight", "more"), "ds3_gather_for_generation"),
        (Named("give --quantization", "less"), "quantization_config"),
    ),
    defaults={
        "batch_size": 8,
        "optimizer": "adam",
        "update": "fused",
        "weights": "fp32",
    },
    edits={
        "checkpointing=full": {"gradient_checkpointing": True},
        "optimizer_bits=8": {"optim": "adamw_bnb_8bit"},
        "optimizer=adafactor": {"optim": "adafactor"},
        "update=fused": {"optim": "adamw_torch_fused"},
        "attention=sdpa": {"attn_implementation": "sdpa"},
        "activation_offload=pinned": {"activation_offloading": True},
        "precision=half": {"dtype": "bfloat16"},
        "lora_targets=all-linear": {"lora_target_modules": "all-linear", "use_peft": True},
        "quantization=nf4-double": {"load_in_4bit": True, "use_bnb_nested_quant": True},
    },
)
TRL: Final = replace(
    TABLE,
    title="TRL",
    marks=(
        *("class=SFTConfig", "class=DPOConfig", "class=RewardConfig", "class=GRPOConfig"),
        *(
            "use_peft",
            "max_seq_length+learning_rate",
            "dataset_mixture.datasets[].id",
            "dataset_mixture[].id",
        ),
        *("dataset_name+learning_rate", "max_length+per_device_train_batch_size"),
        "dataset_mixer*+per_device_train_batch_size",
    ),
    defaults={
        **TABLE.defaults,
        "sequence_length": 1024,
        "autocast": "bf16",
        "checkpointing": "full",
        "lora": 16,
    },
)
