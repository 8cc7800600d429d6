"""Costs of taking part in the run of 2021 today: memory, traffic, disk, power."""

import json
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

from calculator.cards import TODAY
from calculator.catalog import find_model
from calculator.parameters import parameter_tensors
from calculator.plan import Plan
from calculator.resolution import resolve
from calculator.units import format_bytes
from templates.pieces.counted import count
from tools.console import ROOT
from training.run.recipes import PAPER
from training.volunteer.fitting import lines_bytes

MODEL: Final = find_model("dalle-together")
# Language models that a run may have by their config.json, and the tokens of a sequence.
LANGUAGE_MODELS: Final = ("openai-community/gpt2", "HuggingFaceTB/SmolLM2-360M", "Qwen/Qwen3-0.6B")
TOKENS: Final = 1024
MEASURED: Final = ROOT / "benchmarks" / "slow-links.json"

# Borzunov et al., 2022, section 3.4: about 80 % of the schedule in two and a half months.
PASSED: Final = 0.8
MONTHS: Final = 2.5
HOURS_A_MONTH: Final = 365.25 * 24 / 12

# A volunteer's options, as `training.volunteer.fitting.make_plan` gives them to the calculator.
CHOICES: Final = {
    "precision": "amp",
    "optimizer": "lamb",
    "optimizer_bits": str(PAPER.optimizer.state_bits),
    "offload": "optimizer",
    "accumulation": "2",
}


@dataclass(frozen=True, slots=True)
class Memory:
    """Memory of a step with `sequences` at once: in RAM, and on the GPU including overhead."""

    sequences: int
    gpu: int
    ram: int
    query: str


def memory(sequences: int) -> Memory:
    """The calculator's answer for the paper's recipe on a GPU of today."""
    found = count(model=MODEL.name, batch_size=str(sequences), gpu=TODAY.name, **CHOICES)
    return Memory(sequences, found.need, found.report.ram.total, found.query)


def language_memory(name: str) -> Memory:
    """The same for one sequence of a language model, by its name on the Hub."""
    choices = {**CHOICES, "batch_size": "1", "sequence_length": str(TOKENS)}
    found = count(model=name, gpu=TODAY.name, **choices)
    return Memory(1, found.need, found.report.ram.total, found.query)


def processor_memory(sequences: int) -> int:
    """The same without a GPU: in 32 bits and in RAM, including attention's line-by-line buffer."""
    choices = {**CHOICES, "precision": "fp32", "batch_size": str(sequences)}
    report = count(model=MODEL.name, **choices).report
    return report.gpu.total + report.ram.total + sequences * lines_bytes(PAPER)


def copy_bytes() -> int:
    """One copy of all gradients as they travel: 8 bits in large tensors, 16 in small ones."""
    large = PAPER.swarm.compression_threshold
    tensors = parameter_tensors(MODEL, resolve(MODEL, Plan()))
    return sum(t.copies * t.elements * (1 if t.elements >= large else 2) for t in tensors)


def parameter_count() -> int:
    """Number of the model's parameters."""
    return count(model=MODEL.name).report.parameters


def line_overhead() -> float:
    """Bytes on the wire per byte of tensors, in the measured exchanges at 8 bits.

    Among n peers, each sends 2 (n - 1) / n copies of the tensors.
    """
    rows: list[dict[str, Any]] = json.loads(MEASURED.read_text("utf-8"))["rows"]
    ratios: list[float] = [
        sent / (2 * (row["peers"] - 1) / row["peers"] * row["expected_bytes"])
        for row in rows
        if row["measured"] == "exchange" and row["bits"] == 8 and row["reachable"] == row["peers"]
        for sent in row["bytes_on_line_each"]
    ]
    return median(ratios)


def step_bytes() -> float:
    """Bytes that a volunteer among many sends, and also receives, per global step.

    Two copies of the gradients, and two of the weights in steps that average them.
    """
    exchanges = 1 + 1 / PAPER.swarm.average_state_every
    return 2 * exchanges * copy_bytes() * line_overhead()


def steps_an_hour() -> float:
    """Steps per hour in the run of 2021."""
    return PASSED * PAPER.schedule.total_steps / (MONTHS * HOURS_A_MONTH)


def disk_bytes() -> int:
    """Space for a checkpoint and two backups: the old one stays until the new one is complete."""
    count = parameter_count()
    return 2 * count * (4 + 2 * PAPER.optimizer.state_bits // 8) + 4 * count


# Bytes of the wheels that `training` needs with Python 3.11, added up from uv's lock of
# pyproject.toml on 25 November 2026: on Linux for Intel with CUDA, there with PyTorch's build for
# CPUs, and on Apple silicon.
SOFTWARE: Final = {"with CUDA": 2.98e9, "with PyTorch's CPU build": 0.44e9, "on macOS": 0.28e9}
HOME: Final = 50e6  # bit/s
CLIP_PARAMETERS: Final = 151_277_313  # of ViT-B/32, as transformers' CLIPConfig describes it


def download_words(size: float) -> str:
    """A download's size, and its time on a home connection."""
    seconds = 8 * size / HOME
    time = f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} minutes"
    return f"{size / 1e9:.1f} GB ({time})"


def downloads() -> dict[str, str]:
    """Downloads of the commands: the packages by machine, and a newcomer's weights."""
    weights = {"weights": download_words(4 * parameter_count())}
    return {name: download_words(size) for name, size in SOFTWARE.items()} | weights


@dataclass(frozen=True, slots=True)
class Power:
    """A GPU's maximum power in watts, as stated by its maker."""

    title: str
    watts: int
    address: str

    def kilowatt_hours(self, hours: float) -> float:
        """Most energy that it can use in a number of hours."""
        return self.watts * hours / 1000


POWERS: Final = (
    Power("Tesla T4", 70, "https://www.nvidia.com/en-us/data-center/tesla-t4/"),
    Power(
        "GeForce RTX 3060",
        170,
        "https://www.nvidia.com/en-us/geforce/graphics-cards/30-series/rtx-3060-3060ti/",
    ),
    Power(
        "GeForce RTX 4090",
        450,
        "https://www.nvidia.com/en-us/geforce/graphics-cards/40-series/rtx-4090/",
    ),
)


def rows(hours: float = 6) -> list[list[str]]:
    """The table of costs: resource, amount, and source."""
    one, many = memory(1), memory(PAPER.swarm.micro_batch_size)
    traffic = step_bytes() * steps_an_hour()
    power = "; ".join(f"{p.title}: {p.kilowatt_hours(hours):.1f} kWh" for p in POWERS)
    return [
        [
            "GPU memory",
            f"{format_bytes(one.gpu)} to {format_bytes(many.gpu)}",
            f'<a href="../calculator/?{many.query.replace("&", "&amp;")}">calculated</a> for 1 to '
            f"{many.sequences} sequences at once; <code>join</code> chooses as many as fit",
        ],
        [
            "RAM",
            f"at least {format_bytes(one.ram)}",
            "calculated for the optimizer; the averaging library keeps copies of its own. In 2021 "
            "the organizers asked for 13 GB",
        ],
        [
            "RAM without a GPU",
            f"at least {format_bytes(processor_memory(1))}",
            "calculated for 1 sequence at once",
        ],
        [
            "Upload, and the same again for download",
            f"{traffic / 1e9:.1f} GB per hour",
            f"{step_bytes() / 1e6:,.0f} MB per global step, from measured exchanges, at the pace "
            f"of 2021, {steps_an_hour():.0f} steps per hour. In 2021 the organizers asked for "
            f"50 GB in 6 hours; here it would be {6 * traffic / 1e9:.0f} GB",
        ],
        [
            "Disk",
            format_bytes(disk_bytes()),
            "for backup and checkpoint; the training data is streamed, not stored",
        ],
        [
            f"Electricity in {hours:g} hours",
            power,
            "upper limit for the card alone, from its maker's figures; the rest of the computer "
            "uses more",
        ],
    ]


def language_rows() -> list[list[str]]:
    """The table of language models: its name, the GPU memory and the RAM of a volunteer."""
    return [_language_row(name) for name in LANGUAGE_MODELS]


def _language_row(name: str) -> list[str]:
    needed = language_memory(name)
    address = f"../calculator/?{needed.query.replace('&', '&amp;')}"
    title = name.rpartition("/")[2]
    return [
        f'<a href="{address}">{title}</a>',
        format_bytes(needed.gpu),
        format_bytes(needed.ram),
    ]
