"""Keys of a configuration of accelerate.

Source: accelerate (commands/config/config_args.py, utils/dataclasses.py)
"""

from typing import Final

from calculator.doors.table import SHARDS, Facts, Named, Reader, Table, either, in_words, is_off
from calculator.doors.trainer import fsdp_keys


def _kind(value: object) -> Facts | Named:
    match in_words(value):
        case "no":
            return {"processes": 1}
        case "fsdp":
            return SHARDS
        case "deepspeed" | "multi_gpu":
            return {}
        case _:
            return Named("GPUs of NVIDIA are counted", "")


def _in_ram(name: str) -> Reader:
    def read(value: object) -> Facts:
        return {} if is_off(value) else {name: True}

    return read


TABLE: Final = Table(
    title="accelerate",
    marks=("distributed_type", "compute_environment", "parallelism_config*+num_processes"),
    keys={
        "distributed_type": _kind,
        "num_processes": "processes",
        "mixed_precision": {
            "no": {},
            "bf16": {"autocast": "bf16"},
            "fp16": {"autocast": "fp16"},
            "fp8": Named("is counted as bf16", "either", {"autocast": "bf16"}),
        },
        **fsdp_keys("fsdp_config."),
        "deepspeed_config.zero_stage": {str(stage): {"zero": stage} for stage in range(4)},
        "deepspeed_config.offload_optimizer_device": _in_ram("offload_states"),
        "deepspeed_config.offload_param_device": _in_ram("offload_weights"),
        "deepspeed_config.gradient_accumulation_steps": "accumulation",
        "deepspeed_config.deepspeed_config_file": "part",
        "parallelism_config.parallelism_config_tp_size": "tensor_parallel",
        "parallelism_config.parallelism_config_cp_size": "context_parallel",
        "parallelism_config.parallelism_config_dp_shard_size": Named("", "", SHARDS),
        "use_cpu": either({"processes": 1}, {}),
    },
    harmless="""
    compute_environment debug downcast_bf16 enable_cpu_affinity machine_rank num_machines
    main_training_function main_process_* rdzv_* same_network tpu_* gpu_ids dynamo_config.*
    deepspeed_config.* fsdp_config.* commands command_file ipex_config.* mpirun_config.*
    fp8_config.* parallelism_config.parallelism_config_dp_replicate_size
    parallelism_config.parallelism_config_cp_* parallelism_config.parallelism_config_sp_*
    megatron_lm_config.* gradient_accumulation_steps main_process_ip main_process_port
    """,
    named=(
        (
            Named("Ulysses divides tokens: give --context-parallel", "less"),
            "parallelism_config.parallelism_config_sp_size",
        ),
        (Named("computes experts on the CPU", "less"), "kt_*"),
    ),
    defaults={},
    edits={"cpu_offload=true": {"fsdp_config.fsdp_offload_params": True}},
    is_run=False,
)
