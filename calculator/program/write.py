"""A model and a plan -> a program that takes the step that is counted, as text."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Final, assert_never

from calculator.architecture import Architecture
from calculator.command import command_for
from calculator.errors import LONGEST_MESSAGE, one_line
from calculator.estimate import estimate
from calculator.models.registry import type_of
from calculator.plan import Plan
from calculator.program.batch import make_batch
from calculator.program.divide import divide_batch, seed_groups
from calculator.program.loop import launch_words, start_processes, train, wrap
from calculator.program.model import load_model, shard
from calculator.program.optimizer import make_optimizer
from calculator.program.origin import Origin
from calculator.program.pipeline import cut_model
from calculator.program.refusal import NoProgramError
from calculator.program.split import divide_experts, split_layers
from calculator.program.text import Piece, import_lines
from calculator.program.trainer import check_trainer, train_with_trainer
from calculator.units import format_bytes

# The options that programs follow; a plan with another one has no program.
FOLLOWED: Final = (
    *("batch_size", "sequence_length", "target_length", "precision", "gradient_scaler"),
    *("format", "loop", "optimizer"),
    *("optimizer_bits", "update", "paged_optimizer", "update_in_backward", "attention"),
    *("checkpointing", "checkpoint_every", "activation_offload", "chunked_loss"),
    *("offload", "sharing_groups", "reversible", "dropout", "accumulation", "tied_embeddings"),
    *("lora", "lora_targets", "lora_dropout", "lora_bias", "lora_modules", "quantization"),
    *("gpus", "data_parallel", "cpu_offload", "tensor_parallel", "sequence_parallel"),
    *("expert_parallel", "context_parallel", "context_rotation"),
    *("pipeline_parallel", "pipeline_schedule", "pipeline_stages"),
    *("task", "labels", "freeze", "mini_batch_size"),
)


class Form(StrEnum):
    """Ways to write a program."""

    LOOP = "loop"
    TRAINER = "trainer"


def write_program(origin: Origin, plan: Plan, form: Form = Form.LOOP) -> str:
    """A program with PyTorch, transformers and peft that carries out a plan.

    A loop takes the step that is estimated; Trainer's own differs a little. It trains on one
    random micro-batch: only the data are left to change.

    Raises:
        InputError: for a plan that the model does not support.
        NoProgramError: for one that no library carries out.
    """
    report = estimate(origin.architecture, plan)
    resolved = report.plan
    check_program(origin.architecture, plan, resolved)
    head = [f"# {one_line(command_for(origin.architecture, plan), LONGEST_MESSAGE)}"]
    match form:
        case Form.LOOP:
            each = _each(resolved)
            peak = format_bytes(report.gpu.total)
            head.append(f"# Expected peak{each}: {peak}, without CUDA's own workspaces.")
            sections = _loop(origin, resolved)
        case Form.TRAINER:
            check_trainer(resolved)
            sections = _trainer(origin, resolved)
        case other:
            assert_never(other)
    if resolved.all_gpus > 1:
        head.append(f"# Start it with: {launch_words(resolved)}")
    return assemble(head, sections)


def _each(plan: Plan) -> str:
    if plan.pipeline_parallel > 1 or plan.context_parallel > 1:
        return " on the GPU that holds the most"
    return " on each GPU" if plan.all_gpus > 1 else ""


def _loop(origin: Origin, plan: Plan) -> list[Piece]:
    return [
        start_processes(plan),
        load_model(origin, plan),
        *_on_the_gpus(origin, plan),
        make_optimizer(plan),
        train(origin.architecture, plan),
    ]


def _on_the_gpus(origin: Origin, plan: Plan) -> list[Piece]:
    """The micro-batch, and the model's part on each of several GPUs."""
    if plan.pipeline_parallel > 1:
        return [cut_model(origin.architecture, plan)]
    batch = seed_groups(plan) + make_batch(origin.architecture, plan) + divide_batch(plan)
    if plan.expert_parallel > 1:
        return [batch, divide_experts(plan)]
    split = [split_layers(origin.architecture, plan)] if plan.tensor_parallel > 1 else []
    shards = plan.is_sharded
    return [batch, *split, shard(origin.architecture, plan) if shards else wrap(plan)]


def _trainer(origin: Origin, plan: Plan) -> list[Piece]:
    return [
        load_model(origin, plan, trainer=True),
        make_batch(origin.architecture, plan, device=""),
        train_with_trainer(origin.architecture, plan),
    ]


def check_program(architecture: Architecture, plan: Plan, resolved: Plan) -> None:
    """Refuse plans that are counted, but that no library's code carries out.

    Raises:
        NoProgramError: naming the option and the rule.
    """
    for field in plan.changed():
        if field not in FOLLOWED:
            raise NoProgramError(field, getattr(plan, field), "there is no code for it here yet")
    if not type_of(architecture).counted:
        rule = "is our own model, not transformers': its code is in the package `training`"
        raise NoProgramError("model", architecture.name, rule)
    if resolved.reversible:
        rule = "no class of transformers has reversible layers: must be false for code"
        raise NoProgramError("reversible", True, rule)
    length = resolved.sequence_length
    if architecture.positions and length > architecture.positions:
        rule = f"the model has {architecture.positions:,} positions: for code at most these"
        raise NoProgramError("sequence_length", length, rule)
    if 1 < resolved.expert_parallel < resolved.all_gpus:
        rule = f"there is no code for it beside other GPUs yet: must be {resolved.all_gpus:,}"
        raise NoProgramError("expert_parallel", resolved.expert_parallel, rule)
    for field in ("pipeline_parallel", "context_parallel"):
        if resolved.tensor_parallel > 1 and getattr(resolved, field) > 1:
            rule = "there is no code for it beside tensor_parallel yet: must be 1"
            raise NoProgramError(field, getattr(resolved, field), rule)


def assemble(head: Iterable[str], sections: Iterable[Piece]) -> str:
    """The comments at the head, all imports, and the sections with an empty line between them."""
    pieces = [piece for piece in sections if piece.lines]
    imports = [item for piece in pieces for item in piece.imports]
    blocks = ["\n".join(import_lines(imports)), *("\n".join(piece.lines) for piece in pieces)]
    return "\n".join([*head, "\n\n".join(blocks), ""])
