"""The plan as arguments of transformers' Trainer, where it has them."""

from calculator.architecture import Architecture
from calculator.optimizers.rule import rule_of
from calculator.plan import (
    Checkpointing,
    ChunkedLoss,
    DataParallel,
    HalfFormat,
    Offload,
    Optimizer,
    Plan,
    Precision,
)
from calculator.program.loop import STEPS, kernel_context
from calculator.program.model import TRANSFORMERS
from calculator.program.optimizer import RATE, optimizer_options
from calculator.program.refusal import NoProgramError
from calculator.program.text import Import, Piece, call, keywords, quoted


def check_trainer(plan: Plan) -> None:
    """Refuse what Trainer cannot do, or does in another way.

    Raises:
        NoProgramError: naming the option and the rule.
    """
    rule = "Trainer has no argument for it; write the loop yourself"
    refused: dict[str, tuple[bool, str]] = {
        "precision": (
            plan.precision is Precision.MIXED,
            "Trainer keeps no fp32 copies of 16-bit weights; write the loop yourself",
        ),
        "optimizer": (rule_of(plan).has_program, rule),
        "update_in_backward": (plan.update_in_backward, rule),
        "offload": (plan.offload is not Offload.NONE, rule),
        "data_parallel": (plan.data_parallel is not DataParallel.DDP, rule),
        "tensor_parallel": (plan.tensor_parallel > 1, rule),
        "context_parallel": (
            plan.context_parallel > 1,
            "Trainer divides sequences only beside FSDP2, by accelerate's ParallelismConfig; write "
            "the loop yourself",
        ),
        "expert_parallel": (plan.expert_parallel > 1, rule),
        "pipeline_parallel": (plan.pipeline_parallel > 1, rule),
        "chunked_loss": (
            plan.chunked_loss is not ChunkedLoss.NONE,
            "Trainer would not divide this loss by the micro-steps; write the loop yourself",
        ),
    }
    for field, (is_refused, reason) in refused.items():
        if is_refused:
            raise NoProgramError(field, getattr(plan, field), reason)


def train_with_trainer(architecture: Architecture, plan: Plan) -> Piece:
    """Its arguments, and the call that trains on copies of the batch."""
    imports: list[Import] = [(TRANSFORMERS, "Trainer"), (TRANSFORMERS, "TrainingArguments")]
    built_in = _built_in(plan)
    lines: tuple[str, ...] = ()
    given = ["model", "arguments", "train_dataset=dataset"]
    if not built_in:
        name, needed = rule_of(plan).class_of(plan)
        imports.append(needed)
        options = ", ".join(_as_item(option) for option in optimizer_options(plan))
        lines = (f"optimizer = ({name}, {{{options}}})",)
        given.append("optimizer_cls_and_kwargs=optimizer")
    samples = plan.batch_size * plan.accumulation * plan.replicas * STEPS
    train, more = kernel_context(architecture, plan, ["trainer.train()"])
    lines = (
        *lines,
        "sample = {name: values[0] for name, values in batch.items()}",
        f"dataset = [sample] * {samples}",
        *call("arguments = TrainingArguments", keywords(_arguments(plan, built_in))),
        *call("trainer = Trainer", given),
        *train,
        'print(f"{torch.cuda.max_memory_allocated() / 2**30:.2f} GiB")',
    )
    return Piece(lines, (*imports, *more))


def _built_in(plan: Plan) -> str:
    """Trainer's name of the optimizer; empty where it has none that does the same."""
    if plan.paged_optimizer:
        return _paged(plan)
    rule = rule_of(plan)
    if plan.optimizer_bits != plan.own_bits and rule.keeps:
        return ""
    return rule.trainer.get(plan.update, "")


def _paged(plan: Plan) -> str:
    """Trainer keeps 32-bit states for trained embeddings beside 8-bit ones, which plans do not."""
    if plan.optimizer_bits == 8 and (not plan.lora or plan.lora_modules):
        return ""
    name = "adamw" if plan.optimizer is Optimizer.ADAM else "lion"
    return f"paged_{name}_{plan.optimizer_bits}bit"


def _arguments(plan: Plan, built_in: str) -> dict[str, str]:
    found = {
        "output_dir": '"trained"',
        "per_device_train_batch_size": quoted(plan.batch_size),
        "learning_rate": RATE.removeprefix("lr="),
        "max_steps": quoted(STEPS),
        "save_strategy": '"no"',
        "report_to": '"none"',
    }
    if plan.accumulation > 1:
        found["gradient_accumulation_steps"] = quoted(plan.accumulation)
    if plan.precision is Precision.AMP:
        found["fp16" if plan.format is HalfFormat.FP16 else "bf16"] = "True"
    if built_in:
        found["optim"] = quoted(built_in)
    if plan.checkpointing is Checkpointing.FULL:
        found["gradient_checkpointing"] = "True"
        found["gradient_checkpointing_kwargs"] = _checkpointing(plan)
    return found


def _checkpointing(plan: Plan) -> str:
    every = f', "every_n_layers": {plan.checkpoint_every}' if plan.checkpoint_every > 1 else ""
    return f'{{"use_reentrant": False{every}}}'


def _as_item(option: str) -> str:
    name, _, value = option.partition("=")
    return f"{quoted(name)}: {value}"
