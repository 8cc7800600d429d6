"""Runs that others and we have made or plan, as choices of the planner: data only."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from calculator.planner.run import Run


@dataclass(frozen=True, slots=True)
class Preset:
    """An example run.

    Attributes:
        title: its name.
        model: a name of the catalog; empty where the options describe the model.
        options: what differs from the planner's defaults.
        source: key of the publication; empty where there is none.
        published: which choices are printed there, and what came out.
        assumed: which choices are ours.
    """

    title: str
    model: str
    options: Mapping[str, object]
    source: str
    published: str
    assumed: str

    @property
    def run(self) -> Run:
        """The choices as a run."""
        return Run.parse(self.options)


_AROUND_THE_CLOCK: Final = {"hours": 24}
_SPARSE: Final = {"compression": "sparse", "kept": 64, "block": 4096, "value_bits": 2}
# 80% of 31,250 steps of 4,096 sequences with 1,280 tokens
_TOGETHER: Final = {"billion_tokens": 131.072, "target_batch": 4096}

PRESETS: Final[dict[str, Preset]] = {
    "2021": Preset(
        "The 2021 run",
        "dalle-together",
        {**_TOGETHER, **_AROUND_THE_CLOCK, "volunteers": 30, "utilization": 8.6, "up": 100,
         "down": 100},
        "together",
        "Published: the model, 80% of 31,250 steps of 4,096 sequences, 8 bits; it took two and a "
        "half months.",
        "Assumed: 30 T4s around the clock at 8.6%, which gives that time, and 100 Mbit/s. Its "
        "updates overlapped with computing; its exchanges did not.",
    ),
    "ours": Preset(
        "The same at home",
        "dalle-together",
        {**_TOGETHER, "volunteers": 100, "gpu": "rtx-3060", "up": 20, "down": 100,
         "overlap": True},
        "",
        "The model and schedule of the 2021 run.",
        "Assumed: 100 volunteers with a GeForce RTX 3060 for 12 hours a day, 20 Mbit/s up, and "
        "exchanges that overlap with computing, as this project's do.",
    ),
    "sparse": Preset(
        "Local steps at home",
        "dalle-together",
        {**_TOGETHER, **_SPARSE, "volunteers": 16, "gpu": "rtx-3060", "up": 20, "down": 20,
         "way": "round", "target_batch": 64, "local_steps": 62},
        "",
        "The model and data of the 2021 run, exchanged as in this project's recipe “paper-local”.",
        "Assumed: 16 volunteers with a GeForce RTX 3060 for 12 hours a day, so 8 at a time, 20 "
        "Mbit/s up and down, and an exchange after ten minutes: 62 steps of 8 sequences each.",
    ),
    "covenant": Preset(
        "Covenant-72B",
        "",
        {**_AROUND_THE_CLOCK, **_SPARSE, "parameters": 72_700_000_000, "layers": 80, "width": 8192,
         "sequence_length": 2048, "billion_tokens": 1100, "volunteers": 20, "gpus_each": 8,
         "gpu": "other", "teraflops": 2250, "watts": 1000, "utilization": 24.7, "up": 110,
         "down": 500, "way": "store", "target_batch": 3840, "local_steps": 30},
        "covenant",
        "Published: parameters, layers, width, tokens, at most 20 peers of 8 B200s, 30 local "
        "steps of 192 sequences each, 64 of 4,096 elements in 2 bits, 110 Mbit/s up and 500 "
        "down. It reported 20 minutes of computing and 70 seconds of exchange.",
        "Assumed: a peak of 2,250 TFLOP/s and 1,000 W for each B200, and 24.7%, which gives the 20 "
        "minutes.",
    ),
    "intellect": Preset(
        "INTELLECT-1",
        "",
        {**_AROUND_THE_CLOCK, "parameters": 10_200_000_000, "layers": 42, "width": 4096,
         "sequence_length": 8192, "billion_tokens": 1000, "volunteers": 14, "gpus_each": 8,
         "gpu": "h100", "utilization": 38, "up": 500, "down": 500, "target_batch": 1500,
         "local_steps": 100},
        "intellect",
        "Published: layers, width, length, tokens, up to 14 nodes of 8 H100s, 100 local steps, 8 "
        "bits, 36 to 41% utilization. It reported 38 minutes of computing and 8.3 of exchange.",
        "Assumed: 1,500 sequences per step, which gives the 38 minutes, and 500 Mbit/s, the "
        "slowest connections.",
    ),
    "sparseloco": Preset(
        "SparseLoCo, 8B",
        "",
        {**_AROUND_THE_CLOCK, **_SPARSE, "parameters": 8_000_000_000, "layers": 32, "width": 4096,
         "sequence_length": 2048, "billion_tokens": 200, "volunteers": 20, "gpus_each": 8,
         "gpu": "h100", "utilization": 40, "up": 110, "down": 500, "way": "store",
         "target_batch": 5440, "local_steps": 30},
        "sparseloco",
        "Published: 8 billion parameters, 200 billion tokens, 20 participants, below 500 Mbit/s. "
        "It reported 4.5 minutes of computing and 12 seconds of exchange.",
        "Assumed: Covenant-72B's compression and connections, a Llama's shape, and 8 H100s each "
        "with a batch that gives the 4.5 minutes.",
    ),
    "diloco": Preset(
        "DiLoCo",
        "gpt2-m",
        {**_AROUND_THE_CLOCK, "billion_tokens": 10, "volunteers": 8, "gpu": "a100-40",
         "utilization": 40, "up": 1000, "down": 1000, "target_batch": 4096, "local_steps": 500,
         "compression": "32"},
        "diloco",
        "Published: 8 workers, 500 local steps, so 500 times fewer exchanges.",
        "Assumed: GPT-2 Medium in 32 bits, 512 sequences for each worker, an A100 each, 1 Gbit/s.",
    ),
}  # fmt: skip
