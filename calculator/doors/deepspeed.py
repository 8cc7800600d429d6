"""Keys of a configuration of DeepSpeed.

Source: DeepSpeed (docs/_pages/config-json.md, runtime/config.py, runtime/zero/config.py)
"""

from typing import Final

from calculator.doors.table import Facts, Named, Reader, Table, flag, in_words, is_off
from calculator.optimizers.registry import names_elsewhere

_ADAM: Final = {"optimizer": "adam", "update": "fused"}
_MORE: Final = "holds buffers beside what is counted"
_STAGES: Final = (
    "is counted as PyTorch's shards; DeepSpeed's buckets and prefetched weights come on top"
)


def _number(name: str) -> Reader:
    def read(value: object) -> Facts:
        return {} if in_words(value) == "auto" else {name: value}

    return read


def _in_ram(name: str) -> Reader:
    def read(value: object) -> Facts | Named:
        if in_words(value) == "nvme":
            return Named("counted as RAM, whose staging buffers it shares", "", {name: True})
        return {} if is_off(value) else {name: True}

    return read


def _optimizer(value: object) -> Facts | Named:
    name = in_words(value)
    if name in ("adam", "adamw", "fusedadam"):
        return _ADAM
    if name in ("lamb", "fusedlamb", "lion", "sgd", "adagrad", "muon"):
        return {"optimizer": name} if name != "fusedlamb" else {"optimizer": "lamb"}
    if name in ("onebitadam", "zerooneadam", "onebitlamb"):
        facts = {"optimizer": "lamb"} if "lamb" in name else _ADAM
        return Named("its compressed gradients and their errors are not counted", "more", facts)
    return names_elsewhere().get(name, Named("this optimizer is not counted; AdamW is"))


TABLE: Final = Table(
    title="DeepSpeed",
    marks=(
        "zero_optimization.stage",
        "train_micro_batch_size_per_gpu",
        "zero_allow_untested_optimizer",
        "train_batch_size+optimizer.type",
    ),
    keys={
        "train_micro_batch_size_per_gpu": _number("batch_size"),
        "train_batch_size": _number("update_batch"),
        "gradient_accumulation_steps": _number("accumulation"),
        "zero_optimization.stage": {
            "auto": {},
            "0": {"zero": 0},
            "1": Named(_STAGES, "", {"zero": 1}),
            "2": Named(_STAGES, "", {"zero": 2}),
            "3": Named(_STAGES, "", {"zero": 3}),
        },
        "zero_optimization.offload_optimizer.device": _in_ram("offload_states"),
        "zero_optimization.offload_param.device": _in_ram("offload_weights"),
        "zero_optimization.cpu_offload": flag(offload_states=True),
        "zero_optimization.cpu_offload_param": flag(offload_weights=True),
        "bf16.enabled": flag(autocast="bf16"),
        "bfloat16.enabled": flag(autocast="bf16"),
        "fp16.enabled": flag(autocast="fp16"),
        "optimizer.type": _optimizer,
        "optimizer.params.torch_adam": flag(update="foreach"),
        "tensor_parallel.autotp_size": "tensor_parallel",
        "activation_checkpointing.partition_activations": Named(_MORE, "less"),
        "activation_checkpointing.cpu_checkpointing": flag(activation_offload="pinned"),
    },
    harmless="""
    steps_per_print wall_clock_breakdown dump_state gradient_clipping _comment*
    prescale_gradients gradient_predivide_factor sparse_gradients optimizer.params.* scheduler.*
    optimizer.legacy_fusion fp16.* bf16.* amp.* train_steps zero_allow_untested_optimizer
    zero_force_ds_cpu_optimizer comms_config.* comms_logger.* monitor_config.* tensorboard.*
    wandb.* csv_monitor.* flops_profiler.* autotuning.* compile.* cuda_visible_devices
    elasticity.* aio.* checkpoint.* data_types.* seq_parallel_communication_data_type
    communication_data_type disable_allgather activation_checkpointing.*
    gradient_accumulation_dtype seed zero_optimization.contiguous_gradients
    zero_optimization.reduce_scatter zero_optimization.overlap_comm
    zero_optimization.allgather_partitions zero_optimization.*bucket_size
    zero_optimization.sub_group_size zero_optimization.*max_live_parameters
    zero_optimization.*max_reuse_distance zero_optimization.*param_persistence_threshold
    zero_optimization.*gather_16bit_weights* zero_optimization.*gather_fp16_weights*
    zero_optimization.round_robin_gradients zero_optimization.ignore_unused_parameters
    zero_optimization.elastic_checkpoint zero_optimization.load_from_fp32_weights
    zero_optimization.offload_*.* zero_optimization.zero_quantized_nontrainable_weights
    data_efficiency.seed zero_optimization.log_trace_cache_warnings
    zero_optimization.leaf_module.* zero_optimization.allgather_sequential
    zero_optimization.cpu_offload_use_pin_memory zero_optimization.enable_sanity_checks
    zero_optimization.leaf_module zero_optimization.legacy_stage1
    zero_optimization.memory_efficient_linear zero_optimization.model_persistence_threshold
    zero_optimization.module_granularity_threshold zero_optimization.offload_optimizer
    zero_optimization.offload_param zero_optimization.override_module_apply
    zero_optimization.pipeline_loading_checkpoint
    zero_optimization.save_muon_momentum_buffer_in_memory
    zero_optimization.use_all_reduce_for_fetch_params
    zero_optimization.use_multi_rank_bucket_allreduce zero_optimization.zenflow
    zero_optimization.zeropp_loco_param dataloader_drop_last amp bf16 fp16 optimizer scheduler
    checkpoint bfloat16.* use_data_before_expert*
    """,
    named=(
        (
            Named("16-bit masters are counted as 32-bit ones", "less"),
            "bf16.bf16_master* bf16.bf16_optimizer_states fp16.fp16_master*",
        ),
        (Named("is counted as 32 bits", "less"), "torch_autocast.*"),
        (Named("keeps a product with every weight", "more"), "eigenvalue.*"),
        (Named("keeps a second shard", "more"), "zero_optimization.zero_hpz_partition_size"),
        (Named("sends 8 bits, in buffers", "more"), "zero_optimization.zero_quantized_*"),
        (Named("shards over some of the GPUs alone", "more"), "zero_optimization.mics_*"),
        (Named("keeps gradients of both devices", "more"), "zero_optimization.zenflow.*"),
        (Named("trains masks or other formats beside weights", "more"), "compression_training.*"),
        (Named("drops tokens in the middle layers", "less"), "data_efficiency.*"),
        (Named("drops layers in some steps", ""), "progressive_layer_drop.*"),
        (Named("begins with shorter sequences", ""), "curriculum_learning.*"),
        (Named("is another attention", "either"), "sparse_attention.*"),
        (Named("pipelines need the program: give --pipeline-parallel", "either"), "pipeline.*"),
        (Named("experts need the program", "either"), "moe.*"),
        (Named("Ulysses divides tokens: give --context-parallel", "less"), "*sequence_parallel*"),
    ),
    defaults={},
    edits={
        "cpu_offload=true": {
            "zero_optimization.offload_optimizer": {"device": "cpu"},
            "zero_optimization.offload_param": {"device": "cpu"},
        },
        "data_parallel=fsdp": {"zero_optimization.stage": 3},
    },
    is_run=False,
)
