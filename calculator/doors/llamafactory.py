"""Keys of LLaMA-Factory's YAML, of both its versions.

Source: LLaMA-Factory (hparams/, model/adapter.py, v1/config/)
"""

from collections.abc import Mapping
from typing import Final

from calculator.doors.table import Facts, Named, Table, attention, either, flag, in_words, targets
from calculator.doors.table import optimizer as _optimizer
from calculator.doors.table import shards as _shards
from calculator.doors.trainer import ARGUMENTS, fsdp_keys

_OTHER: Final = Named("this way of training is not counted", "either")
_PAIRS: Final = Named(
    "a pair is counted as two sequences, and no reference model", "more", {"pairs": True}
)
_RECOMPUTES: Final = {"checkpointing": "full"}
_KEEPS: Final = {"checkpointing": "none"}
_REWARD: Final = {"pairs": True, "task": "reward"}
_KIND: Final[Mapping[str, Facts | Named]] = {
    "lora": {"adapter": "lora"},
    "full": {"full": True},
    "freeze": Named("all layers are counted as trained", "less", {"full": True}),
    "oft": Named("is counted as LoRA", "either", {"adapter": "lora"}),
}


def _bits(value: object) -> Facts | Named:
    if in_words(value) == "4":
        return {"four_bits": True}
    return Named("is counted as 16 bits", "less")


def _finish(facts: dict[str, object]) -> None:
    """Whole models are trained in 32 bits under autocast, unless purely in 16 or in shards."""
    pure = facts.pop("pure", False)
    whole = facts.pop("full", False)
    if autocast := facts.get("autocast"):
        facts["weights"] = "fp32" if whole and not pure else autocast
    if facts.get("four_bits") and "four_bits_double" not in facts:
        facts["four_bits_double"] = True


TABLE: Final = Table(
    title="LLaMA-Factory",
    marks=(
        "finetuning_type",
        "stage+cutoff_len",
        "cutoff_len",
        "model_class",
        "train_dataset+model",
    ),
    keys={
        "model_name_or_path": "model",
        "model": "model",
        "per_device_train_batch_size": "batch_size",
        "micro_batch_size": "batch_size",
        "global_batch_size": "update_batch",
        "gradient_accumulation_steps": "accumulation",
        "cutoff_len": "sequence_length",
        "bf16": flag(autocast="bf16"),
        "fp16": flag(autocast="fp16"),
        "pure_bf16": flag(autocast="bf16", pure=True),
        "mixed_precision": {"bf16_mixed": {"autocast": "bf16"}},
        "optim": _optimizer,
        "optim_config.name": _optimizer,
        "use_muon": flag(optimizer="muon"),
        "finetuning_type": _KIND,
        "peft_config.name": _KIND,
        "lora_rank": "lora",
        "peft_config.r": "lora",
        "lora_dropout": "lora_dropout",
        "peft_config.lora_dropout": "lora_dropout",
        "lora_target": targets,
        "peft_config.target_modules": targets,
        "additional_target": "lora_modules",
        "quantization_bit": _bits,
        "quant_config.quantization_bit": _bits,
        "quantization_type": "four_bits_type",
        "double_quantization": either({"four_bits_double": True}, {"four_bits_double": False}),
        "flash_attn": attention,
        "disable_gradient_checkpointing": either(
            {"checkpointing": "none"}, {"checkpointing": "full"}
        ),
        "gradient_checkpointing": either({"checkpointing": "full"}, {"checkpointing": "none"}),
        "recompute_granularity": {
            "full": {"checkpointing": "full"},
            "selective": {"checkpointing": "selective"},
        },
        "stage": {
            **{key: {} for key in ("pt", "sft")},
            "dpo": _PAIRS,
            "rm": Named(
                "a pair is counted as two sequences",
                "",
                {"pairs": True, "task": "reward"},
            ),
            "kto": Named("its reference model is not counted", "more"),
        },
        "dist_config.name": {
            "fsdp2": {"data_parallel": "fsdp"},
            "fsdpturbo": Named("is counted as FSDP", "", {"data_parallel": "fsdp"}),
            "deepspeed": {},
        },
        "dist_config.config_file": "part",
        "fsdp": _shards,
        **fsdp_keys("fsdp_config."),
        "deepspeed": "part",
        "cp_size": "context_parallel",
        "context_parallel_size": "context_parallel",
        "tensor_model_parallel_size": "tensor_parallel",
        "pipeline_model_parallel_size": "pipeline_parallel",
        "sequence_parallel": flag(sequence_parallel=True),
        "use_distributed_optimizer": Named("states are counted whole on each GPU", "less"),
    },
    harmless=ARGUMENTS
    + """
    dataset* eval_dataset train_dataset media_dir template tokenized_path max_samples
    overwrite_cache preprocessing_* packing neat_packing mask_history train_on_prompt streaming
    buffer_size mix_strategy interleave_probs tool_format default_system enable_thinking
    preserve_thinking ignore_pad* val_size plot_loss compute_accuracy disable_shuffling
    early_stopping_steps use_fast_tokenizer resize_vocab split_special_tokens add_tokens
    add_special_tokens new_special_tokens* init_special_tokens rope_scaling* *_hub_token
    model_revision print_param_status infer_* adapter_name_or_path adapter_folder
    create_new_adapter lora_alpha peft_config.lora_alpha use_rslora loraplus_* pissa_* pref_*
    ref_model dpo_* kto_* simpo_gamma image_* video_* fsdp_* fsdp_config.* dist_config.dcp_path
    use_reentrant_gc upcast_layernorm moe_aux_loss_coef quantization_method
    quantization_device_map model_class sample_backend max_new_tokens batching_strategy
    init_config* *_attn_dtype cp_mode quant_config.* optim_config.* kernel_config.*
    peft_config.* do_sample temperature top_* cache_dir asft_alpha eaft_alpha
    bias_activation_fusion apply_rope_fusion overlap_* moe_token* moe_grouped_gemm
    use_packed_sequences export_* use_cache template_* freeze_trainable_* freeze_extra* oft_*
    fp8_* apollo_* galore_* badam_* use_mca use_megatron_bridge megatron_*
    dist_config.ep_dispatcher calculate_per_token_loss use_swanlab swanlab_* profile*
    enable_torch_profiler include_effective* _kt_* account_for_* audio_sampling_rate
    block_diag_attn compute_dtype crop_to_patches cross_entropy_loss_fusion
    data_shared_file_system extra_config hyper_parallel_* ld_alpha length_penalty
    masked_softmax_fusion master_* max_length model_max_length num_beams offload_folder
    recompute_method recompute_num_layers repetition_penalty sglang_* skip_special_tokens
    use_audio_in_video use_kv_cache vllm_* train_from_scratch ref_model_adapters
    ref_model_quantization_bit module_dropout
    """,
    named=(
        (
            Named("keeps fewer results than what is counted", "less"),
            "enable_liger_kernel use_v1_kernels use_unsloth*",
        ),
        (Named("its bits are not counted", "either"), "quant_config"),
        (Named("keeps fewer results than what is counted", ""), "kernel_config.name"),
        (
            Named("this way of training is not counted", "either"),
            "use_galore use_apollo use_hyper_parallel",
        ),
        (Named("all layers are counted as trained", "less"), "use_badam use_llama_pro"),
        (Named("keeps fewer states than AdamW", "less"), "use_adam_mini"),
        (Named("its loss keeps more results than cross-entropy", "more"), "use_*_loss"),
        (Named("drops tokens in some layers", "less"), "mixture_of_depths"),
        (Named("DoRA keeps a norm of each weight, and more results", "more"), "use_dora"),
        (Named("logits in 32 bits are not counted", "more"), "upcast_lmhead_output"),
        (Named("is counted as whole attention", "less"), "shift_attn"),
        (
            Named("what this method holds beside the model is not counted", "more"),
            "reward_model* ppo_*",
        ),
        (Named("pictures are not counted", "more"), "freeze_vision_tower freeze_multi_modal*"),
        (Named("the language model is counted as trained", "less"), "freeze_language_model"),
        (
            Named("is not counted here: give --expert-parallel", "less"),
            "expert_model_parallel_size",
        ),
        (Named("is not counted with shards", "less"), "dist_config.ep_size"),
        (Named("is counted without virtual stages", "more"), "virtual_pipeline*"),
        (Named("computes experts on the CPU", "less"), "use_kt kt_*"),
        (Named("is counted as bf16", "either"), "fp8"),
        (Named("adapters of experts are not counted", "more"), "lora_target_parameters"),
    ),
    defaults={
        "batch_size": 8,
        "accumulation": 1,
        "sequence_length": 2048,
        "checkpointing": "full",
        "weights": "bf16",
        "optimizer": "adam",
        "update": "fused",
        "lora": 8,
        "lora_targets": "all-linear",
    },
    edits={
        "checkpointing=full": {"disable_gradient_checkpointing": False},
        "optimizer_bits=8": {"optim": "adamw_bnb_8bit"},
        "optimizer=adafactor": {"optim": "adafactor"},
        "attention=sdpa": {"flash_attn": "sdpa"},
        "precision=half": {"pure_bf16": True},
        "lora": {"finetuning_type": "lora", "lora_rank": None},
        "lora_targets=all-linear": {"lora_target": "all"},
        "quantization=nf4-double": {"quantization_bit": 4},
    },
    finish=_finish,
)
