"""What the home page needs: the reference run's model on one GPU, technique after technique."""

import math
from dataclasses import dataclass

from calculator.catalog import GPUS, MODELS, SOURCES, find_gpu, find_model
from calculator.units import format_bytes
from templates.calculator_page import PARTS, ask
from templates.numbers_page import accuracy

MODEL = find_model("dalle-together")
GPU = find_gpu("t4")
LARGE_MODEL = find_model("gpt3-175b")
LARGE_GPU = find_gpu("a100-80")

# What the 2021 run added to the plain model, in the order of the hero's bars.
PLAIN = {
    "model": MODEL.name,
    "gpu": GPU.name,
    "optimizer": "lamb",
    "sharing_groups": str(MODEL.layers),
    "reversible": "false",
}
TECHNIQUES: tuple[tuple[str, dict[str, str]], ...] = (
    ("Every layer with its own weights", {}),
    ("Layers shared in 4 groups", {"sharing_groups": "4"}),
    ("Reversible layers", {"reversible": "true"}),
    ("8-bit optimizer states", {"optimizer_bits": "8"}),
    ("States and update in RAM", {"offload": "optimizer"}),
)


@dataclass(frozen=True, slots=True)
class Stair:
    """One bar of the hero: a plan's peak, its parts, and its address in the calculator."""

    label: str
    query: str
    peak: str
    parts: dict[str, int]

    @property
    def bytes(self) -> int:
        """Length of the bar, the sum of its parts."""
        return sum(self.parts.values())


def stairs() -> list[Stair]:
    """The reference model's peak with one technique more in each bar."""
    choices: dict[str, str] = dict(PLAIN)
    found = []
    for label, added in TECHNIQUES:
        choices |= added
        value = ask("answer", **choices)
        gpu = value["report"]["gpu"]
        found.append(Stair(label, value["query"], format_bytes(gpu["peak"]), gpu["parts"]))
    return found


@dataclass(frozen=True, slots=True)
class LargeModel:
    """What a model far beyond one GPU needs, in words."""

    name: str
    title: str
    precision: str
    peak: str
    gpus: int
    gpu_memory: str


def large_model() -> LargeModel:
    """GPT-3's largest size with the default choices, in whole GPUs."""
    report = ask("answer", model=LARGE_MODEL.name)["report"]
    peak = report["gpu"]["peak"]
    return LargeModel(
        name=LARGE_MODEL.name,
        title=LARGE_MODEL.title,
        precision="mixed precision",
        peak=format_bytes(peak),
        gpus=math.floor(peak / LARGE_GPU.memory),
        gpu_memory=format_bytes(LARGE_GPU.memory),
    )


def context() -> dict[str, object]:
    """The names that `pages/index.md.j2` uses."""
    bars = stairs()
    parameters = ask("answer", **PLAIN)["report"]["parameters"]
    shared = ask("answer", model=MODEL.name)["report"]["parameters"]
    measured = accuracy()[0]
    return {
        "stairs": bars,
        "largest": max(GPU.memory, *(stair.bytes for stair in bars)),
        "gpu": GPU,
        "gpu_memory": format_bytes(GPU.memory),
        "parts": PARTS,
        "unshared": f"{parameters / 1e9:.1f} billion",
        "shared": f"{shared / 1e6:.0f} million",
        "measured": measured.rows[0],
        "measured_on": measured.device,
        "large": large_model(),
        "model_count": len(MODELS),
        "gpu_count": len(GPUS),
        "paper": SOURCES["together"],
    }
