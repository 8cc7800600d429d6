"""Keys of axolotl's YAML.

Source: axolotl (utils/schemas/, utils/config/__init__.py, loaders/model.py, integrations/)
"""

from typing import Final

from calculator.doors.table import (
    Facts,
    Named,
    Reader,
    Table,
    attention,
    either,
    flag,
    in_words,
    is_off,
    optimizer,
    shards,
    targets,
)
from calculator.doors.trainer import ARGUMENTS, fsdp_keys
from calculator.task import task_named

_CHUNKED: Final = {"chunked_loss": "torch"}
_LOSS: Final = Named("is counted as PyTorch's loss in chunks", "", _CHUNKED)
_FEWER: Final = Named("keeps fewer results than what is counted", "less")
_REFERENCE: Final = Named("a pair is counted as two sequences", "more", {"pairs": True})
_BESIDE: Final = Named("what this method holds beside the model is not counted", "more")
_KERNEL: Final = Named("its kernels take other memory beside a layer", "either")
_PICTURES: Final = Named("pictures and sounds are not counted", "more")


def _half(kind: str) -> Reader:
    def read(value: object) -> Facts:
        return {} if is_off(value) else {"weights": kind, "autocast": kind}

    return read


_BF16: Final = {"weights": "bf16", "autocast": "bf16"}


def _bf16(value: object) -> Facts:
    if in_words(value) == "false":
        return {"weights": "fp32", "autocast": ""}
    return {} if is_off(value) else _BF16


# of these, other keys say what they do
_PLUGINS: Final = (
    "liger",
    "spectrum",
    "swanlab",
    "kernels",
    "expert_parallel",
    "diffusion",
    "lm_eval",
)


def _plugins(value: object) -> Facts | Named:
    names = in_words(value)
    if "cut_cross_entropy" in names:
        return _LOSS
    others = [name for name in names.split(",") if not any(known in name for known in _PLUGINS)]
    return Named("this plugin is not counted", "either") if others else {}


def _method(value: object) -> Named:
    return _REFERENCE if in_words(value) in ("dpo", "ipo", "orpo", "simpo") else _BESIDE


def _shard(value: object) -> Facts:
    return {} if is_off(value) else {"data_parallel": "fsdp"}


def _class(value: object) -> Facts:
    task = task_named([str(value)])
    return {"task": str(task)} if task else {}


def _finish(facts: dict[str, object]) -> None:
    """16-bit floats go before the default; offloading is of checkpointed layers alone."""
    if facts.get("checkpointing") != "full":
        facts.pop("activation_offload", None)
    if facts.pop("linear", None) and not facts.get("lora_targets"):
        facts["lora_targets"] = "all-linear"


TABLE: Final = Table(
    title="axolotl",
    marks=("base_model+micro_batch_size", "base_model+sequence_len", "base_model+datasets*"),
    keys={
        "base_model": "model",
        "micro_batch_size": "batch_size",
        "batch_size": "update_batch",
        "gradient_accumulation_steps": "accumulation",
        "sequence_len": "sequence_length",
        "bf16": _bf16,
        "bfloat16": _half("bf16"),
        "fp16": _half("fp16"),
        "float16": _half("fp16"),
        "optimizer": optimizer,
        "gradient_checkpointing": {
            **either({"checkpointing": "full"}, {"checkpointing": "none"}),
            "offload": {"checkpointing": "full", "activation_offload": "pinned"},
            "unsloth": {"checkpointing": "full", "activation_offload": "pinned"},
        },
        "activation_offloading": {
            **flag(activation_offload="pinned"),
            "legacy": {"activation_offload": "pinned"},
            "hidden_states": {"activation_offload": "pinned"},
        },
        "adapter": {"lora": {"adapter": "lora"}, "qlora": {"adapter": "qlora"}},
        "lora_r": "lora",
        "lora_dropout": "lora_dropout",
        "lora_target_modules": targets,
        "lora_target_linear": flag(linear=True),
        "lora_modules_to_save": "lora_modules",
        "load_in_4bit": flag(four_bits=True, four_bits_double=True),
        "bnb_config_kwargs.bnb_4bit_use_double_quant": either(
            {"four_bits_double": True}, {"four_bits_double": False}
        ),
        "bnb_config_kwargs.bnb_4bit_quant_type": "four_bits_type",
        "attn_implementation": attention,
        "flash_attention": flag(attention="flash"),
        "sdp_attention": flag(attention="sdpa"),
        "eager_attention": flag(attention="eager"),
        "xformers_attention": flag(attention="sdpa"),
        "fsdp": shards,
        **fsdp_keys("fsdp_config."),
        "dp_shard_size": _shard,
        "tensor_parallel_size": "tensor_parallel",
        "context_parallel_size": "context_parallel",
        "sequence_parallel_degree": "context_parallel",
        "deepspeed": "part",
        "plugins": _plugins,
        "cut_cross_entropy": Named(_LOSS.words, "", _CHUNKED),
        "chunked_cross_entropy": Named(_LOSS.words, "", _CHUNKED),
        "liger_fused_linear_cross_entropy": Named(_LOSS.words, "", _CHUNKED),
        "model_type": _class,
        "num_labels": "labels",
        "rl": _method,
        "reward_model": {"true": Named(_REFERENCE.words, "", {"task": "reward", "pairs": True})},
        "gpu_count": "processes",
    },
    harmless=ARGUMENTS
    + """
    datasets* test_datasets* pretraining_dataset* dataset_* dataset*[] shuffle_* push_dataset*
    val_* num_epochs saves_per_epoch evals_per_epoch learning_rate *_lr lr_* cosine_* wandb*
    mlflow* use_wandb use_mlflow comet* use_comet swanlab* use_swanlab use_trackio
    use_tensorboard use_otel* otel_* special_tokens* tokens* added_tokens* tokenizer*
    chat_template* processor_* train_on_inputs sample_packing* pad_to* curriculum_sampling
    multipack* strict is_*_derived_model xformers base_model_* cls_model_config
    revision_of_model lora_alpha lora_fan_in_fan_out lora_model_dir lora_on_cpu peft_use_rslora
    peft_init_lora_weights loraplus_* gptq_* hf_use_auth_token eot_tokens roles*
    skip_prepare_dataset loss_watchdog* early_stopping* trust_remote_code noisy_embedding_alpha
    resize_token_embeddings* mean_resizing* embeddings_skip_upcast model_config*
    overrides_of_model* rl_beta orpo_alpha kto_* center_rewards* dpo_* auto_resume*
    max_packed_sequence_len torchdistx_path fsdp_version fsdp_config* fsdp_final* flex_attn*
    experimental_* jagged_* min_sample_len max_prompt_len excess_length* streaming* pretrain*
    hub_* debug device torch_dtype total_num_tokens world_size ddp save_safetensors use_ray
    ray_* gc_* gradio_* seed project_name provider gpu node_count branch secrets* volumes*
    memory* timeout* dockerfile* experts_implementation trainer_cls dp_replicate_size
    conversation* dataloader* eaft_* eta_min lr group_by_length type reinit_weights
    llama4_linearized_experts bnb_config_kwargs.* test_value full_finetune model_type adam_beta*
    quantization.* low_cpu_mem* merge_* ebft.* trl.* expert_parallel_* heads_k_stride
    ring_attn_func s2_attention eval_* bench_* field_* token env axolotl_config_path
    capabilities env_capabilities chunked_cross_entropy_num_chunks cpo_alpha
    default_system_message dion_* dynamic_checkpoint* embedding_lr_scale fix_untrained_tokens
    generate_samples num_generation_samples gpu_memory_limit grokfast_lamb hf_mlflow*
    is_preprocess lm_eval_* lora_alpha_pattern max_memory num_dataset_shards_to_save
    peft_autocast* preprocess_iterable profiler_* qlora_sharded_model_loading
    recompute_layer_types resources_per_worker rope_scaling rpo_alpha save scaling_softmax*
    shrink_embeddings simpo_gamma total_supervised_tokens type_of_model use_pose pose_*
    moe_dequant_chunk_size batch_flattening trl ebft quantization bnb_config_kwargs
    precompute_ref_log_probs fp32_norm*
    """,
    named=(
        (Named("is counted as a language model", "less"), "process_reward_model"),
        (Named("8-bit weights (LLM.int8) are counted as 16-bit ones", "less"), "load_in_8bit"),
        (Named("its packed weights are counted as 16-bit ones", "less"), "gptq"),
        (
            Named("keeps fewer results than what is counted", "less"),
            "liger_* lora_*_kernel fused_attn_kernel use_kernels tiled_mlp* torch_compile "
            "flash_attn_* flash_optimum",
        ),
        (
            Named("its kernels take other memory beside a layer", "either"),
            "use_scattermoe use_sonicmoe use_dsv4_kernels use_glm_dsa_kernels dsv4_* gemma4_* "
            "nvfp4_* moe_* "
            "dense_mixer expert_backend nonexpert_quantization",
        ),
        (Named("is not counted here: give --expert-parallel", "less"), "expert_parallel_size"),
        (Named("experts are counted in 16 bits", "less"), "quantize_moe_experts"),
        (Named("adapters of experts are not counted", "more"), "lora_target_parameters"),
        (Named("is counted as the formats above", "less"), "model_quantization_config*"),
        (Named("all weights are counted as trained", "less"), "unfrozen_parameters"),
        (Named("pictures and sounds are not counted", "more"), "freeze_mm_modules image_*"),
        (Named("weights rounded on the way are not counted", "more"), "qat*"),
        (Named("is counted as bf16", "either"), "fp8*"),
        (Named("is counted as LoRA", ""), "relora*"),
        (Named("all layers are counted as trained", "less"), "lisa_* spectrum*"),
        (Named("DoRA keeps a norm of each weight, and more results", "more"), "peft_use_dora"),
        (Named("is counted as plain LoRA", ""), "peft peft.*"),
        (Named("adapters are counted in every layer", "less"), "peft_layers_*"),
        (Named("is counted as a language model's loss", ""), "diffusion*"),
        (Named("what generates texts beside the step is not counted", "more"), "vllm*"),
        (Named("masks of weights are not counted", "more"), "llmcompressor* recipe"),
        (Named("is counted as sdpa", ""), "flex_attention sage_attention sdpa_varlen large_head*"),
        (Named("every adapter is counted with one rank", "either"), "lora_rank_pattern"),
        (Named("trained tokens are not counted", "more"), "peft_trainable_token_indices"),
        (Named("more layers than the model has", "more"), "peft_layer_replication"),
        (Named("is counted untied", "less"), "peft_ensure_weight_tying"),
        (Named("may halve the micro-batch", "less"), "auto_find_batch_size"),
        (Named("keeps a copy of the gradients", "more"), "grokfast_alpha"),
        (Named("is counted as bf16", "more"), "float32"),
        (Named("DeepSpeed compiles the step", "either"), "deepcompile"),
        (Named("its loss keeps more results than cross-entropy", "more"), "use_eaft"),
        (Named("the teacher's figures are not counted", "more"), "kd_*"),
        (Named("1-bit layers are counted as usual ones", "more"), "use_onebitllms"),
        (Named("layers are counted on the GPU", "less"), "layer_offloading* offload"),
        (Named("is counted as full checkpointing", "more"), "selective_checkpointing*"),
        (Named("this optimizer is not counted", "either"), "*galore*"),
        (Named("is misspelled in the file", "either"), "context_parapllel_size"),
    ),
    defaults={
        "batch_size": 1,
        "accumulation": 1,
        "sequence_length": 512,
        "weights": "bf16",
        "autocast": "bf16",
        "optimizer": "adam",
        "update": "fused",
    },
    edits={
        "checkpointing=full": {"gradient_checkpointing": True},
        "optimizer_bits=8": {"optimizer": "adamw_bnb_8bit"},
        "optimizer=adafactor": {"optimizer": "adafactor"},
        "update=fused": {"optimizer": "adamw_torch_fused"},
        "attention=sdpa": {"attn_implementation": "sdpa"},
        "activation_offload=pinned": {"activation_offloading": True},
        "chunked_loss=torch": {"cut_cross_entropy": True},
        "lora_targets=all-linear": {"adapter": "lora", "lora_target_linear": True},
        "quantization=nf4-double": {"adapter": "qlora", "load_in_4bit": True},
        "cpu_offload=true": {"fsdp_config.offload_params": True},
    },
    finish=_finish,
)
