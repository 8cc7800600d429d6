"""LoRA by peft itself."""

from dataclasses import replace

from calculator.plan import Plan
from calculator.techniques.lora import ALL_LINEAR, split
from validation.models import Task, watcher_of


def add_adapters(task: Task, plan: Plan) -> Task:
    """The model as peft freezes and adapts it; called after gradient checkpointing is enabled.

    peft asks for the gradient of the token embeddings where it finds checkpointing on.
    """
    if not plan.lora:
        return task
    import peft

    targets = ALL_LINEAR if plan.lora_targets == ALL_LINEAR else [*split(plan.lora_targets)]
    config = peft.LoraConfig(r=plan.lora, target_modules=targets, lora_dropout=plan.lora_dropout)
    model = peft.get_peft_model(task.model, config)
    return replace(task, model=model, watch=watcher_of(model.get_base_model()))
