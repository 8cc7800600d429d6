"""The graphics cards that the calculator knows by name: data only."""

from dataclasses import dataclass
from typing import Final

from calculator.units import MiB


@dataclass(frozen=True, slots=True)
class Gpu:
    """A graphics card.

    Attributes:
        memory: bytes, as its driver reports them.
        teraflops: peak rate of products of 16-bit matrices, sums in 32 bits, without sparsity, in
            TFLOP/s; of cards without tensor cores, the best rate that training reaches for.
        watts: its maker's power limit.
    """

    name: str
    title: str
    memory: int
    generation: str
    note: str = ""
    teraflops: float = 0.0
    watts: int = 0

    @property
    def short(self) -> str:
        """The title without the memory that its maker names."""
        *name, number, unit = ["", "", *self.title.split()]
        return " ".join(name).strip() if unit == "GB" and number.isdigit() else self.title


GPUS: Final[dict[str, Gpu]] = {
    name: Gpu(name, title, mebibytes * MiB, generation, note, teraflops, watts)
    for name, title, mebibytes, generation, teraflops, watts, note in (
        ("t4", "Tesla T4 16 GB", 15_360, "Turing", 65, 70, "free in Colab and Kaggle"),
        ("p100", "Tesla P100 16 GB", 16_384, "Pascal", 18.7, 250, "free in Kaggle"),
        ("v100-16", "Tesla V100 16 GB", 16_384, "Volta", 125, 300, ""),
        ("v100-32", "Tesla V100 32 GB", 32_768, "Volta", 125, 300, ""),
        ("gtx-1060", "GeForce GTX 1060 6 GB", 6_144, "Pascal", 4.4, 120, ""),
        ("gtx-1080-ti", "GeForce GTX 1080 Ti 11 GB", 11_264, "Pascal", 11.3, 250, ""),
        ("rtx-2080-ti", "GeForce RTX 2080 Ti 11 GB", 11_264, "Turing", 53.8, 250, ""),
        ("rtx-3060", "GeForce RTX 3060 12 GB", 12_288, "Ampere", 25.5, 170, ""),
        ("rtx-3070", "GeForce RTX 3070 8 GB", 8_192, "Ampere", 40.6, 220, ""),
        ("rtx-3090", "GeForce RTX 3090 24 GB", 24_576, "Ampere", 71.2, 350, ""),
        ("rtx-4060", "GeForce RTX 4060 8 GB", 8_188, "Ada", 30.2, 115, ""),
        ("rtx-4060-ti-16", "GeForce RTX 4060 Ti 16 GB", 16_380, "Ada", 44.1, 165, ""),
        ("rtx-4070", "GeForce RTX 4070 12 GB", 12_282, "Ada", 58.3, 200, ""),
        ("rtx-4080", "GeForce RTX 4080 16 GB", 16_376, "Ada", 97.5, 320, ""),
        ("rtx-4090", "GeForce RTX 4090 24 GB", 24_564, "Ada", 165.2, 450, ""),
        ("rtx-5090", "GeForce RTX 5090 32 GB", 32_607, "Blackwell", 209.5, 575, ""),
        ("l4", "L4 24 GB", 23_034, "Ada", 121, 72, "in paid Colab"),
        ("a10g", "A10G 24 GB", 23_028, "Ampere", 70, 300, ""),
        ("a6000", "RTX A6000 48 GB", 49_140, "Ampere", 154.8, 300, ""),
        ("l40s", "L40S 48 GB", 46_068, "Ada", 362, 350, ""),
        ("a100-40", "A100 40 GB", 40_960, "Ampere", 312, 400, "in paid Colab"),
        ("a100-80", "A100 80 GB", 81_920, "Ampere", 312, 400, ""),
        ("h100", "H100 80 GB", 81_559, "Hopper", 989.5, 700, ""),
        ("h200", "H200 141 GB", 143_771, "Hopper", 989.5, 700, ""),
    )
}
