"""The graphics cards that the calculator knows by name: data only."""

from dataclasses import dataclass
from typing import Final

from calculator.units import MiB


@dataclass(frozen=True, slots=True)
class Gpu:
    """A graphics card: its memory in bytes and its generation."""

    name: str
    title: str
    memory: int
    generation: str
    note: str = ""

    @property
    def short(self) -> str:
        """The title without the memory that its maker names."""
        *name, number, unit = ["", "", *self.title.split()]
        return " ".join(name).strip() if unit == "GB" and number.isdigit() else self.title


GPUS: Final[dict[str, Gpu]] = {
    name: Gpu(name, title, mebibytes * MiB, generation, note)
    for name, title, mebibytes, generation, note in (
        ("t4", "Tesla T4 16 GB", 15_360, "Turing", "free in Colab and Kaggle notebooks"),
        ("p100", "Tesla P100 16 GB", 16_384, "Pascal", "free in Kaggle notebooks"),
        ("v100-16", "Tesla V100 16 GB", 16_384, "Volta", ""),
        ("v100-32", "Tesla V100 32 GB", 32_768, "Volta", ""),
        ("gtx-1060", "GeForce GTX 1060 6 GB", 6_144, "Pascal", ""),
        ("gtx-1080-ti", "GeForce GTX 1080 Ti 11 GB", 11_264, "Pascal", ""),
        ("rtx-2080-ti", "GeForce RTX 2080 Ti 11 GB", 11_264, "Turing", ""),
        ("rtx-3060", "GeForce RTX 3060 12 GB", 12_288, "Ampere", ""),
        ("rtx-3070", "GeForce RTX 3070 8 GB", 8_192, "Ampere", ""),
        ("rtx-3090", "GeForce RTX 3090 24 GB", 24_576, "Ampere", ""),
        ("rtx-4060", "GeForce RTX 4060 8 GB", 8_188, "Ada", ""),
        ("rtx-4060-ti-16", "GeForce RTX 4060 Ti 16 GB", 16_380, "Ada", ""),
        ("rtx-4070", "GeForce RTX 4070 12 GB", 12_282, "Ada", ""),
        ("rtx-4080", "GeForce RTX 4080 16 GB", 16_376, "Ada", ""),
        ("rtx-4090", "GeForce RTX 4090 24 GB", 24_564, "Ada", ""),
        ("rtx-5090", "GeForce RTX 5090 32 GB", 32_607, "Blackwell", ""),
        ("l4", "L4 24 GB", 23_034, "Ada", "in paid Colab"),
        ("a10g", "A10G 24 GB", 23_028, "Ampere", ""),
        ("a6000", "RTX A6000 48 GB", 49_140, "Ampere", ""),
        ("l40s", "L40S 48 GB", 46_068, "Ada", ""),
        ("a100-40", "A100 40 GB", 40_960, "Ampere", "in paid Colab"),
        ("a100-80", "A100 80 GB", 81_920, "Ampere", ""),
        ("h100", "H100 80 GB", 81_559, "Hopper", ""),
        ("h200", "H200 141 GB", 143_771, "Hopper", ""),
    )
}
