"""The number of sequences that this device computes at once: as many as the calculator says fit."""

import math
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from calculator.architecture import Architecture
from calculator.errors import InputError
from calculator.hf_config import from_config
from calculator.plan import Offload, Optimizer, Plan, Precision
from calculator.planner.need import judged
from calculator.units import format_bytes
from training.run.recipes import LanguageSettings, Recipe
from training.volunteer.precision import Precision as DevicePrecision
from training.volunteer.precision import choose_precision

if TYPE_CHECKING:  # the doctor and the pages count without it
    import torch

USABLE = 0.8  # of main memory: programs beside ours, and pieces of memory too small to be used
# Of all parameters in float32, by count: the shared weights, twice while a round is applied, what
# has not been sent, and where local steps began.
ROUND_VECTORS = 4


@dataclass(frozen=True)
class MicroBatch:
    """A number of sequences and, in plain words, why it was chosen."""

    size: int
    reason: str


def choose_micro_batch(recipe: Recipe, device: "torch.device", wanted: int | None) -> MicroBatch:
    """Choose the micro-batch: what was asked for, else the largest that fits up to the recipe's.

    Raises:
        InputError: when fewer than one was asked for, or not even one fits.
    """
    if wanted is not None:
        if wanted < 1:
            raise InputError("micro_batch", wanted, "must be at least 1")
        return MicroBatch(wanted, f"computing {wanted} sequences at once, as asked for")
    free = free_bytes(device)
    scaled = choose_precision(device) is DevicePrecision.FLOAT16
    size = largest_that_fits(recipe, device, free, scaled)
    if size == 0:
        needed = format_bytes(step_bytes(recipe, device, 1, scaled))
        raise InputError("memory", format_bytes(free), f"must be {needed} or more for this run")
    counted = format_bytes(step_bytes(recipe, device, size, scaled))
    most = "the recipe's number" if size == recipe.swarm.micro_batch_size else "what fits"
    return MicroBatch(
        size,
        f"computing {size} sequences at once, {most}: the calculator counts {counted} "
        f"of {format_bytes(free)} free on this {word_of(device)}",
    )


def largest_that_fits(
    recipe: Recipe, device: "torch.device", free: int, scaled: bool = False
) -> int:
    """Find the most sequences, at most the recipe's, whose step needs no more than `free` bytes."""
    low, high = 0, recipe.swarm.micro_batch_size
    while low < high:
        middle = (low + high + 1) // 2
        fits = step_bytes(recipe, device, middle, scaled) <= free
        low, high = (middle, high) if fits else (low, middle - 1)
    return low


def step_bytes(
    recipe: Recipe, device: "torch.device", micro_batch_size: int, scaled: bool = False
) -> int:
    """Count what a step needs on the device, all of it included.

    Without a GPU, what would be offloaded lies in the same memory. Where the loss is `scaled`, a
    micro-batch's gradients are beside the sum until they are known to be sound.
    """
    report = judged(make_architecture(recipe), make_plan(recipe, device, micro_batch_size))
    if device.type == "cuda":
        return report.gpu.total + report.overhead.total + (4 * report.parameters if scaled else 0)
    beside = ROUND_VECTORS * 4 * report.parameters if recipe.sparse is not None else 0
    here = report.gpu.total + report.ram.total + beside
    return here + micro_batch_size * lines_bytes(recipe)


def lines_bytes(recipe: Recipe) -> int:
    """An estimate of what attention line by line, as on processors, takes beyond the count.

    By arithmetic, not by measurement, in bytes per sequence. The calculator counts a kernel that
    keeps no scores, as PyTorch's is with a language model. Here a layer's backward pass holds those
    of every code with the text and its own line four times: the weights, the same as they are
    multiplied, and a gradient of each.
    """
    model = recipe.model
    if isinstance(model, LanguageSettings):
        return 0
    seen = model.text_length + 1 + model.image_side
    return 4 * 4 * model.num_attention_heads * model.image_side**2 * seen


def make_architecture(recipe: Recipe) -> Architecture:
    """Describe the recipe's model to the calculator.

    Raises:
        InputError: it is a language model whose type the calculator does not know.
    """
    model = recipe.model
    if isinstance(model, LanguageSettings):
        return from_config(model.values(), recipe.name)
    return Architecture(
        name=recipe.name,
        title=recipe.name,
        family="dalle",
        layers=model.num_hidden_layers,
        hidden_size=model.hidden_size,
        heads=model.num_attention_heads,
        head_size=model.head_size,
        feed_forward_size=model.feed_forward_multiplier * model.hidden_size,
        vocabulary_size=model.text_vocabulary_size,
        positions=0,
        sequence_length=model.text_length + model.image_side**2,
        dropout=0.0,
        text_length=model.text_length,
        image_side=model.image_side,
        image_vocabulary_size=model.image_vocabulary_size,
        gated=True,
        own_last_layer=model.sharing_groups is not None,
        sharing_groups=model.sharing_groups,
        reversible=model.reversible,
        source="together",
    )


def make_plan(recipe: Recipe, device: "torch.device", micro_batch_size: int) -> Plan:
    """Describe to the calculator how a volunteer trains."""
    has_local_steps = recipe.sparse is not None
    plan = Plan(
        batch_size=micro_batch_size,
        precision=Precision.AMP if device.type == "cuda" else Precision.FP32,
        optimizer=Optimizer.ADAM if has_local_steps else Optimizer.LAMB,
        optimizer_bits=32 if has_local_steps else recipe.optimizer.state_bits,
        offload=Offload.NONE if has_local_steps else Offload.OPTIMIZER,
        accumulation=2,  # gradients of the micro-batches before are there already
    )
    if isinstance(recipe.model, LanguageSettings):
        return replace(plan, sequence_length=recipe.model.sequence_length)
    return plan


def free_bytes(device: "torch.device") -> int:
    """Memory that this process can have on the device."""
    if device.type == "cuda":
        import torch

        free, _total = torch.cuda.mem_get_info(device)
        return int(free)
    return int(USABLE * min(_available_bytes(), _container_bytes()))


def _available_bytes() -> int:
    """Main memory that Linux would give; elsewhere all that is built in."""
    table = Path("/proc/meminfo")
    if table.exists():
        lines = dict(line.split(":") for line in table.read_text().splitlines())
        return 1024 * int(lines["MemAvailable"].split()[0])
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _container_bytes() -> float:
    """Bytes left of a container's limit, infinite if there is none."""
    limit, used = (Path("/sys/fs/cgroup") / f"memory.{name}" for name in ("max", "current"))
    if not limit.exists() or limit.read_text().strip() == "max":
        return math.inf
    return int(limit.read_text()) - int(used.read_text())


def word_of(device: "torch.device") -> str:
    """A device in a word."""
    return "GPU" if device.type == "cuda" else "machine"
