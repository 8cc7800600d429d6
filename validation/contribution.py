"""Rows from a reader's own machine: measure what fits it, and write a file to send in.

Each row is written as soon as it is measured, so that an interruption loses none. A row holds the
card's name, its memory, driver and CUDA version, and nothing else about the machine.
"""

import gc
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import psutil
import torch

from calculator.errors import InputError
from calculator.estimate import estimate
from calculator.plan import Attention, HalfFormat, Precision
from calculator.units import format_bytes
from validation.configuration import Configuration, parse
from validation.grid import CARD_STEPS
from validation.measure import measure
from validation.rows import RowFile
from validation.table import HEADING, beside

FIRST_WITH_FLASH: Final = (8, 0)  # compute capability; older cards have no bfloat16 either

WIDTH: Final = len(HEADING)
_COLUMNS: Final = f"{'predicted':>11}{'measured':>11}{'error':>9}"


def contribute(device: str, folder: Path, steps: Iterable[str] = CARD_STEPS) -> Iterator[str]:
    """Measure each step that fits this machine; yield the lines to print.

    `device` is ``cuda`` or ``cpu``. The rows go to a file in `folder` that is named after the card.
    """
    file = RowFile(device, _name(device), folder)
    written = 0
    yield HEADING
    yield f"{_COLUMNS}{_COLUMNS}{'':8}  of"
    for words in steps:
        configuration = suited(parse(words.split()), device)
        high = _needed(configuration)
        if configuration in file:
            written += 1
            yield f"{'':{WIDTH}}  {words}: already in the file"
        elif high > free_bytes(device):
            yield f"{'':{WIDTH}}  {words}: may need {format_bytes(high)}, left out"
        else:
            try:
                row = measure(configuration, device)
            except torch.OutOfMemoryError as error:
                yield f"{'':{WIDTH}}  {words}: {str(error).partition('. ')[0]}; left out"
                continue
            finally:
                _forget(device)
            file.append(row)
            written += 1
            yield f"{beside(row)}  {words}"
    if not written:
        raise InputError("device", device, "has no memory free for even the smallest step")
    yield ""
    rows = "One row is" if written == 1 else f"{written} rows are"
    yield f"{rows} in {file.path}. Please send that file in: open a pull request that adds it to"
    yield "validation/measurements/, or attach it to an issue of the project. It names the card,"
    yield "its memory, its driver and the libraries' versions, and nothing else about this machine."


def suited(configuration: Configuration, device: str) -> Configuration:
    """The configuration as an older card can run it: float16, and no flash attention."""
    if device != "cuda" or torch.cuda.get_device_capability() >= FIRST_WITH_FLASH:
        return configuration
    plan = configuration.plan
    if plan.attention is Attention.SDPA and configuration.asked.precision is not Precision.FP32:
        plan = replace(plan, attention=Attention.EFFICIENT)
    return replace(configuration, plan=replace(plan, format=HalfFormat.FP16))


def free_bytes(device: str) -> int:
    """Bytes that a step may take now."""
    if device == "cuda":
        return torch.cuda.mem_get_info()[0]
    return int(psutil.virtual_memory().available)


def _needed(configuration: Configuration) -> int:
    """The most that a step is likely to take, in bytes."""
    report = estimate(configuration.architecture, configuration.plan)
    return report.gpu.total + report.overhead.high


def _forget(device: str) -> None:
    """Give back what a step took, so that the next one has it."""
    gc.collect()
    if device == "cuda":
        torch.cuda.empty_cache()


def _name(device: str) -> str:
    """A file name of the card: ``nvidia-t4``; of a processor, just that."""
    if device != "cuda":
        return "processor"
    return re.sub(r"[^a-z0-9]+", "-", torch.cuda.get_device_name().lower()).strip("-")
