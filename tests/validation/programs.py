"""Programs that `calculator.program` writes, run in the process of the measurer."""

import copy
import os
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack, nullcontext, redirect_stdout
from functools import partial
from io import StringIO
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import torch
from torch.distributed.fsdp import CPUOffloadPolicy
from torch.nn.functional import linear_cross_entropy
from torch.nn.parallel import DistributedDataParallel
from transformers import AutoConfig, AutoModelForCausalLM

from calculator.architecture import Architecture
from calculator.estimate import estimate
from calculator.plan import Plan
from calculator.program.origin import Origin
from calculator.program.write import Form, write_program
from tests.calculator.whole import peaks_of_gpus
from tests.validation.counted import StandInAllocator
from validation.configuration import Configuration, parse
from validation.counting_device import counting_gpu
from validation.distributed import fullest
from validation.mesh import PIPELINE, REPLICAS, axes_of
from validation.models import build_task
from validation.paged import managed_memory
from validation.ranks import Ranks, ranks
from validation.scaled import finite
from validation.spread import exchanged_evenly

LARGE = 1e3  # so that what caps logits changes them


def origin_in(configuration: Configuration, hub: str = "") -> Origin:
    """The configuration's model: from its values, or from a folder in place of the Hub."""
    subject = configuration.subject
    # as the Hub's config.json has them
    decoding = {"decoder_start_token_id": 0, "pad_token_id": 0} if subject.has_target else {}
    values = {**decoding, "model_type": subject.kind, **subject.values}
    return Origin(configuration.architecture, hub, "", values)


def counted_peak(words: str) -> dict[str, int]:
    """A program's own peak on the counting GPU, and the one that its plan is estimated at."""
    configuration = parse(words.split())
    text = write_program(origin_in(configuration), configuration.plan)
    if configuration.plan.gpus == 1:  # copies of a model arrange their buckets after a first step
        text = text.replace("range(3)", "range(2)")
    peak = estimate(configuration.architecture, configuration.plan).gpu.total
    with ExitStack() as stack:
        stack.enter_context(counting_gpu())
        plan = configuration.resolved
        rank = _fullest(configuration.architecture, plan)
        group = stack.enter_context(ranks(axes_of(plan), "cuda", rank))
        stack.enter_context(torch.autograd.set_multithreading_enabled(False))
        stack.enter_context(finite(counting=True))
        stack.enter_context(exchanged_evenly(configuration))
        if plan.paged_optimizer:
            stack.enter_context(managed_memory())
        allocator = StandInAllocator()
        stack.enter_context(patch.dict(os.environ, {"LOCAL_RANK": "0"}))
        for target, replacement in _on_the_counting_gpu(allocator, group).items():
            stack.enter_context(patch(target, replacement))
        exec(compile(text, "program", "exec"), {"__name__": "__main__"})
        return {"program": allocator.highest(), "estimate": peak}


def stages_apart(words: str) -> float:
    """The largest gap between the logits of a program's stages and those of the whole model."""
    configuration = parse(words.split())
    plan = configuration.resolved
    task: Any = build_task(Configuration(configuration.model, Plan(batch_size=1)), "cpu")
    whole = task.model.eval()
    with torch.no_grad():
        whole.get_output_embeddings().weight.mul_(LARGE)
    text = write_program(origin_in(configuration), configuration.plan)
    names: dict[str, Any] = {"torch": torch}
    first = "class NoPositions(" if "NoPositions" in text else "class Stage("
    exec(text[text.index(first) : text.index("loss_function, classes")], names)
    tokens = torch.randint(configuration.architecture.vocabulary_size, (2, 16))
    with torch.no_grad():
        expected = whole(tokens).logits
        found = tokens
        for place in range(plan.all_stages):
            found = names["Stage"](copy.deepcopy(whole), place)(found)
    return float((found - expected).abs().max() / expected.abs().max())


def _fullest(architecture: Architecture, plan: Plan) -> int:
    if plan.pipeline_parallel == 1:
        return fullest(architecture, plan)
    peaks = peaks_of_gpus(architecture, plan)
    stage = peaks.index(max(peaks))
    return axes_of(plan).rank({PIPELINE: stage, REPLICAS: fullest(architecture, plan, stage)})


def _on_the_counting_gpu(
    allocator: StandInAllocator, group: Ranks | None
) -> dict[str, Callable[..., Any]]:
    def reset() -> None:
        if group is not None:
            group.forget()  # it notes what was reduced, and so holds DDP's first buckets
        allocator.reset()

    def replica(model: Any, **options: Any) -> Any:
        made: Any = DistributedDataParallel(model, **options)
        # its timers are made for CUDA
        made.logger = SimpleNamespace(set_runtime_stats_and_log=lambda: None)
        return made

    def same(given: Any, *_: Any, **__: Any) -> Any:
        return given

    def in_chunks(*arguments: Any, **options: Any) -> torch.Tensor:
        # it asks for a GPU that can add up in 32 bits
        with patch("torch.cuda.is_available", lambda: True):
            return linear_cross_entropy(*arguments, **options)

    return {
        "torch.cuda.max_memory_allocated": allocator.highest,
        "torch.cuda.reset_peak_memory_stats": reset,
        "torch.cuda.set_device": lambda _: None,
        "torch.nn.functional.linear_cross_entropy": in_chunks,
        "torch.random.fork_rng": lambda **_: nullcontext(),
        "torch.distributed.init_process_group": lambda *_: None,
        "torch.distributed.destroy_process_group": lambda: None,
        # what is copied to pinned RAM ahead of time would need a real GPU's
        "torch.distributed.fsdp.CPUOffloadPolicy": partial(CPUOffloadPolicy, pin_memory=False),
        "torch.nn.parallel.DistributedDataParallel": replica,
        "builtins.print": lambda *_: None,
        # nobody reads the values that a new model starts from
        "torch.nn.init.normal_": same,
        "torch.nn.init.kaiming_uniform_": same,
        "transformers.PreTrainedModel.initialize_weights": same,
    }


def facts(words: str) -> dict[str, Any]:
    """A program's model and optimizer, after it ran on the CPU with weights of a folder."""
    names, before = _run_on_the_cpu(words, Form.LOOP)
    model, share = names["model"], parse(words.split()).plan.accumulation
    base = _base(model)
    parameters = list(model.named_parameters())
    types: dict[bool, set[str]] = {True: set(), False: set()}
    trained: Counter[str] = Counter()
    for name, item in parameters:
        types[item.requires_grad].add(str(item.dtype))
        # of a layer with adapters, its own name
        trained[name.partition(".lora_")[0].rpartition(".")[-1]] += item.requires_grad
    made = [names[name] for name in ("optimizer", "muon", "adamw") if name in names]
    made += [next(iter(names["optimizers"].values()))] if "optimizers" in names else []
    return {
        "class": type(base).__name__,
        "training": model.training,
        "attention": base.config._attn_implementation,
        "use_cache": getattr(base.config, "use_cache", False),
        "checkpointing": bool(base.is_gradient_checkpointing),
        "trained": +trained,
        "trained_types": sorted(types[True]),
        "frozen_types": sorted(types[False]),
        **_changed(base, before),
        "gradients": sum(item.grad is not None for _, item in parameters),
        "packed": any(type(module).__name__ == "Linear4bit" for module in base.modules()),
        "loss": float(names["loss"].detach()) * share if "loss" in names else None,
        "optimizers": [type(optimizer).__name__ for optimizer in made],
        "options": made[0].defaults,
        "copies": sorted({f"{item.dtype} {item.device}" for item in names.get("copies", ())}),
        "layers": [len({id(layer) for layer in layers}) for layers in names.get("stacks", ())],
    }


def make_weights(folder: str) -> None:
    """Weights beside a config.json."""
    config = AutoConfig.from_pretrained(folder)
    AutoModelForCausalLM.from_config(config).save_pretrained(folder)


def trained_by_trainer(words: str) -> dict[str, Any]:
    """Facts of a Trainer that ran on the CPU with weights of a folder."""
    names, before = _run_on_the_cpu(words, Form.TRAINER)
    trainer = names["trainer"]
    optimizer = trainer.optimizer.optimizer
    return {
        "optimizer": type(optimizer).__name__,
        "bf16": trainer.args.bf16,
        "paged": getattr(optimizer, "is_paged", False),
        "bits": optimizer.args.optim_bits if hasattr(optimizer, "args") else None,
        "steps": trainer.state.global_step,
        "checkpointing": bool(_base(trainer.model).is_gradient_checkpointing),
        "accumulation": trainer.args.gradient_accumulation_steps,
        "batch": trainer.args.train_batch_size,
        **_changed(_base(trainer.model), before),
    }


def _run_on_the_cpu(words: str, form: Form) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """The names of a program after it ran, with the CPU for the GPU, and the weights before."""
    configuration = parse(words.split())
    plain: Any = build_task(Configuration(configuration.model, Plan(batch_size=1)), "cpu").model
    names: dict[str, Any] = {"__name__": "__main__"}
    with TemporaryDirectory() as folder, ExitStack() as stack:
        plain.save_pretrained(folder)
        text = write_program(origin_in(configuration, folder), configuration.plan, form)
        cpu = {'"cuda"': '"cpu"', '"trained"': repr(folder), "bf16=True": "bf16=True, use_cpu=True"}
        for gpu, replacement in cpu.items():
            text = text.replace(gpu, replacement)
        # the process answers on its standard output
        stack.enter_context(redirect_stdout(StringIO()))
        for name in ("reset_peak_memory_stats", "max_memory_allocated"):
            stack.enter_context(patch(f"torch.cuda.{name}", lambda: 0))
        exec(compile(text, "program", "exec"), names)
    return names, dict(plain.named_parameters())


def _base(model: Any) -> Any:
    return model.get_base_model() if hasattr(model, "get_base_model") else model


def _changed(model: Any, before: Mapping[str, torch.Tensor]) -> dict[str, int]:
    """The numbers of the folder's weights that are other ones now, and that are not."""
    same = [
        torch.equal(item, before[name].to(item.dtype))
        for name, item in model.named_parameters()
        if name in before
    ]
    return {"changed": same.count(False), "unchanged": same.count(True)}
