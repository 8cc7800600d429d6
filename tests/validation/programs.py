"""Programs that `calculator.program` writes, run in the process of the measurer."""

import copy
import os
from collections.abc import Callable
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


def stages_apart(words: str) -> dict[str, float]:
    """The largest gap between the logits of a program's stages and those of the whole model."""
    configuration = parse(words.split())
    plan = configuration.resolved
    task: Any = build_task(Configuration(configuration.model, _plain(configuration)), "cpu")
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
    return {"apart": float((found - expected).abs().max() / expected.abs().max())}


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


def trained_by_trainer(words: str) -> dict[str, Any]:
    """A model that Trainer trained on the CPU, with weights of a folder."""
    configuration = parse(words.split())
    with TemporaryDirectory() as folder, patch("torch.cuda.max_memory_allocated", lambda: 0):
        whole: Any = build_task(Configuration(configuration.model, _plain(configuration)), "cpu")
        whole.model.save_pretrained(folder)
        before = {name: value.clone() for name, value in whole.model.named_parameters()}
        origin = origin_in(configuration, folder)
        text = write_program(origin, configuration.plan, Form.TRAINER)
        text = text.replace('"trained"', repr(folder))
        names = run_on_the_cpu(text.replace("bf16=True", "bf16=True, use_cpu=True"))
    trainer = names["trainer"]
    optimizer = trainer.optimizer.optimizer
    model = trainer.model
    base = model.get_base_model() if hasattr(model, "get_base_model") else model
    return {
        "optimizer": _told(optimizer),
        "bf16": trainer.args.bf16,
        "paged": [getattr(optimizer, "is_paged", False), _bits(optimizer)],
        "steps": trainer.state.global_step,
        "checkpointing": bool(base.is_gradient_checkpointing),
        "accumulation": trainer.args.gradient_accumulation_steps,
        "batch": trainer.args.train_batch_size,
        "changed": sum(
            name in before and not torch.equal(value, before[name])
            for name, value in base.named_parameters()
        ),
    }


def facts(words: str) -> dict[str, Any]:
    """A program's model and optimizer after it ran on the CPU, with weights of a folder."""
    configuration = parse(words.split())
    with TemporaryDirectory() as folder:
        model: Any = build_task(Configuration(configuration.model, _plain(configuration)), "cpu")
        model.model.save_pretrained(folder)
        before = {name: value.clone() for name, value in model.model.named_parameters()}
        text = write_program(origin_in(configuration, folder), configuration.plan)
        names = run_on_the_cpu(text)
    return describe(names, before)


def _plain(configuration: Configuration) -> Any:
    return type(configuration.plan)(batch_size=1)


def run_on_the_cpu(text: str) -> dict[str, Any]:
    """The names of a program after it ran, with the CPU for the GPU."""
    names: dict[str, Any] = {"__name__": "__main__"}
    with ExitStack() as stack:
        # the process answers on its standard output
        stack.enter_context(redirect_stdout(StringIO()))
        stack.enter_context(patch("torch.cuda.reset_peak_memory_stats", lambda: None))
        exec(compile(text.replace('"cuda"', '"cpu"'), "program", "exec"), names)
    return names


def describe(names: dict[str, Any], before: dict[str, torch.Tensor]) -> dict[str, Any]:
    """The model and the optimizer that a program made, as JSON."""
    model = names["model"]
    base = model.get_base_model() if hasattr(model, "get_base_model") else model
    parameters = dict(model.named_parameters())
    trained = {name: item for name, item in parameters.items() if item.requires_grad}
    own = dict(base.named_parameters())
    same = {name: item for name, item in own.items() if name in before}
    changed = [n for n, item in same.items() if not torch.equal(item, before[n].to(item.dtype))]
    return {
        "class": type(base).__name__,
        "training": model.training,
        "attention": base.config._attn_implementation,
        "use_cache": getattr(base.config, "use_cache", None),
        "checkpointing": bool(getattr(base, "is_gradient_checkpointing", False)),
        "trained": sorted(trained),
        "trained_types": sorted({str(item.dtype) for item in trained.values()}),
        "frozen_types": sorted(
            {str(item.dtype) for item in parameters.values() if not item.requires_grad}
        ),
        "changed": len(changed),
        "changed_frozen": len([name for name in changed if not own[name].requires_grad]),
        "weights": len(own),
        "gradients": sum(item.grad is not None for item in parameters.values()),
        "modules": sorted({type(module).__name__ for module in base.modules()}),
        "loss": float(names["loss"].detach()) if "loss" in names else None,
        "optimizer": _optimizer(names),
        "copies": sorted({f"{item.dtype} {item.device}" for item in names.get("copies", ())}),
        "layers": [len({id(layer) for layer in layers}) for layers in names.get("stacks", ())],
        "dropout": getattr(base.config, "resid_pdrop", None),
    }


def _optimizer(names: dict[str, Any]) -> list[Any]:
    made = [names[name] for name in ("optimizer", "muon", "adamw") if name in names]
    made += [next(iter(names["optimizers"].values()))] if "optimizers" in names else []
    return [_told(optimizer) for optimizer in made]


def _bits(optimizer: Any) -> int:
    """Bits of bitsandbytes' states; 0 of another's."""
    return optimizer.args.optim_bits if hasattr(optimizer, "args") else 0


def _told(optimizer: Any) -> Any:
    kept = ("lr", "momentum", "foreach", "fused", "weight_decay")
    return [
        type(optimizer).__name__,
        {name: value for name, value in optimizer.defaults.items() if name in kept},
    ]
