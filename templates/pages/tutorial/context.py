"""Data for the tutorial: the notebook's code and the memory of its step."""

from dataclasses import dataclass
from functools import cache, partial
from typing import Final

from calculator.cards import COMMON
from calculator.catalog import SOURCES, Gpu, find_gpu, find_model
from calculator.plan import Plan
from calculator.report import Part
from calculator.units import GiB, format_bytes, format_count
from templates.pages.tutorial.notebooks import code
from templates.pieces.comparisons import Recorded
from templates.pieces.counted import Counted, count
from tools.source import find_source
from validation.configuration import Configuration
from validation.rows import read_rows

NOTEBOOK: Final = "tutorial.ipynb"
MODEL: Final = find_model("gpt2-l")
GPU: Final = find_gpu("t4")
SMALL: Final = 16 * GiB  # cards up to here are called small
LARGEST_BATCH: Final = 16
# CUDA 13, which PyTorch's current default builds use, begins with Turing.
OLD: Final = ("Pascal", "Volta")
OLD_WORDS: Final = "only with PyTorch's builds for CUDA 12.6"

# Each row adds one choice to the previous row; the notebook trains like the row NOTEBOOK_ROW.
PLAIN: Final = {"precision": "fp32", "accumulation": "16"}
STAIRS: Final[tuple[tuple[str, dict[str, str]], ...]] = (
    ("Adam, all in 32 bits", {}),
    ("and 16-bit arithmetic", {"precision": "amp"}),
    ("and 8-bit states in Adam", {"optimizer_bits": "8"}),
    ("and gradient checkpointing", {"checkpointing": "full"}),
    ("and Adam's states and update in RAM", {"offload": "optimizer"}),
)
NOTEBOOK_ROW: Final = 3


@dataclass(frozen=True, slots=True)
class Stair:
    """One way of training, with its calculated and its measured peak."""

    label: str
    query: str
    peak: int
    overhead: int
    ram: int
    parts: dict[str, int]
    measured: int

    @property
    def cells(self) -> list[str]:
        """The row of the table, its heading first."""
        link = f'<a href="../calculator/?{self.query.replace("&", "&amp;")}">{self.label}</a>'
        sizes = (self.peak, self.measured, *self.parts.values())
        return [link, *(format_bytes(size) if size else "–" for size in sizes)]

    @property
    def is_notebook(self) -> bool:
        """True if the notebook trains this way."""
        return self.label == STAIRS[NOTEBOOK_ROW][0]


def plans() -> list[tuple[str, dict[str, str]]]:
    """Each row's label and all its choices."""
    chosen, found = dict(PLAIN), []
    for label, added in STAIRS:
        chosen = chosen | added
        found.append((label, chosen))
    return found


def stairs() -> list[Stair]:
    """GPT-2 Large on the T4; each row adds one technique."""
    return [_stair(label, chosen) for label, chosen in plans()]


def _stair(label: str, chosen: dict[str, str]) -> Stair:
    found = count(model=MODEL.name, gpu=GPU.name, **chosen)
    return Stair(
        label=label,
        query=found.query,
        peak=found.peak,
        overhead=found.need - found.peak,
        ram=found.report.ram.total,
        parts=found.parts,
        measured=measured_peaks()[found.report.plan],
    )


@cache
def measured_peaks() -> dict[Plan, int]:
    """The committed peaks of the model in bytes, by the resolved plan that was measured."""
    found = {}
    for row in read_rows("counting"):
        if row["configuration"]["model"] == MODEL.name and "padding" not in row["configuration"]:
            found[Configuration.from_dict(row["configuration"]).resolved] = int(row["peak"])
    return found


@dataclass(frozen=True, slots=True)
class Card:
    """A small GPU, and the most sequences at once that fit in the notebook; 0 if none."""

    gpu: Gpu
    batch: int
    needed: int

    @property
    def cells(self) -> list[str]:
        """The row of the table, its heading first."""
        notes = [self.gpu.note, OLD_WORDS if self.gpu.generation in OLD else ""]
        note = "".join(f"<small>{words}</small>" for words in notes if words)
        query = (
            f"gpu={self.gpu.name}&amp;optimizer_bits=8&amp;checkpointing=full&amp;accumulation=16"
        )
        verdict = f"{self.batch} at once" if self.batch else "does not fit"
        return [
            self.gpu.title + note,
            format_bytes(self.gpu.memory),
            f'<a href="../calculator/?{query}">{format_bytes(self.needed)}</a>',
            verdict,
        ]


def small_gpus() -> list[Gpu]:
    """The small GPUs of the catalog, smallest first."""
    return sorted((gpu for gpu in COMMON if gpu.memory <= SMALL), key=lambda gpu: gpu.memory)


def cards() -> list[Card]:
    """The small GPUs, and what fits on each."""
    found = zip(small_gpus(), FITTING.results(), strict=True)
    return [Card(gpu, batch, size) for gpu, (batch, size) in found]


def step_on(gpu: Gpu, **changed: str) -> Counted:
    """The notebook's step on a GPU, with some choices changed."""
    choices = plans()[NOTEBOOK_ROW][1] | changed
    return count(model=MODEL.name, gpu=gpu.name, **choices)


def needed(gpu: Gpu, **changed: str) -> int:
    """Bytes of GPU memory for the notebook's step, including overhead."""
    return step_on(gpu, **changed).need


def largest_batch(gpu: Gpu) -> int:
    """Largest micro-batch that fits on the GPU; 0 if not even one sequence fits."""
    batches = range(LARGEST_BATCH, 0, -1)
    return next((b for b in batches if needed(gpu, batch_size=str(b)) <= gpu.memory), 0)


def _fitting(gpu: Gpu) -> tuple[int, int]:
    return largest_batch(gpu), needed(gpu)


FITTING = Recorded("tutorial", _fitting, small_gpus)


def context() -> dict[str, object]:
    """The names that `page.md.j2` uses."""
    rows = stairs()
    plain, half, eight_bit, checkpointed, offloaded = rows
    return {
        "code": partial(code, NOTEBOOK),
        "colab": find_source().colab(NOTEBOOK),
        "stairs": rows,
        "chosen": rows[NOTEBOOK_ROW],
        "largest": max(GPU.memory, *(row.peak for row in rows)),
        "parts": list(Part),
        "gpu": GPU,
        "gpu_memory": format_bytes(GPU.memory),
        "model": MODEL,
        "parameters": format_count(count(model=MODEL.name).report.parameters),
        "autocast_costs": format_bytes(half.peak - plain.peak),
        "eight_bit_saves": format_bytes(half.peak - eight_bit.peak),
        "checkpointing_saves": format_bytes(eight_bit.peak - checkpointed.peak),
        "offload_saves": format_bytes(checkpointed.peak - offloaded.peak),
        "offload_ram": format_bytes(offloaded.ram),
        "largest_error": format_bytes(max(abs(row.peak - row.measured) for row in rows)),
        "cards": cards(),
        "smallest": next(c.gpu for c in cards() if c.batch and c.gpu.generation not in OLD),
        "short_parts": [part.label.split()[0] for part in Part],
        "sources": SOURCES,
        "size": format_bytes,
    }
