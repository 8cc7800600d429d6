"""One configuration's training step as a row: what was alive when, in bytes."""

import platform
from importlib.metadata import PackageNotFoundError, version
from time import perf_counter
from typing import Any, Final

import torch

from validation.configuration import Configuration
from validation.ledger import Step
from validation.mesh import PIPELINE, axes_of
from validation.paged import paged
from validation.ranks import own
from validation.rows import ORACLE, Row, measure_command
from validation.session import Training, Unwatched, session, training
from validation.storage import Part, Phase, block_bytes

VERSIONED: Final = ("torch", "transformers", "bitsandbytes", "peft")


def measure(configuration: Configuration, device: str) -> Row:
    """Memory of a step with this configuration, once the optimizer's states exist.

    `device` is ``counting``, ``cpu`` or ``cuda``; on a real GPU there are no parts. Of a pipeline
    all stages are measured: `stages` has their peaks, and all else is that of the fullest.

    Raises:
        InputError: for a configuration that no real class or library can run.
    """
    row: Row = {
        "configuration": configuration.as_dict(),
        "command": measure_command(configuration, device),
        "device": device,
    }
    if device == "cuda":
        return row | _on_a_card(configuration) | {"versions": versions()}
    axes = axes_of(configuration.asked)
    stages = [
        measure_rank(configuration, device, axes.rank({PIPELINE: stage}))
        for stage in range(axes.pipeline)
    ]
    if len(stages) > 1:
        row["stages"] = [each["peak"] for each in stages]
    return row | max(stages, key=lambda each: int(each["peak"]))


def measure_rank(configuration: Configuration, device: str, rank: int) -> Row:
    """The figures of one of several GPUs: of a pipeline, those of a stage."""
    with session(configuration, device, rank) as made:
        training = made.training
        step = made.step()
        made.ledger.enter(training.updater.state(), Part.OPTIMIZER)  # some make new ones
        static = {part: made.ledger.total(part) for part in Part}
        kept = step.parts(step.kept)
        return {
            **_static(training, static[Part.WEIGHTS]),
            "gradients": step.gradients,
            "optimizer": static[Part.OPTIMIZER],
            "inputs": static[Part.INPUTS],
            "activations": kept[Part.ACTIVATIONS],
            "autocast_copies": kept[Part.COPIES],
            **_peaks(step),
            "ram": _ram(training, step, device),
            "transfer": training.transfer,
            **_moved(training),
            **_paged(training),
            "versions": versions(),
        }


def _moved(training: Training) -> Row:
    """Bytes of each collective of the step, in order."""
    return {} if training.ranks is None else {"collectives": dict(training.ranks.moved)}


def _paged(training: Training) -> Row:
    """Bytes of states in managed memory, and of what a step prefetches of them."""
    if not training.configuration.asked.paged_optimizer:
        return {}
    found = {"bytes": sum(item.nbytes for item in paged(training.updater.state()))}
    if training.managed is not None:
        found["prefetched"] = training.managed.prefetched
    return {"paged": found}


def _static(training: Training, weights: int) -> dict[str, int]:
    """Memory of the model itself; tables that a first step left behind count as buffers."""
    parameters = list(training.task.model.parameters())
    here = [own(item) for item in parameters if own(item).device.type == training.device]
    trained = sum(block_bytes(item.untyped_storage().nbytes()) for item in here)
    return {
        "parameters": sum(item.numel() for item in parameters),
        "buffers": weights - trained,
        "weights": weights,
    }


def _peaks(step: Step) -> dict[str, Any]:
    phase = max(step.peaks, key=lambda item: step.peaks[item].total)
    highest = step.peaks[phase]
    return {
        "peak": highest.total,
        "peak_without_rounding": highest.exact,
        "phase": phase.value,
        "operation": highest.operation,
        "module": highest.module,
        "phases": {item.value: _phase(step, item) for item in Phase if item in step.peaks},
    }


def _phase(step: Step, phase: Phase) -> dict[str, Any]:
    peak = step.peaks[phase]
    parts = {part.value: size for part, size in peak.parts.items()}
    where = {"operation": peak.operation, "module": peak.module}
    return {"peak": peak.total, **where, "parts": parts}


def _ram(training: Training, step: Step, device: str) -> dict[str, int]:
    """Bytes in RAM beside the device: the most in the step, and what the update keeps there."""
    if device == "cpu":
        return {"peak": 0, "optimizer": 0}
    known = training.updater.state()
    pages = {id(item) for item in paged(known)}
    states = [item for item in known if str(item.device) != "cuda:0" and id(item) not in pages]
    return {"peak": step.host_peak, "optimizer": sum(own(item).nbytes for item in states)}


def _on_a_card(configuration: Configuration) -> Row:
    """Three steps, as a program begins: one for the states, one watched, and one timed."""
    from validation.cuda import AllocatorWatcher, allocator_figures, emptied_card

    left, held = emptied_card()
    with training(configuration, "cuda") as made:
        states = [item for item in made.updater.state() if item.is_cuda]
        model = made.task.model
        weights = _bytes([*model.parameters(), *model.buffers()])
        known = weights + _bytes(states) + _bytes(list(made.task.inputs.values()))
        watcher = AllocatorWatcher()
        made.run(watcher)
        figures = allocator_figures(watcher, known, left)
        return {
            **_static(made, weights),
            "optimizer": _bytes(states),
            **figures,
            "seconds": _seconds(made),
            "reserved": torch.cuda.memory_reserved() - held,  # nothing was given back
            "transfer": made.transfer,
            **_paged(made),
        }


def _seconds(made: Training) -> float:
    """Time of one more step."""
    torch.cuda.synchronize()
    start = perf_counter()
    made.run(Unwatched())
    torch.cuda.synchronize()
    return perf_counter() - start


def _bytes(tensors: list[torch.Tensor]) -> int:
    """Bytes of the tensors' blocks, each counted once."""
    found = {item.untyped_storage().data_ptr(): item.untyped_storage().nbytes() for item in tensors}
    return sum(map(block_bytes, found.values()))


def versions() -> dict[str, str | int]:
    """Versions that a measurement depends on."""
    found: dict[str, str | int] = {"oracle": ORACLE, "python": platform.python_version()}
    for package in VERSIONED:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
