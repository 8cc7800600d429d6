"""Published sizes, times and utilizations of runs on clusters."""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from calculator.errors import InputError
from calculator.planner.compute import (
    Recomputation,
    megatron_flops,
    megatron_parameters,
    training_days,
    utilization,
    utilization_of_run,
    work_per_token,
)
from validation.claims.claim import Claim, Outcome, Topic

A100, TPU_V3, TPU_V4, ASCEND_910 = 312e12, 123e12, 275e12, 256e12  # peak rates in 16 bits
VOCABULARY, LENGTH = 51_200, 2048

# Narayanan et al., table 1: billions of parameters, layers, width, GPUs, TFLOP/s, percent of peak
NARAYANAN: Final = (
    ("1.7", 24, 2304, 32, 137, "44"),
    ("3.6", 30, 3072, 64, 138, "44"),
    ("7.5", 36, 4096, 128, 142, "46"),
    ("18.4", 40, 6144, 256, 135, "43"),
    ("39.1", 48, 8192, 512, 138, "44"),
    ("76.1", 60, 10240, 1024, 140, "45"),
    ("145.6", 80, 12288, 1536, 148, "47"),
    ("310.1", 96, 16384, 1920, 155, "50"),
    ("529.6", 105, 20480, 2520, 163, "52"),
    ("1008.0", 128, 25600, 3072, 163, "52"),
)
# The same paper, table 2: scheme, layers, width, GPUs, achieved TFLOP/s, days for 300B tokens
NARAYANAN_DAYS: Final = (
    ("ZeRO-3, 174.6B", 96, 12288, 384, 144, "90"),
    ("ZeRO-3, 174.6B", 96, 12288, 768, 88, "74"),
    ("ZeRO-3, 174.6B", 96, 12288, 1536, 44, "74"),
    ("ZeRO-3, 529.6B", 105, 20480, 640, 138, "169"),
    ("ZeRO-3, 529.6B", 105, 20480, 1120, 98, "137"),
    ("ZeRO-3, 529.6B", 105, 20480, 2240, 48, "140"),
    ("PTD-P, 174.6B", 96, 12288, 384, 153, "84"),
    ("PTD-P, 174.6B", 96, 12288, 768, 149, "43"),
    ("PTD-P, 174.6B", 96, 12288, 1536, 141, "23"),
    ("PTD-P, 529.6B", 105, 20480, 560, 171, "156"),
    ("PTD-P, 529.6B", 105, 20480, 1120, 167, "80"),
    ("PTD-P, 529.6B", 105, 20480, 2240, 159, "42"),
)


def narayanan_sizes() -> Topic:
    """Ten sizes of GPT."""
    return Topic(
        "Ten sizes of GPT, 2021",
        "narayanan",
        "Parameters from layers and width, and the rate that each GPU reached as a share of an "
        f"A100's 312 TFLOP/s. These shares count the recomputed forward pass, so they are HFU; "
        f"as MFU the same ten runs reach {_mfu_range()}. A survey that sets them beside Llama 2's "
        "MFU compares two different things.",
        (
            *(
                Claim(
                    f"{layers} layers of {width:,}",
                    billions,
                    megatron_parameters(layers, width, VOCABULARY, LENGTH) / 1e9,
                    " billion",
                )
                for billions, layers, width, *_ in NARAYANAN
            ),
            *(
                Claim(
                    f"{billions} billion on {gpus:,} GPUs", percent, 100 * rate * 1e12 / A100, "%"
                )
                for billions, _, _, gpus, rate, percent in NARAYANAN
            ),
        ),
    )


def _mfu_range() -> str:
    shares = [
        rate * 1e12 / A100 * _per_token(layers, width, Recomputation.NONE)
        / _per_token(layers, width, Recomputation.FULL)
        for _, layers, width, _, rate, _ in NARAYANAN
    ]  # fmt: skip
    return f"{min(shares):.0%} to {max(shares):.0%}"


def _per_token(layers: int, width: int, recomputation: Recomputation) -> float:
    return megatron_flops(1, LENGTH, layers, width, VOCABULARY, recomputation) / LENGTH


def narayanan_days() -> Topic:
    """Twelve training times."""
    return Topic(
        "Twelve training times, 2021",
        "narayanan",
        "Days for 300 billion tokens at the achieved rate. The rates are printed without "
        "decimals, which alone moves the longest times by up to a day and a half.",
        tuple(
            Claim(
                f"{scheme} on {gpus:,} GPUs at {rate} TFLOP/s",
                days,
                training_days(
                    300e9 * _per_token(layers, width, Recomputation.FULL), gpus, rate * 1e12
                ),
                " days",
                margin=1,
            )
            for scheme, layers, width, gpus, rate, days in NARAYANAN_DAYS
        ),
    )


FOUNDRY = Path(__file__).parents[1] / "published" / "llm-foundry.csv"
# layers and width of each model: scripts/train/yamls/pretrain of the same repository
MPT: Final = {
    "mpt-125m": (12, 768),
    "mpt-350m": (24, 1024),
    "mpt-760m": (24, 1536),
    "mpt-1b": (24, 2048),
    "mpt-3b": (32, 2560),
    "mpt-7b": (32, 4096),
    "mpt-13b": (40, 5120),
    "mpt-30b": (48, 7168),
    "mpt-70b": (80, 8192),
}
# what the table divides by: Composer's speed_monitor
FOUNDRY_PEAKS: Final = {
    ("a100", False): A100,
    ("h100", False): 989.5e12,
    ("h100", True): 1979e12,
}


def llm_foundry() -> Topic:
    """Model and hardware utilization of every published row, shown by kind of GPU and format."""
    with FOUNDRY.open(newline="", encoding="utf-8") as file:
        table = list(csv.DictReader(file))
    claims: dict[str, list[Claim]] = {}
    for row in table:
        kind = f"{row['gpu'].replace('_', ' ').upper()}, {row['precision']}"
        claims.setdefault(f"{kind}, MFU", []).append(_utilization(row, "mfu"))
        claims.setdefault(f"{kind}, HFU", []).append(_utilization(row, "hfu"))
    return Topic(
        "Utilization of MPT models, 2023 to 2025",
        "llm-foundry",
        f"{len(table)} benchmarks, each with the model's and the hardware's share of the peak, "
        "from parameters, layers, width, length and tokens per second.",
        tuple(claim for kind in claims.values() for claim in kind),
        tuple(
            [kind, str(len(found)), f"{max(abs(item.difference) for item in found):.2f} points"]
            for kind, found in claims.items()
        ),
        ("GPU, format and kind of share", "Rows", "Largest difference"),
    )


def _utilization(row: dict[str, str], kind: str) -> Claim:
    work = work_per_token(
        int(row["parameters"]),
        *MPT[row["model"]],
        int(row["sequence_length"]),
        Recomputation(row["checkpointing"]),
    )
    flops = work.model if kind == "mfu" else work.hardware
    rate = int(row["tokens_per_second"]) / int(row["gpus"])
    peak = FOUNDRY_PEAKS[row["gpu"].partition("_")[0], "fp8" in row["precision"]]
    words = f"{row['model']}, {row['sequence_length']} tokens, {row['gpus']} {row['gpu']}"
    margin = 0.05 if kind == "mfu" else 0.07
    return Claim(words, row[kind], 100 * utilization(flops, rate, peak), "%", margin)


@dataclass(frozen=True, slots=True)
class Run:
    """A published run: parameters that a token meets, tokens, chips, days, and a chip's peak."""

    words: str
    parameters: float
    tokens: float
    chips: int
    days: float
    peak: float
    note: str = ""

    @property
    def share(self) -> float | None:
        """The share of the peak that it took; None where it would be more than all."""
        try:
            work = 6 * self.parameters * self.tokens
            return utilization_of_run(work, self.chips, self.days, self.peak)
        except InputError:
            return None

    @property
    def needed(self) -> float:
        """The share that the printed figures ask for, also where it is more than all."""
        time = self.chips * self.days * 86_400
        return 6 * self.parameters * self.tokens / (time * self.peak)

    @property
    def cells(self) -> list[str]:
        """The row of a table."""
        verdict = "possible" if self.share is not None else Outcome.IMPOSSIBLE.value
        verdict = f"{verdict}. {self.note}".removesuffix(". ")
        return [
            f"{self.words}: {self.chips:,} for {self.days:.3g} days",
            f"{self.parameters / 1e9:g}",
            f"{self.tokens / 1e9:,.0f}",
            f"{self.needed:.1%}",
            verdict,
        ]


# Zhao et al., table 1: the rows that have size, tokens, chips and time
SURVEY: Final = (
    Run("LLaMA, A100", 65.2e9, 1.4e12, 2048, 21, A100),
    Run("BLOOM, A100", 176e9, 366e9, 384, 105, A100),
    Run("HyperCLOVA, A100", 82e9, 300e9, 1024, 13.4, A100),
    Run("AlexaTM, A100", 20e9, 1.3e12, 128, 120, A100),
    Run("Gopher, TPU v3", 280e9, 300e9, 4096, 920 / 24, TPU_V3),
    Run(
        "GLaM, TPU v4", 97e9, 280e9, 1024, 574 / 24, TPU_V4,
        "Of its 1,200 billion parameters a token meets 97.",
    ),
    Run("GLM, A100", 130e9, 400e9, 768, 60, A100),
    Run("WeLM, A100", 10e9, 300e9, 128, 24, A100),
    Run("CodeGeeX, Ascend 910", 13e9, 850e9, 1536, 60, ASCEND_910),
    Run(
        "LaMDA, TPU v3", 137e9, 768e9, 1024, 57.7, TPU_V3,
        "Size, tokens, chips or time is another than printed.",
    ),
    Run(
        "FLM, A800", 101e9, 311e9, 192, 22, A100,
        "It grew from 16 billion parameters during the run, so most tokens met fewer.",
    ),
)  # fmt: skip


def survey() -> Topic:
    """Check of a survey: whether the hardware could have computed its figures."""
    return Topic(
        "Could these runs have been computed? A survey's table, 2023",
        "zhao",
        "Six FLOPs per parameter and token, over all that the chips could compute in the time "
        "printed: 312 TFLOP/s an A100 or A800, 123 a TPU v3, 275 a TPU v4, 256 an Ascend 910.",
        (),
        tuple(run.cells for run in SURVEY),
        ("Model, chips and time", "Billion parameters", "Billion tokens", "Of the peak", "Verdict"),
    )


def topics() -> Iterator[Topic]:
    """All of this module, the oldest first."""
    yield narayanan_sizes()
    yield narayanan_days()
    yield survey()
    yield llm_foundry()
