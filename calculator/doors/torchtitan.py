"""Keys of torchtitan's TOML.

Source: torchtitan (config/job_config.py before its configurations became Python,
distributed/activation_checkpoint.py)
"""

from typing import Final

from calculator.doors.table import Facts, Named, Table, flag, in_words

_SHAPES: Final = {
    "llama3": ("meta-llama/Llama-3.1-", ("8B", "70B", "405B")),
    "qwen3": ("Qwen/Qwen3-", ("0.6B", "1.7B", "4B", "8B", "14B", "32B", "30B-A3B", "235B-A22B")),
}
_NAMES: Final = {
    ("deepseek_v3", "16B"): "deepseek-ai/DeepSeek-V2-Lite",
    ("deepseek_v3", "671B"): "deepseek-ai/DeepSeek-V3",
}


def _shards(value: object) -> Facts:
    return {} if in_words(value) == "1" else {"data_parallel": "fsdp"}


def _finish(facts: dict[str, object]) -> None:
    """The model, which two keys name; selective checkpoints by operation or of every n-th layer."""
    name, flavor = str(facts.pop("name", "")), str(facts.pop("flavor", ""))
    begun, sizes = _SHAPES.get(name, ("", ()))
    known = begun + flavor if flavor in sizes else _NAMES.get((name, flavor))
    if known and "model" not in facts:
        facts["model"] = known
    option = str(facts.pop("selective", "2"))
    selective = facts.get("checkpointing") == "selective"
    if selective:
        facts["checkpointing"] = "operations" if option == "op" else "full"
    if "checkpointing" in facts:
        facts["checkpoint_every"] = int(option) if selective and option.isdecimal() else 1
    if facts.get("pipeline_parallel") not in (None, 1):
        facts.setdefault("pipeline_schedule", "1f1b")


_FLOAT8: Final = Named("float8 products keep other copies than bf16's", "either")
TABLE: Final = Table(
    title="torchtitan",
    marks=("training.local_batch_size", "job.dump_folder", "model.flavor"),
    keys={
        "model.name": "name",
        "model.flavor": "flavor",
        "hf_transformers.model": "model",
        "training.local_batch_size": "batch_size",
        "training.global_batch_size": {"-1": {}},
        "training.seq_len": "sequence_length",
        "training.dtype": {"float32": {}, "bfloat16": {"weights": "bf16", "autocast": ""}},
        "training.mixed_precision_param": {"bfloat16": {"autocast": "bf16"}, "float32": {}},
        "training.enable_cpu_offload": flag(offload_states=True, offload_weights=True),
        "optimizer.name": {
            **{key: {"optimizer": "adam"} for key in ("adam", "adamw")},
        },
        "optimizer.implementation": {
            "fused": {"update": "fused"},
            "foreach": {"update": "foreach"},
            "for-loop": {"update": "loop"},
        },
        "optimizer.early_step_in_backward": flag(update_in_backward=True),
        "parallelism.data_parallel_shard_degree": _shards,
        "parallelism.fsdp_reshard_after_forward": {
            **{key: {} for key in ("default", "always")},
            "never": {"data_parallel": "zero2"},
        },
        "parallelism.tensor_parallel_degree": "tensor_parallel",
        "parallelism.context_parallel_degree": "context_parallel",
        "parallelism.context_parallel_rotate_method": "context_rotation",
        "parallelism.pipeline_parallel_degree": "pipeline_parallel",
        "parallelism.pipeline_parallel_schedule": {
            "1f1b": {"pipeline_schedule": "1f1b"},
            "gpipe": {"pipeline_schedule": "gpipe"},
            "interleaved1f1b": {"pipeline_schedule": "interleaved"},
        },
        "activation_checkpoint.mode": {
            "none": {"checkpointing": "none"},
            "full": {"checkpointing": "full"},
            "selective": {"checkpointing": "selective"},
        },
        "activation_checkpoint.selective_ac_option": "selective",
        "compile.enable": Named("compiled operations keep fewer results", "less"),
    },
    harmless="""
    job.* profiling.* metrics.* lr_scheduler.* checkpoint.* comm.* compile.* debug.*
    model.hf_assets_path model.tokenizer_path model.print_after_conversion optimizer.lr
    optimizer.beta1 optimizer.beta2 optimizer.eps optimizer.weight_decay training.dataset*
    training.steps training.max_norm training.dataloader.* training.gc_* training.seed
    training.mixed_precision_reduce training.deterministic validation.* experimental.*
    memory_estimation.* fault_tolerance.process_group* fault_tolerance.replica_id
    fault_tolerance.group_size fault_tolerance.min_replica_size quantize.*
    activation_checkpoint.* parallelism.data_parallel_replicate_degree
    parallelism.disable_loss_parallel parallelism.enable_async_tensor_parallel
    parallelism.pipeline_* parallelism.context_parallel_load_balancer parallelism.module_fqns*
    parallelism.expert_tensor_parallel_degree parallelism.expert_parallel_comm_backend
    inference.*
    """,
    named=(
        (Named("float8 products keep other copies than bf16's", "either"), "model.converters"),
        (Named("is not counted with shards", "either"), "parallelism.expert_parallel_degree"),
        (Named("keeps a second copy of the weights", "more"), "fault_tolerance.*"),
        (Named("frozen encoders are not counted", "more"), "encoder.*"),
        (Named("pictures are not counted", "more"), "data.*"),
        (Named("is of a model that is not counted", "either"), "training.*"),
    ),
    defaults={
        "batch_size": 8,
        "sequence_length": 2048,
        "autocast": "bf16",
        "update": "fused",
        "data_parallel": "fsdp",
        "checkpointing": "full",
        "checkpoint_every": 2,
    },
    edits={
        "checkpointing=full": {"activation_checkpoint.mode": "full"},
        "checkpointing=operations": {
            "activation_checkpoint.mode": "selective",
            "activation_checkpoint.selective_ac_option": "op",
        },
        "cpu_offload=true": {"training.enable_cpu_offload": True},
        "update=fused": {"optimizer.implementation": "fused"},
    },
    finish=_finish,
)
