"""Data for the home page: what fits, the 2021 run, a recorded one, and how a model gets small."""

import base64
import json
import math
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

from calculator.catalog import GPUS, SOURCES, find_gpu, find_model, groups
from calculator.estimate import estimate
from calculator.planner.forecast import forecast
from calculator.planner.run import Run
from calculator.report import Part
from calculator.units import format_bytes
from templates.pages.index import run_of_2021
from templates.pages.index.fit import fit, table
from templates.pages.index.loss_line import draw_loss
from templates.pages.train_in_this_tab import context as train_in_this_tab
from templates.pieces.accuracy import devices, on_card, on_our_cards
from templates.pieces.counted import count
from templates.pieces.recorded_run import LIVE, first_run
from templates.pieces.recorded_run import Run as RecordedRun
from templates.pieces.scripts import ask_script

TEXTS = Path(__file__).with_name("texts.mjs")
MODEL = find_model("dalle-together")
GPU = find_gpu("t4")
LARGE_MODEL = find_model("gpt3-175b")
LARGE_GPU = find_gpu("a100-80")

# The large model's training on one GPU, day and night: tokens of Brown et al., 2020, table 2.1;
# the share of the peak rate is ours.
LARGE_RUN = {
    "gpu": LARGE_GPU.name,
    "volunteers": 1,
    "hours": 24,
    "billion_tokens": 300,
    "utilization": 40,
}
SECONDS_PER_YEAR = 365.25 * 24 * 3600

# The plain model; `TECHNIQUES` are what the 2021 run added, in the order of the bars.
PLAIN = {
    "model": MODEL.name,
    "gpu": GPU.name,
    "optimizer": "lamb",
    "sharing_groups": str(MODEL.layers),
    "reversible": "false",
}
TECHNIQUES: tuple[tuple[str, dict[str, str]], ...] = (
    ("Separate weights in every layer", {}),
    ("Weights shared in 4 groups of layers", {"sharing_groups": "4"}),
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
    """The reference model's peak; each bar adds one technique."""
    choices: dict[str, str] = dict(PLAIN)
    found = []
    for label, added in TECHNIQUES:
        choices |= added
        counted = count(**choices)
        found.append(Stair(label, counted.query, format_bytes(counted.peak), counted.parts))
    return found


@dataclass(frozen=True, slots=True)
class LargeModel:
    """The needs of a model far too large for one GPU, in words."""

    name: str
    title: str
    precision: str
    peak: str
    gpus: int
    gpu_memory: str
    years: int
    run: str


def large_model() -> LargeModel:
    """GPT-3's largest size with the default choices, in whole GPUs."""
    peak = estimate(LARGE_MODEL).gpu.total
    return LargeModel(
        name=LARGE_MODEL.name,
        title=LARGE_MODEL.title,
        precision="mixed precision",
        peak=format_bytes(peak),
        gpus=math.floor(peak / LARGE_GPU.memory),
        gpu_memory=format_bytes(LARGE_GPU.memory),
        years=round(forecast(LARGE_MODEL.name, Run.parse(LARGE_RUN)).seconds / SECONDS_PER_YEAR),
        run=urlencode({"model": LARGE_MODEL.name, **LARGE_RUN}),
    )


def data_address(address: str) -> str:
    """A drawing itself as an address: six of them cost less than the requests for them."""
    content = (LIVE.parent / address).read_bytes()
    return f"data:image/png;base64,{base64.b64encode(content).decode()}"


def run_figures(run: RecordedRun) -> dict[str, object]:
    """A run's texts and the figure of its swarm, made by the page's own script; its drawings."""
    return ask_script(TEXTS, run.folder) | {
        "title": run.card["title"],
        "name": run.name,
        "note": run.note,
        "day": run.day,
        "finished": bool(run.card["finished"]),
        "minutes": round(run.seconds / 60),
        "parameters": f"{run.card['parameters']:,}",
        "pictures": [(*pair, data_address(pair[1])) for pair in run.pictures],
        "loss_line": draw_loss([step["loss"] for step in run.steps]),
    }


def write_assets(assets: Path) -> None:
    """Write the table that the page's small calculator looks its answers up in."""
    (assets / "fit.json").write_text(json.dumps(table(), separators=(",", ":")), "utf-8")


def context() -> dict[str, object]:
    """The names that `page.md.j2` uses."""
    bars = stairs()
    return {
        "stairs": bars,
        "largest": max(GPU.memory, *(stair.bytes for stair in bars)),
        "gpu": GPU,
        "gpu_memory": format_bytes(GPU.memory),
        "parts": list(Part),
        "fit": fit(),
        "past": run_of_2021.figures(MODEL),
        "measured": devices()[0].families[0],
        "card": on_card(),
        "our_cards": on_our_cards(),
        "large": large_model(),
        "model_count": sum(map(len, groups().values())),
        "gpu_count": len(GPUS),
        "paper": SOURCES["together"],
        "gpt3": SOURCES["gpt3"],
        "large_run": LARGE_RUN,
        "run": run_figures(first_run()),
        "tab": train_in_this_tab.figure(),
    }
